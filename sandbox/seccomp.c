/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/seccomp_priv.h"

#include <assert.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define SECCOMP_ARCH AUDIT_ARCH_X86_64
#define SECCOMP_ARCH_NAME "SCMP_ARCH_X86_64"
#elif defined(__aarch64__)
#define SECCOMP_ARCH AUDIT_ARCH_AARCH64
#define SECCOMP_ARCH_NAME "SCMP_ARCH_AARCH64"
#else
#error "the seccomp profile has no calls for this architecture"
#endif

#define SECCOMP_NEW_NAMESPACES                                                         \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)
#define SECCOMP_AF_ALG 38 /* the kernel's ciphers: no program needs them, exploits did */
#define SECCOMP_AF_VSOCK                                                         \
	40 /* the hypervisor, which no namespace hides; later ones are as exotic \
	    */

/* Linux, 32-bit Linux, either of them as 2.6, and the question for it: no exec-domain of old. */
static const uint32_t seccomp_personalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};
#define SECCOMP_PERSONALITIES (sizeof(seccomp_personalities) / sizeof(seccomp_personalities[0]))

struct seccomp_writer {
	struct sock_filter *out;
	size_t count;
};

static void seccomp_emit(struct seccomp_writer *writer, struct sock_filter instruction)
{
	assert(writer->count < SECCOMP_PROGRAM_MAX);
	writer->out[writer->count++] = instruction;
}

static void seccomp_load(struct seccomp_writer *writer, size_t offset)
{
	seccomp_emit(writer, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static void seccomp_return(struct seccomp_writer *writer, uint32_t action)
{
	seccomp_emit(writer, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Run the next `yes` instructions if the comparison holds, else jump over them. */
static void seccomp_if(struct seccomp_writer *writer, unsigned compare, uint32_t value, uint8_t yes)
{
	seccomp_emit(writer,
		     (struct sock_filter)BPF_JUMP(BPF_JMP | compare | BPF_K, value, 0, yes));
}

static void seccomp_emit_arguments(struct seccomp_writer *writer)
{
	size_t argument = offsetof(struct seccomp_data, args[0]); /* the low half: little endian */

	seccomp_if(writer, BPF_JEQ, SYS_clone, 4);
	seccomp_load(writer, argument);
	seccomp_if(writer, BPF_JSET, SECCOMP_NEW_NAMESPACES, 1);
	seccomp_return(writer, SECCOMP_RET_ERRNO | EPERM);
	seccomp_return(writer, SECCOMP_RET_ALLOW);

	/* Its flags lie in memory, where no filter can look; libc falls back to clone. */
	seccomp_if(writer, BPF_JEQ, SYS_clone3, 1);
	seccomp_return(writer, SECCOMP_RET_ERRNO | ENOSYS);

	seccomp_if(writer, BPF_JEQ, SYS_socket, 6);
	seccomp_load(writer, argument);
	seccomp_if(writer, BPF_JEQ, SECCOMP_AF_ALG, 1);
	seccomp_return(writer, SECCOMP_RET_ERRNO | EPERM);
	seccomp_if(writer, BPF_JGE, SECCOMP_AF_VSOCK, 1);
	seccomp_return(writer, SECCOMP_RET_ERRNO | EPERM);
	seccomp_return(writer, SECCOMP_RET_ALLOW);

	seccomp_if(writer, BPF_JEQ, SYS_personality, 2 * SECCOMP_PERSONALITIES + 2);
	seccomp_load(writer, argument);
	for (size_t i = 0; i < SECCOMP_PERSONALITIES; i++) {
		seccomp_if(writer, BPF_JEQ, seccomp_personalities[i], 1);
		seccomp_return(writer, SECCOMP_RET_ALLOW);
	}
	seccomp_return(writer, SECCOMP_RET_ERRNO | EPERM);
}

static int seccomp_compare(const void *a, const void *b)
{
	const uint32_t *left = a;
	const uint32_t *right = b;

	return *left < *right ? -1 : *left > *right;
}

/*
 * The numbers as ascending ranges: the first range that ends at or above the
 * call decides. (How many are compared matters little: the kernel keeps the
 * answer for calls whose arguments are not looked at.)
 */
static void seccomp_emit_ranges(struct seccomp_writer *writer)
{
	uint32_t numbers[SECCOMP_CALLS_MAX];
	size_t i = 0;

	assert(seccomp_call_count <= SECCOMP_CALLS_MAX);
	for (size_t n = 0; n < seccomp_call_count; n++)
		numbers[n] = seccomp_calls[n].number;
	qsort(numbers, seccomp_call_count, sizeof(numbers[0]), seccomp_compare);
	while (i < seccomp_call_count) {
		uint32_t low = numbers[i];
		uint32_t high = low;

		while (++i < seccomp_call_count && numbers[i] <= high + 1)
			high = numbers[i];
		seccomp_emit(writer,
			     (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, high, 3, 0));
		seccomp_if(writer, BPF_JGE, low, 1);
		seccomp_return(writer, SECCOMP_RET_ALLOW);
		seccomp_return(writer, SECCOMP_RET_ERRNO | EPERM);
	}
	seccomp_return(writer, SECCOMP_RET_ERRNO | ENOSYS);
}

size_t seccomp_program(struct sock_filter out[static SECCOMP_PROGRAM_MAX])
{
	struct seccomp_writer writer = {.out = out};

	seccomp_load(&writer, offsetof(struct seccomp_data, arch));
	seccomp_emit(&writer,
		     (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_ARCH, 1, 0));
	seccomp_return(&writer, SECCOMP_RET_ERRNO | ENOSYS);
	seccomp_load(&writer, offsetof(struct seccomp_data, nr));
	seccomp_emit_arguments(&writer);
	seccomp_emit_ranges(&writer);
	return writer.count;
}

/* One rule that allows a call when its first argument compares so. */
static json_t *seccomp_rule(const char *name, const char *compare, json_int_t value,
			    json_int_t masked)
{
	return json_pack("{s:[s], s:s, s:[{s:i, s:I, s:I, s:s}]}", "names", name, "action",
			 "SCMP_ACT_ALLOW", "args", "index", 0, "value", value, "valueTwo", masked,
			 "op", compare);
}

json_t *seccomp_section(void)
{
	AUTO(json) json_t *names = json_array();
	json_t *rules = json_array();

	for (size_t i = 0; i < seccomp_call_count; i++)
		(void)json_array_append_new(names, json_string(seccomp_calls[i].name));
	(void)json_array_append_new(
		rules, json_pack("{s:O, s:s}", "names", names, "action", "SCMP_ACT_ALLOW"));
	(void)json_array_append_new(
		rules, seccomp_rule("clone", "SCMP_CMP_MASKED_EQ", SECCOMP_NEW_NAMESPACES, 0));
	(void)json_array_append_new(rules,
				    json_pack("{s:[s], s:s, s:i}", "names", "clone3", "action",
					      "SCMP_ACT_ERRNO", "errnoRet", ENOSYS));
	for (json_int_t family = 0; family < SECCOMP_AF_VSOCK; family++) {
		if (family != SECCOMP_AF_ALG)
			(void)json_array_append_new(
				rules, seccomp_rule("socket", "SCMP_CMP_EQ", family, 0));
	}
	for (size_t i = 0; i < SECCOMP_PERSONALITIES; i++)
		(void)json_array_append_new(rules, seccomp_rule("personality", "SCMP_CMP_EQ",
								seccomp_personalities[i], 0));
	return json_pack("{s:s, s:i, s:[s], s:o}", "defaultAction", "SCMP_ACT_ERRNO",
			 "defaultErrnoRet", EPERM, "architectures", SECCOMP_ARCH_NAME, "syscalls",
			 rules);
}

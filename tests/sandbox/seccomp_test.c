/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/seccomp_priv.h"

#include "tests/check.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* errno of a call made under the filter, 0 when it worked. Arguments are harmless ones. */
static int filtered(long number, long a, long b)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct sock_filter program[SECCOMP_PROGRAM_MAX];
		struct sock_fprog fprog = {(unsigned short)seccomp_program(program), program};

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog) < 0)
			_exit(255);
		_exit(syscall(number, a, b, 0L, 0L, 0L) < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void listed_calls_pass(void **state)
{
	(void)state;
	assert_int_equal(filtered(SYS_getpid, 0, 0), 0);
	assert_int_equal(filtered(SYS_read, -1, 0), EBADF);
	assert_int_equal(filtered(SYS_openat2, -1, 0), EINVAL);
	assert_int_equal(filtered(SYS_socket, AF_UNIX, SOCK_STREAM), 0);
	assert_int_equal(filtered(SYS_personality, 0xffffffff, 0), 0);
}

static void calls_that_reach_out_are_refused(void **state)
{
	static const long refused[] = {
		SYS_mount,        SYS_umount2,     SYS_unshare,          SYS_setns,
		SYS_bpf,          SYS_keyctl,      SYS_add_key,          SYS_io_uring_setup,
		SYS_reboot,       SYS_swapon,      SYS_userfaultfd,      SYS_kexec_load,
		SYS_init_module,  SYS_fsopen,      SYS_open_tree,        SYS_perf_event_open,
		SYS_settimeofday, SYS_pidfd_getfd, SYS_open_by_handle_at};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(filtered(refused[i], -1, -1), EPERM);
}

static void arguments_decide_where_they_must(void **state)
{
	(void)state;
	assert_int_equal(filtered(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0), EPERM);
	assert_int_equal(filtered(SYS_clone, CLONE_NEWNET | CLONE_NEWNS, 0), EPERM);
	assert_int_equal(filtered(SYS_clone, CLONE_SIGHAND, 0),
			 EINVAL); /* the kernel's own word: it passed */
	assert_int_equal(filtered(SYS_clone3, 0, 0), ENOSYS);
	assert_int_equal(filtered(SYS_socket, 38, SOCK_SEQPACKET), EPERM);
	assert_int_equal(filtered(SYS_socket, 40, SOCK_STREAM), EPERM);
	assert_int_equal(filtered(SYS_personality, ADDR_NO_RANDOMIZE, 0), EPERM);
}

static void calls_of_the_future_are_unknown(void **state)
{
	(void)state;
	assert_int_equal(filtered(100000, 0, 0), ENOSYS);
#ifdef __x86_64__
	assert_int_equal(filtered(0x40000000 | SYS_getpid, 0, 0), ENOSYS); /* x32 */
#endif
}

static void both_forms_list_the_same_calls(void **state)
{
	AUTO(json) json_t *section = seccomp_section();
	json_t *first = json_array_get(json_object_get(section, "syscalls"), 0);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(first, "names")), seccomp_call_count);
	assert_string_equal(json_string_value(json_object_get(section, "defaultAction")),
			    "SCMP_ACT_ERRNO");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listed_calls_pass),
		cmocka_unit_test(calls_that_reach_out_are_refused),
		cmocka_unit_test(arguments_decide_where_they_must),
		cmocka_unit_test(calls_of_the_future_are_unknown),
		cmocka_unit_test(both_forms_list_the_same_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

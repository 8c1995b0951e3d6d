/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp_priv.h - the system calls that a machine may make.
 *
 * A list of what is allowed, for the native architecture alone: what is not
 * listed fails with EPERM, what is newer than the list or made for another
 * architecture with ENOSYS. No call of the list reaches beyond the machine's
 * namespaces; new namespaces, mounts, keyrings, BPF, io_uring, modules, clocks
 * and vsock are absent.
 *
 * The profile has two forms: the kernel's program, for a runtime that takes it
 * ready made, and the runtime-spec's, which a runtime compiles at every start.
 */
#pragma once

#include "layers/base/json.h"

#include <linux/filter.h>

#define SECCOMP_PROGRAM_MAX 1024
#define SECCOMP_CALLS_MAX 512

struct seccomp_call {
	const char *name;
	uint32_t number;
};

/* The list, in no order, without the calls of which only some arguments are allowed. */
extern const struct seccomp_call seccomp_calls[];
extern const size_t seccomp_call_count;

/* The number of instructions written. */
size_t seccomp_program(struct sock_filter out[static SECCOMP_PROGRAM_MAX]);

/* config.json's linux.seccomp. */
json_t *seccomp_section(void);

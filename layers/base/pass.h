/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass.h - descriptors handed from one process of ours to another.
 *
 * The socket is a SOCK_SEQPACKET pair: a message is received whole, with all
 * of its descriptors, or not at all. Both sides know each message's length.
 */
#pragma once

#include "layers/base/err.h"

#include <stddef.h>

#define PASS_FDS_MAX ((size_t)8)

/* The descriptors stay the caller's. ERR_UNAVAILABLE when the other side is gone. */
int pass_send(int sockfd, const void *bytes, size_t len, const int *fds, size_t fd_count,
	      struct err *err) MUST_CHECK;

/*
 * 1 a message of len bytes, 0 the other side is gone, -1. The caller closes the
 * descriptors that came; the rest of fds is -1.
 */
int pass_receive(int sockfd, void *bytes, size_t len, int fds[static PASS_FDS_MAX], struct err *err)
	MUST_CHECK;

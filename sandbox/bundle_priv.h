/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_priv.h - a machine and a command as a runtime bundle.
 *
 * Everything a machine may and may not do is in this one document: its
 * namespaces, ids, capabilities, filter, limits, and what is mounted, hidden
 * and read-only. Steps may gain privileges (setuid programs of the image, such
 * as sudo, work); they stay within the capabilities of the bounding set and
 * the machine's own user namespace.
 *
 * Format: OCI runtime-spec 1.1, config.json.
 */
#pragma once

#include "layers/base/buf.h"
#include "sandbox/machine.h"
#include "sandbox/user.h"

#define BUNDLE_MAX ((size_t)8 << 20) /* 1 MiB of command, escaped, and an environment */

struct bundle {
	const char *id;   /* of the container, and the name of its cgroup */
	const char *root; /* absolute paths, here and below */
	const char *agent;
	const char *sysfs;
	const char *netns;
	const char *cwd; /* inside */
	const struct user *user;
	uint32_t first_id;
	const struct machine_limits *limits;
	const struct machine_mount *mounts; /* of which the runtime makes some (inner_priv.h) */
	size_t mount_count;
	const struct machine_command *command;
};

/* Append config.json. */
int bundle_format(const struct bundle *bundle, struct buf *out, struct err *err) MUST_CHECK;

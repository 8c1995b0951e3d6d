/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user.h - a user as an image names it, in numbers.
 *
 * "" is root. "name", "uid", "name:group", "uid:gid" and mixtures are looked
 * up in the image's own passwd and group files; a number needs no entry there.
 * As Docker has it, a user named without a group belongs to every group that
 * lists it.
 */
#pragma once

#include "layers/base/buf.h"

#include <sys/types.h>

#define USER_GROUPS_MAX 64
#define USER_FILE_MAX ((size_t)4 << 20) /* of passwd and group */
#define USER_HOME_MAX ((size_t)256)

struct user {
	uid_t uid;
	gid_t gid;
	gid_t groups[USER_GROUPS_MAX]; /* supplementary */
	size_t group_count;
	char home[USER_HOME_MAX]; /* "/" where passwd has no entry */
};

/* ERR_NOT_FOUND names the user or group; ERR_LIMIT for ids of 65,536 and more. */
int user_find(struct str passwd, struct str group, struct str text, struct user *out,
	      struct err *err) MUST_CHECK;

/* The same, with the files of the root below rootfd; either may be missing. */
int user_find_in_root(int rootfd, struct str text, struct user *out, struct err *err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_priv.h - where a path leads in a machine's root, and making the
 * directories that it needs.
 *
 * Every symlink, the last part included, is read and walked here from
 * descriptors that we hold: an absolute target starts at the root, ".." stops
 * there, and no part is ever followed by the kernel. What is missing is made,
 * also behind a link that leads nowhere yet.
 */
#pragma once

#include "layers/base/path.h"

#include <limits.h>
#include <sys/types.h>

#define PLACE_LINKS_MAX 40 /* as the kernel */

struct place {
	int fd; /* the directory; or the one that holds `name` */
	char name[NAME_MAX +
		  1];    /* "" for an existing directory; else the name of anything else in fd */
	struct buf path; /* of fd, absolute, without symlinks; "" for the root */
};

#define PLACE_INIT ((struct place){.fd = -1, .path = BUF_INIT(PATH_TEXT_MAX)})

/* The owner and mode of a directory that is made. */
struct place_new {
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

/*
 * Resolve a path; its parents are made where they are missing, and with
 * `directory` so is itself. ERR_INVALID where a part of it (with `directory`:
 * or itself) is no directory.
 */
int place_find(int rootfd, struct str path, bool directory, const struct place_new *make,
	       struct place *out, struct err *err) MUST_CHECK;

/* Open a directory by name without following anything; made where it is missing. */
int place_enter(int dirfd, const char *name, const struct place_new *make, int *out,
		struct err *err) MUST_CHECK;

void place_done(struct place *place);

static inline void auto_place_release(struct place *slot)
{
	place_done(slot);
}
#define auto_place AUTO(place)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount.h - RUN's --mount: what a command sees besides its root.
 *
 * 	mount  = field { "," field }                          (csv_priv.h)
 * 	field  = key "=" value | "ro" | "readonly" | "rw" | "readwrite" | "required"
 * 	key    : in any case; each once, and only where its type has it
 *
 * 	type   bind (default)  from source target ro rw
 * 	       cache           id target sharing=shared|private|locked ro rw,
 * 	                       and mode uid gid, or from source: what fills a new one
 * 	       secret          id or source, target, env, required, mode uid gid,
 * 	                       cache=value: another value is another step
 * 	       tmpfs           target size ro rw
 *
 * Variables expand in values, but not in `from`. Anything else is ERR_REFUSED,
 * since a mount that is not what was meant would go unnoticed.
 */
#pragma once

#include "layers/cache.h"
#include "layers/digest.h"

#define MOUNTS_MAX 64 /* of one RUN */
#define MOUNT_ID_MAX ((size_t)256)
#define MOUNT_SECRETS_DIR "/run/secrets"

struct state;
struct words;

enum mount_type { MOUNT_BIND, MOUNT_CACHE, MOUNT_SECRET, MOUNT_TMPFS };

struct mount {
	enum mount_type type;
	char *target; /* absolute and clean; NULL: a secret that is a variable alone */
	char *source; /* bind: in the context or the image; cache: in the image */
	char *from;   /* an image; NULL: bind: the context, cache: it starts empty */
	char *id;     /* cache, secret */
	char *env;    /* secret: the variable that it is given in, or NULL */
	enum cache_sharing sharing;
	bool read_only;
	bool required;
	bool by_value; /* secret: its value counts in the step's key */
	mode_t mode;   /* cache: of a new one. secret: of its file. Here and below */
	uid_t uid;
	gid_t gid;
	uint64_t size;         /* tmpfs: 0 for the kernel's */
	struct digest content; /* bind: of what is mounted, once that was read */
};

struct mounts {
	struct mount *at; /* owned */
	size_t count;
};

/*
 * One --mount. With a state its values are expanded and its target is absolute.
 * Without one, only what does not depend on variables is checked.
 */
int mount_parse(struct str text, const struct state *state, struct mount *out, struct err *err)
	MUST_CHECK;
void mount_done(struct mount *mount);

/* All of a RUN, in the order in which they are mounted: by target, parents first. */
int mounts_parse(const struct words *texts, const struct state *state, struct mounts *out,
		 struct err *err) MUST_CHECK;
void mounts_done(struct mounts *mounts);

/* The source of a bind mount as one of COPY's: no character of it is a wildcard. */
int mount_source_word(const struct mount *mount, struct buf *out, struct err *err) MUST_CHECK;

static inline void auto_mount_release(struct mount *slot)
{
	mount_done(slot);
}
#define auto_mount AUTO(mount)
static inline void auto_mounts_release(struct mounts *slot)
{
	mounts_done(slot);
}
#define auto_mounts AUTO(mounts)

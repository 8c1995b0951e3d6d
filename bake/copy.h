/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - COPY and WORKDIR carried out in a machine's merged root.
 *
 * Destinations are resolved inside the root, symlinks included, from held
 * descriptors (place_priv.h). Existing files and links inside a copied tree are
 * replaced, never written through; a link in a directory's place is followed
 * inside the root. Where a source goes is as a Dockerfile's COPY has it: a
 * directory gives its content and not itself, a destination that ends in a slash
 * or is one of several sources' is a directory, and missing parents are made
 * 0755 and 0:0, or as --chmod and --chown say. Several matches of a wildcard are
 * several sources. Times are kept, xattrs too where the file system takes them
 * (else the log says so), hard links within one source stay links; of an image's
 * files also owners. Order: owner, mode, xattrs, times.
 *
 * Runs in a child whose fsuid and fsgid are the machine's root
 * (machine_as_root); ids given are ids inside the machine.
 */
#pragma once

#include "bake/context.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct shortcut;

struct copy_spec {
	struct context_sources sources;
	const char *destination; /* expanded, as written: a slash at the end counts */
	const char *workdir;     /* absolute */
	const char *chown;       /* expanded text; NULL for 0:0, or an image's own owners */
	uint32_t first_id;       /* host id of the machine's 0 */
	/*
	 * The digest by context_digest(), or NULL: other bytes than the key
	 * names are never copied.
	 */
	const struct digest *content;
	struct shortcut *shortcut; /* the files that context_digest() knew or read, or NULL */
	int log_fd;                /* the step's log, for what is left out; 0 for none */
	const struct cancel *cancel;
};

/*
 * ERR_NOT_FOUND for a missing source or unknown owner, ERR_UNAVAILABLE for a
 * context that changes meanwhile, ERR_INVALID where a file stands in a
 * directory's place or the reverse. A failed copy leaves the root half written.
 */
int copy_into(int rootfd, const struct copy_spec *spec, struct err *err) MUST_CHECK;

/*
 * Make a working directory with its parents, 0755, owned by the image's user;
 * nothing changes if it exists. A component that is a file is an error.
 */
int copy_make_workdir(int rootfd, const char *path, const char *user, uint32_t first_id,
		      struct err *err) MUST_CHECK;

/*
 * user[:group] or :group, names looked up in the root's passwd and group;
 * unknown is ERR_NOT_FOUND. A number alone is the group's number too; a name
 * alone has its primary group; root needs no entry. Ids are those inside the
 * machine.
 */
int copy_find_owner(int rootfd, const char *text, uid_t *out_uid, gid_t *out_gid, struct err *err)
	MUST_CHECK;

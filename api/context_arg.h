/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context_arg.h - what --context names: a directory, a tar in a file or on
 * standard input, or the digest of one that the store holds.
 */
#pragma once

#include "api/cli.h"
#include "bake/asker.h"
#include "bake/tarball.h"

/* Whether a text means a digest, and no name of a file. */
bool context_arg_is_digest(const char *text);

/* A descriptor of the directory that COPY reads. The text is a user's. */
int context_arg_open(const struct cli *cli, struct store *store, const char *text, int *out_fd,
		     struct err *err) MUST_CHECK;

/*
 * Open what is to be stored as a context: "-" is standard input. *out_is_dir: a
 * directory, to be packed.
 */
int context_arg_open_source(const char *text, int *out_fd, bool *out_is_dir, struct err *err)
	MUST_CHECK;

/* Store what is named so, a directory or a tar, as `hearth context put` does. */
int context_arg_put(const struct cli *cli, struct store *store, const char *text,
		    struct digest *out, struct err *err) MUST_CHECK;

/*
 * What the context of a spec in that file names: beside the file, unless it is
 * absolute or a digest. The caller frees it.
 */
char *context_arg_beside(const char *spec_path, struct str context) MUST_CHECK;

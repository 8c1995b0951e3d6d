/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - the image as it grows: configuration, history and layers, from the
 * base's config to the finished config and manifest.
 *
 * The visible part (environment, working directory, user, shell) is what a
 * step can see and is in its key; history and layers are not. Times come from
 * step records, never from this bake's clock, so equal work gives equal
 * digests.
 *
 * Formats: OCI image-spec 1.1, config.md and manifest.md. Unknown members of
 * the base's config are kept. Docker's layer types become the OCI types of the
 * same bytes, since a manifest speaks one family of types.
 */
#pragma once

#include "layers/base/json.h"
#include "registry/image_config.h"
#include "registry/manifest.h"

/* The kernel starts no program with a longer entry, or with 2 MiB of them in all. */
#define STATE_ENV_ENTRY_MAX ((size_t)128 * 1024 - 1)
#define STATE_ENV_MAX ((size_t)1024 * 1024) /* bytes that steps set, and that a base may bring */
#define STATE_ENV_COUNT_MAX ((size_t)10000) /* runtimes look through all to set one */
#define STATE_USER_MAX ((size_t)1024)       /* bytes of a base's User */
#define STATE_PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct state_layer {
	struct digest blob;
	struct digest diff_id;
	uint64_t size; /* bytes of the blob */
	char media_type[80];
};

struct state {
	json_t *config;             /* owned: the whole config document as it will be written */
	struct digest chain_id;     /* of all layers so far; zero on scratch */
	struct state_layer *layers; /* owned, bottom first */
	size_t layer_count;
	struct platform platform;
	size_t env_bytes;      /* of entries that steps set */
	struct digest visible; /* of the visible part, while visible_known */
	bool visible_known;
};

/*
 * Start from a base, or from nothing (scratch) on a platform. Either has a
 * PATH afterwards. ERR_CORRUPT for a base whose documents disagree, ERR_LIMIT
 * for one with which no program starts, ERR_UNSUPPORTED for layers of a type
 * that nothing here reads.
 */
int state_from_base(const struct manifest *manifest, const struct image_config *config,
		    struct state *out, struct err *err) MUST_CHECK;
int state_from_scratch(const struct platform *platform, struct state *out, struct err *err)
	MUST_CHECK;
void state_done(struct state *state);

/* What a step sees. Views are valid until the state changes. */
bool state_env_get(const struct state *state, struct str name, struct str *out);
struct str state_workdir(const struct state *state); /* absolute; "/" by default */
struct str state_user(const struct state *state);
json_t *state_env(const struct state *state); /* borrowed: array of "K=V" */

/* The base's SHELL for RUN's shell form, borrowed array; NULL for /bin/sh -c. */
json_t *state_shell(const struct state *state);

/* The part of the configuration that a step can see, for explanations. Owned result. */
json_t *state_visible(const struct state *state);

/* The digest of the same, for the key; made once for each change. */
const struct digest *state_visible_digest(struct state *state);

/* Replaces in place, else appends. ERR_REFUSED for what can be no name, ERR_LIMIT. */
int state_set_env(struct state *state, struct str name, struct str value, struct err *err)
	MUST_CHECK;

/* A relative path is joined to the working directory of before. */
int state_set_workdir(struct state *state, struct str path, struct err *err) MUST_CHECK;

/* Append history for a step and, where layer is not NULL, its layer. */
int state_add_step(struct state *state, struct str created_by, int64_t created_ms,
		   const struct state_layer *layer, struct err *err) MUST_CHECK;

/* The finished documents; created is the last step's time, or the base's. */
int state_write_config(const struct state *state, struct buf *out, struct err *err) MUST_CHECK;
int state_write_manifest(const struct state *state, const struct digest *config,
			 uint64_t config_size, struct buf *out, struct err *err) MUST_CHECK;

static inline void auto_state_release(struct state *slot)
{
	state_done(slot);
}
#define auto_state AUTO(state)

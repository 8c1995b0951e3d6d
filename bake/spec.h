/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec.h - what the user asks for: a base and steps, read with care.
 *
 * A spec is the seed's agent object, the `{"agent": …}` around it, or just its
 * `image` object, as JSON. In `sandbox` and below an unknown key is an error
 * that names its path and the nearest known key; at the agent's level it is a
 * warning. What is legal and not supported yet is refused by name.
 *
 * Ownership: a spec owns its document; every view lies in it.
 */
#pragma once

#include "layers/base/json.h"
#include "layers/codec.h"
#include "registry/reference.h"

#define SPEC_MAX ((size_t)16 * 1024 * 1024)
#define SPEC_STEPS_MAX 10000
#define SPEC_PUSH_MAX 100
#define SPEC_TIMEOUT_DEFAULT_MS 3600000
#define SPEC_EPOCH_OF_BASE (-1)
#define SPEC_EPOCH_MAX 253402300799 /* the year 9999 ends */
#define SPEC_JITTER_MAX_MS ((int64_t)24 * 60 * 60 * 1000)

struct spec_resources {
	uint64_t memory_mb; /* 0: no limit, here and below */
	double cpu;
	uint64_t pids;
	uint64_t disk_mb;
};

/* A secret that the steps ask for. */
struct spec_secret {
	struct str id;
	bool required; /* missing is an error, even if all steps are cached */
};

/* When the image is baked anew. */
struct spec_rebake {
	struct str cron;   /* an expression (cron.h); "" for never */
	int64_t jitter_ms; /* each may be up to so much later, so that not all start at once */
};

struct spec {
	json_t *document; /* owned */
	json_t *warnings; /* owned: array of strings */
	struct str slug;  /* "" where only an image was given */
	struct str base;
	struct str *steps; /* owned array; each a whole instruction text */
	size_t step_count;
	struct str *push; /* owned array; references to push the image to */
	size_t push_count;
	struct platform platform;     /* the host's where the spec has none */
	struct str context;           /* a directory as written, or "" */
	enum layer_codec compression; /* of the image's own layers */
	int64_t timeout_ms;           /* of a step */
	bool reproducible; /* no file, image or history entry is younger than source_date_epoch */
	int64_t source_date_epoch; /* seconds; SPEC_EPOCH_OF_BASE: when the base was made */
	struct spec_resources resources;
	struct spec_rebake rebake;
	struct spec_secret *secrets; /* owned array */
	size_t secret_count;
};

int spec_parse(struct str text, struct spec *out, struct err *err) MUST_CHECK;
void spec_done(struct spec *spec);

static inline void auto_spec_release(struct spec *slot)
{
	spec_done(slot);
}
#define auto_spec AUTO(spec)

/* SPDX-License-Identifier: Apache-2.0 */
/* bake_priv.h - a running bake, for the files that share it. */
#pragma once

#include "bake/asker.h"
#include "bake/bake.h"
#include "bake/context.h"
#include "bake/convert_request.h"
#include "bake/from.h"
#include "bake/key.h"
#include "bake/sweeper.h"
#include "bake/task.h"
#include "layers/draft.h"

struct bake {
	const struct spec *spec;
	const struct bake_options *options;
	struct asker asker;
	struct crew crew;
	struct sweeper *sweeper; /* from the first step that is made */
	struct digest base;      /* its manifest's; zero for scratch */
	struct instruction *steps;
	struct digest *keys; /* of the steps; zero for one that changes no file */
	struct state state;
	size_t base_layers;  /* of those, the lowest */
	struct meta *meta;   /* a snapshot for look-ups; NULL while something runs */
	int64_t created_ms;  /* of the last step, or the base */
	int64_t clamp;       /* seconds; of a reproducible bake */
	size_t step;         /* from 1 */
	size_t named_layers; /* how many of the state's layers are in the lease */
	size_t named_steps;
	struct bake_result result;
};

/* A step's name, and what it was made of. */
struct bake_key {
	struct key_parts parts;
	struct digest content; /* of COPY's sources */
	struct digest secrets; /* of a RUN's secrets whose values count */
	struct from from;      /* owned: COPY --from's image */
	struct from *binds;    /* owned: those of a RUN's bind mounts, in their order */
	size_t bind_count;
	struct digest key;
};

static inline void auto_bake_key_release(struct bake_key *slot)
{
	from_done(&slot->from);
	for (size_t i = 0; i < slot->bind_count; i++)
		from_done(&slot->binds[i]);
	free(slot->binds);
}
#define auto_bake_key AUTO(bake_key)

/* Check the steps and resolve the base; bake_end() is due whatever is returned. */
int bake_begin(struct bake *bake, const struct spec *spec, const struct bake_options *options,
	       struct err *err) MUST_CHECK;
void bake_end(struct bake *bake, int result);

void bake_tell(const struct bake *bake, struct bake_event event);

/* The latest time in a reproducible bake's layers, or NULL. */
static inline const int64_t *bake_clamp(const struct bake *bake)
{
	return bake->spec->reproducible ? &bake->clamp : NULL;
}

/* Whether step bake->step is made again although there is a record. */
bool bake_anew(const struct bake *bake);

/* The snapshot that look-ups use; opened anew after something was made. */
int bake_snapshot(struct bake *bake, struct err *err) MUST_CHECK;
void bake_end_snapshot(struct bake *bake);

/* The whole of step bake->step. */
int bake_one_step(struct bake *bake, struct err *err) MUST_CHECK;

/*
 * Its parts, in their order. Enter: the instruction is expanded, and what it
 * changes in the configuration is changed. 1 it may make a layer, 0 it makes
 * none, -1.
 */
int bake_enter_step(struct bake *bake, struct instruction *out, struct err *err) MUST_CHECK;
int bake_key_step(struct bake *bake, struct instruction *ready, struct bake_key *out,
		  struct err *err) MUST_CHECK;
/* What a COPY reads, and a bind mount of a path in the context. Borrows all of it. */
struct context_sources bake_sources(const struct bake *bake, const struct instruction *ready);
struct context_sources bake_bind_sources(const struct bake *bake, const char *const *path);

/*
 * Append what a step reads of the context to a list (listing.h), if anything.
 * The list is kept with the components, for `hearth why`; one that is too long
 * is left out.
 */
int bake_list_context(const struct bake *bake, const struct instruction *ready,
		      const struct bake_key *key, struct buf *list, struct err *err) MUST_CHECK;
int bake_keep_list(const struct bake *bake, const struct instruction *ready,
		   const struct bake_key *key, json_t *components, struct err *err) MUST_CHECK;

/*
 * Append what a step reads of images, as its worker does while it copies. Here
 * a role reads it, and may have to make trees for that.
 */
int bake_list_from(const struct bake *bake, const struct instruction *ready,
		   const struct bake_key *key, struct buf *list, struct err *err) MUST_CHECK;

/* What the key was made of, and the base, for explanations. The caller owns it. */
json_t *bake_components(const struct bake *bake, const struct bake_key *key);

int bake_find(struct bake *bake, const struct digest *key, bool with_details,
	      struct step_record *out, struct err *err) MUST_CHECK;
int bake_apply_record(struct bake *bake, const struct step_record *record, struct err *err)
	MUST_CHECK;
int bake_apply_nothing(struct bake *bake, struct err *err) MUST_CHECK;

/* Name in the lease what was found so far, before it may rest; and an image that a step reads. */
int bake_name_held(struct bake *bake, struct err *err) MUST_CHECK;
int bake_name_image(struct bake *bake, const struct from *from, struct err *err) MUST_CHECK;

/*
 * Before and after something that takes long: collectors may work meanwhile,
 * and all that was found so far stays (layers/lease.h). The snapshot ends. A
 * bake that has no lease, since it only looks, does nothing.
 */
int bake_rest(struct bake *bake, struct err *err) MUST_CHECK;
int bake_resume(struct bake *bake, struct err *err) MUST_CHECK;

/* After all steps: turn the image's own layers into the spec's codec. */
int bake_take_variants(struct bake *bake, struct err *err) MUST_CHECK;

/*
 * The content of a RUN's bind mounts, each of which has its own digest from
 * here on, and their images. The key's content stays NULL where there is none.
 */
int bake_digest_mounts(struct bake *bake, struct instruction *ready, struct bake_key *out,
		       struct err *err) MUST_CHECK;

/* Of a RUN's secrets those whose values count. The key's secrets stay NULL where there are none. */
int bake_name_secrets(struct bake *bake, const struct instruction *ready, struct bake_key *out,
		      struct err *err) MUST_CHECK;

/* ERR_NOT_FOUND for a secret that nobody gave. */
int bake_check_mounts(const struct bake *bake, const struct instruction *ready, struct err *err)
	MUST_CHECK;

/* Put "step 2 (RUN make)" before an error; returns -1. */
int bake_name_step(const struct bake *bake, struct err *err);

/*
 * Everything that a worker needs to make a step, from its expanded instruction.
 * Its parts are borrowed from the bake; its lists are freed by bake_free_task().
 */
void bake_fill_task(const struct bake *bake, const struct instruction *ready,
		    const struct key_parts *parts, const struct digest *key, struct task *task);
void bake_free_task(struct task *task);

/* The images that a step reads, as its task has them; how many. */
size_t bake_task_images(const struct bake_key *key,
			struct task_image images[static MOUNTS_MAX + 1]);

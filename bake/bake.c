/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bake.c - the pipeline, and the table of contents of this program.
 *
 *	steps are read and judged            instruction.c
 *	the base is resolved                 base.c -> registry/
 *	each step is expanded and keyed      expand.c, context.c, key.c
 *	    found                            layers/step.c
 *	    or made by a worker              bake_task.c -> asker.c -> work_step.c -> sandbox/,
 *layers/ and applied to the state         state.c config and manifest are published    image.c
 */
#include "bake/bake_priv.h"

#include "bake/base.h"
#include "bake/context.h"
#include "bake/expand.h"
#include "bake/image.h"
#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/step.h"

#define STEP_NAME_MAX ((size_t)80)
#define BAKE_SWEEP_MS 2000 /* what a step that failed had written should give its space back */

static void bake_tell(const struct bake *bake, struct bake_event event)
{
	event.step = bake->step;
	event.of = bake->spec->step_count;
	if (bake->options->event)
		bake->options->event(bake->options->event_ctx, &event);
}

static void bake_hear_log(void *ctx, struct str bytes)
{
	bake_tell(ctx, (struct bake_event){.kind = BAKE_LOG, .text = bytes});
}

static void bake_hear_pull(void *ctx, const json_t *progress)
{
	struct bake_event event = {.kind = BAKE_PULL};
	struct digest digest;

	if (base_read_progress(progress, &digest, &event))
		bake_tell(ctx, event);
}

static int bake_check_context(const struct bake *bake, const struct instruction *instruction,
			      struct err *err)
{
	if (instruction->kind != INSTRUCTION_COPY)
		return 0;
	if (bake->options->contextfd >= 0)
		return context_check(bake->options->contextfd, err);
	return err_set(err, ERR_INVALID,
		       "COPY needs a context: give --context DIR, or `context` in the spec");
}

/* All steps are judged before anything is pulled or run. */
static int bake_read_steps(struct bake *bake, struct err *err)
{
	bake->steps = calloc(bake->spec->step_count + 1, sizeof(*bake->steps));
	bake->keys = calloc(bake->spec->step_count + 1, sizeof(*bake->keys));
	if (!bake->steps || !bake->keys)
		abort();
	for (size_t i = 0; i < bake->spec->step_count; i++) {
		if (instruction_parse(bake->spec->steps[i], &bake->steps[i], err) < 0 ||
		    bake_check_context(bake, &bake->steps[i], err) < 0) {
			bake->result.failed_step = i + 1;
			return err_ctx(err, "step %zu", i + 1);
		}
	}
	return 0;
}

static int bake_resolve_base(struct bake *bake, struct err *err)
{
	struct digest digest;
	bool cached;
	struct str created = {0};

	bake_tell(bake, (struct bake_event){.kind = BAKE_BASE, .text = bake->spec->base});
	if (base_resolve(bake->spec, bake->options, &bake->asker, &bake->state, &digest, &cached,
			 err) < 0)
		return -1;
	if (json_get_string(bake->state.config, "", "created", &created, err) == 1 &&
	    clock_parse(created, &bake->created_ms, err) < 0)
		bake->created_ms = 0; /* a base may say anything */
	bake_tell(bake,
		  (struct bake_event){.kind = BAKE_BASE_DONE, .digest = &digest, .cached = cached});
	return 0;
}

/* The snapshot that look-ups use; opened anew after something was made. */
static int bake_snapshot(struct bake *bake, struct err *err)
{
	return bake->meta ? 0 : meta_begin(bake->options->store, META_READ, &bake->meta, err);
}

static void bake_end_snapshot(struct bake *bake)
{
	meta_abort(steal_ptr(&bake->meta));
}

static int bake_apply_record(struct bake *bake, const struct step_record *record, struct err *err)
{
	const struct instruction *instruction = &bake->steps[bake->step - 1];
	struct state_layer layer = {
		.blob = record->blob,
		.diff_id = record->diff_id,
		.size = record->blob_size,
		.media_type = MEDIA_OCI_LAYER_ZSTD,
	};

	bake->created_ms = record->created_ms;
	return state_add_step(&bake->state, buf_str(&instruction->text), record->created_ms,
			      record->empty ? NULL : &layer, err);
}

static int bake_make(struct bake *bake, const struct instruction *ready,
		     const struct key_parts *parts, const struct digest *key, bool *out_shared,
		     struct err *err)
{
	AUTO(json) json_t *components = key_components(parts);
	struct task task;
	int result;

	if (!bake->sweeper && sweeper_start(bake->options->store, &bake->sweeper, err) < 0)
		return -1;
	bake_fill_task(bake, ready, parts, key, &task);
	task.components = components;
	bake_end_snapshot(bake);
	result = asker_run_step(&bake->asker, &task, bake->options->contextfd, out_shared,
				&bake->result.exit_code, err);
	sweeper_wake(bake->sweeper);
	bake_free_task(&task);
	return result;
}

static int bake_find(struct bake *bake, const struct digest *key, bool with_details,
		     struct step_record *out, struct err *err)
{
	if (bake_snapshot(bake, err) < 0)
		return -1;
	return step_find(bake->meta, key, with_details, out, err);
}

/* COPY's sources; other steps read nothing from outside. */
static int bake_digest_sources(struct bake *bake, const struct instruction *ready,
			       struct digest *out, struct err *err)
{
	if (ready->kind != INSTRUCTION_COPY)
		return 0;
	bake_end_snapshot(bake); /* it must not span the reading of files */
	return context_digest(bake->options->contextfd, (const char *const *)ready->args.at,
			      ready->args.count - 1, bake->options->cancel, out, err);
}

static int bake_made_step(struct bake *bake, const struct instruction *ready, struct err *err)
{
	struct digest content;
	struct key_parts parts = {
		.state = &bake->state,
		.instruction = buf_str(&ready->text),
		.content = ready->kind == INSTRUCTION_COPY ? &content : NULL,
		.network_none = ready->network_none,
	};
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	struct bake_event done = {.kind = BAKE_STEP_DONE, .cached = true};
	struct digest key;
	int found = 0;

	if (bake_digest_sources(bake, ready, &content, err) < 0)
		return -1;
	key_make(&parts, &key);
	bake->keys[bake->step - 1] = key;
	if (!bake->options->no_cache)
		found = bake_find(bake, &key, false, &record, err);
	if (found < 0)
		return -1;
	if (found == 0) {
		if (bake_make(bake, ready, &parts, &key, &done.shared, err) < 0)
			return -1;
		found = bake_find(bake, &key, true, &record, err);
		done.cached = false;
	}
	if (found == 0)
		return err_set(err, ERR_UNAVAILABLE, "its record is gone; bake again");
	if (found < 0 || bake_apply_record(bake, &record, err) < 0)
		return -1;
	bake->result.cached_steps += done.cached;
	done.empty = record.empty;
	done.cut_off = record.cut_off;
	done.duration_ms = record.duration_ms;
	done.size = record.empty ? 0 : record.blob_size;
	bake_tell(bake, done);
	return 0;
}

/* What changes the configuration and no file: done at once, and never run. */
static int bake_noted_step(struct bake *bake, struct err *err)
{
	const struct instruction *instruction = &bake->steps[bake->step - 1];
	bool cached = !bake->options->no_cache;

	if (state_add_step(&bake->state, buf_str(&instruction->text), bake->created_ms, NULL, err) <
	    0)
		return -1;
	bake->result.cached_steps += cached;
	bake_tell(bake,
		  (struct bake_event){.kind = BAKE_STEP_DONE, .cached = cached, .empty = true});
	return 0;
}

static int bake_env_step(struct bake *bake, const struct instruction *ready, struct err *err)
{
	for (size_t i = 0; i + 1 < ready->args.count; i += 2) {
		if (state_set_env(&bake->state, str_of(ready->args.at[i]),
				  str_of(ready->args.at[i + 1]), err) < 0)
			return -1;
	}
	return bake_noted_step(bake, err);
}

static int bake_workdir_step(struct bake *bake, const struct instruction *ready, struct err *err)
{
	if (state_set_workdir(&bake->state, str_of(ready->args.at[0]), err) < 0)
		return -1;
	if (str_equal(state_workdir(&bake->state), STR("/")))
		return bake_noted_step(bake, err);
	return bake_made_step(bake, ready, err);
}

static int bake_one_step(struct bake *bake, struct err *err)
{
	const struct instruction *instruction = &bake->steps[bake->step - 1];
	auto_instruction struct instruction ready = {0};

	bake_tell(bake,
		  (struct bake_event){.kind = BAKE_STEP, .text = buf_str(&instruction->text)});
	if (cancel_check(bake->options->cancel, err) < 0 ||
	    expand_instruction(instruction, &bake->state, &ready, err) < 0)
		return -1;
	switch (instruction->kind) {
	case INSTRUCTION_ENV:
		return bake_env_step(bake, &ready, err);
	case INSTRUCTION_WORKDIR:
		return bake_workdir_step(bake, &ready, err);
	case INSTRUCTION_RUN:
	case INSTRUCTION_COPY:
		break;
	}
	return bake_made_step(bake, &ready, err);
}

/* "step 2 (RUN make): ...": the number, and enough of its first line to know it. */
static int bake_name_step(const struct bake *bake, struct err *err)
{
	struct str text = buf_str(&bake->steps[bake->step - 1].text);
	const char *end = memchr(text.ptr, '\n', text.len);
	size_t n = end ? (size_t)(end - text.ptr) : text.len;
	bool cut = n > STEP_NAME_MAX || end;

	n = n > STEP_NAME_MAX ? STEP_NAME_MAX : n;
	return err_ctx(err, "step %zu (%.*s%s)", bake->step, (int)n, text.ptr, cut ? "..." : "");
}

static int bake_all_steps(struct bake *bake, struct err *err)
{
	for (bake->step = 1; bake->step <= bake->spec->step_count; bake->step++) {
		if (bake_one_step(bake, err) < 0) {
			bake->result.failed_step = bake->step;
			bake_tell(bake, (struct bake_event){.kind = BAKE_STEP_FAILED,
							    .text = str_of(err->text)});
			return bake_name_step(bake, err);
		}
	}
	bake->step = 0;
	bake->result.steps = bake->spec->step_count;
	return 0;
}

static int bake_store_image(struct bake *bake, struct str config, struct str manifest,
			    struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct store *store = bake->options->store;
	struct digest digest;
	const struct image image = {
		.manifest = bake->result.image,
		.size = bake->result.size,
		.layers = bake->result.layers,
		.created_ms = bake->created_ms,
		.baked_ms = clock_now_ms(),
		.slug = bake->spec->slug,
		.base = bake->spec->base,
	};

	bake_end_snapshot(bake);
	if (blob_put(store, config, &digest, err) < 0 ||
	    blob_put(store, manifest, &digest, err) < 0 ||
	    meta_begin(store, META_WRITE, &meta, err) < 0 || image_put(meta, &image, err) < 0 ||
	    image_put_steps(meta, &image.manifest, bake->keys, bake->spec->step_count, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static uint64_t bake_layers_size(const struct state *state)
{
	uint64_t size = 0;

	for (size_t i = 0; i < state->layer_count; i++)
		size += state->layers[i].size;
	return size;
}

/* Write config and manifest, unless this very image is known. */
static int bake_publish(struct bake *bake, struct err *err)
{
	auto_buf struct buf config = BUF_INIT(IMAGE_CONFIG_MAX);
	auto_buf struct buf manifest = BUF_INIT(MANIFEST_MAX);
	auto_image struct image known = {0};
	struct bake_result *result = &bake->result;
	struct digest digest;
	int found;

	if (state_write_config(&bake->state, &config, err) < 0)
		return -1;
	digest_of(buf_str(&config), &digest);
	if (state_write_manifest(&bake->state, &digest, config.len, &manifest, err) < 0)
		return -1;
	digest_of(buf_str(&manifest), &result->image);
	result->layers = bake->state.layer_count;
	result->size = bake_layers_size(&bake->state) + config.len + manifest.len;
	if (bake_snapshot(bake, err) < 0)
		return -1;
	found = image_find(bake->meta, &result->image, &known, err);
	if (found == 0)
		found = bake_store_image(bake, buf_str(&config), buf_str(&manifest), err);
	if (found < 0)
		return err_ctx(err, "publish the image");
	bake_tell(bake, (struct bake_event){
				.kind = BAKE_DONE, .digest = &result->image, .size = result->size});
	return 0;
}

static void bake_done(struct bake *bake, int result)
{
	crew_close(&bake->crew);
	sweeper_stop(bake->sweeper, result == 0 ? 0 : BAKE_SWEEP_MS);
	bake_end_snapshot(bake);
	for (size_t i = 0; bake->steps && i < bake->spec->step_count; i++)
		instruction_done(&bake->steps[i]);
	free(bake->steps);
	free(bake->keys);
	state_done(&bake->state);
}

int bake_run(const struct spec *spec, const struct bake_options *options, struct bake_result *out,
	     struct err *err)
{
	struct bake bake = {
		.spec = spec,
		.options = options,
		.crew = CREW_INIT(options->worker_path),
	};
	int result = -1;

	bake.asker = (struct asker){
		.store = options->store,
		.worker_path = options->puller_path,
		.crew = &bake.crew,
		.log = bake_hear_log,
		.progress = bake_hear_pull,
		.ctx = &bake,
		.cancel = options->cancel,
	};
	if (bake_read_steps(&bake, err) == 0 && bake_resolve_base(&bake, err) == 0 &&
	    bake_all_steps(&bake, err) == 0)
		result = bake_publish(&bake, err);
	*out = bake.result;
	bake_done(&bake, result);
	return result;
}

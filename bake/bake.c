/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bake.c - the pipeline, and the table of contents of this program.
 *
 *	steps are read and judged            instruction.c
 *	the base is resolved                 base.c -> registry/
 *	each step is expanded and keyed      bake_step.c -> expand.c, context.c, key.c
 *	    found                            layers/step.c
 *	    or made by a worker              asker.c -> work_step.c -> sandbox/, layers/
 *	    and applied to the state         state.c
 *	its layers are of the wanted codec   bake_variants.c -> layers/variant.c
 *	config and manifest are published    image.c
 */
#include "bake/bake_priv.h"

#include "bake/base.h"
#include "bake/context.h"
#include "bake/image.h"
#include "bake/lines_priv.h"
#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/use.h"

#include <stdio.h>

#define BAKE_USE_MS \
	(3600 * (int64_t)1000) /* a younger record shows by its own time that it is in use */
#define BAKE_SWEEP_MS 2000     /* for the space of what a failed step had written to come back */

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
	bool reads =
		instruction->kind == INSTRUCTION_COPY ? !instruction->from : instruction->binds;

	if (!reads)
		return 0;
	if (bake->options->contextfd >= 0)
		return context_check(bake->options->contextfd, err);
	return err_set(err, ERR_INVALID,
		       "%s needs a context: give --context DIR, or `context` in the spec",
		       instruction->binds ? "a bind mount" : "COPY");
}

/* A command of another platform cannot run here; files can be placed, and variables set. */
static int bake_check_platform(const struct bake *bake, const struct instruction *instruction,
			       struct err *err)
{
	const struct platform *wanted = &bake->spec->platform;
	char wanted_text[PLATFORM_TEXT_MAX];
	char host_text[PLATFORM_TEXT_MAX];
	struct platform host;

	platform_host(&host);
	if (instruction->kind != INSTRUCTION_RUN ||
	    (strcmp(host.os, wanted->os) == 0 &&
	     strcmp(host.architecture, wanted->architecture) == 0))
		return 0;
	return err_set(err, ERR_REFUSED,
		       "RUN would run a command of %s, and this host is %s: bake it on a host of "
		       "that platform, or have no RUN (COPY, ENV and WORKDIR work here)",
		       platform_format(wanted, wanted_text), platform_format(&host, host_text));
}

/*
 * COPY --from's and mounts' images are named as bases are. A name with a
 * variable in it is checked once that is expanded.
 */
static int bake_check_images(const struct bake *bake, const struct instruction *instruction,
			     struct err *err)
{
	if (!bake->options->no_host_files || !instruction->from)
		return 0;
	return base_check_remote(str_of(instruction->from), err) < 0 ? err_ctx(err, "--from") : 0;
}

static void bake_warn_of_steps(struct bake *bake)
{
	for (bake->step = 1; bake->step <= bake->spec->step_count; bake->step++) {
		const char *warning = bake->steps[bake->step - 1].warning;

		if (warning)
			bake_tell(bake, (struct bake_event){.kind = BAKE_WARNING,
							    .text = str_of(warning)});
	}
	bake->step = 0;
}

/* Only the spec's own steps are run. */
static void bake_warn_of_triggers(struct bake *bake)
{
	const json_t *config = json_object_get(bake->state.config, "config");
	char text[96];
	size_t count = json_array_size(json_object_get(config, "OnBuild"));

	if (count == 0)
		return;
	(void)snprintf(text, sizeof(text),
		       "the base has %zu ONBUILD triggers, which are kept and not run", count);
	bake_tell(bake, (struct bake_event){.kind = BAKE_WARNING, .text = str_of(text)});
}

static void bake_blame(struct bake *bake, size_t step, const struct err *why)
{
	bake->result.failed_step = step;
	if (why->kind == ERR_REFUSED)
		bake->result.failed_line = lines_blame(bake->spec->steps[step - 1]);
}

/* All steps are judged before anything is pulled or run. */
static int bake_read_steps(struct bake *bake, struct err *err)
{
	if (bake->options->from_step > bake->spec->step_count)
		return err_set(err, ERR_INVALID, "from step %zu: the spec has %zu",
			       bake->options->from_step, bake->spec->step_count);
	bake->steps = calloc(bake->spec->step_count + 1, sizeof(*bake->steps));
	bake->keys = calloc(bake->spec->step_count + 1, sizeof(*bake->keys));
	if (!bake->steps || !bake->keys)
		abort();
	for (size_t i = 0; i < bake->spec->step_count; i++) {
		if (instruction_parse(bake->spec->steps[i], &bake->steps[i], err) < 0 ||
		    bake_check_platform(bake, &bake->steps[i], err) < 0 ||
		    bake_check_images(bake, &bake->steps[i], err) < 0 ||
		    bake_check_context(bake, &bake->steps[i], err) < 0) {
			bake_blame(bake, i + 1, err);
			return err_ctx(err, "step %zu", i + 1);
		}
	}
	bake_warn_of_steps(bake);
	return 0;
}

/* When the base was made, or 1970 where it says an earlier time. */
static int64_t bake_epoch(const struct bake *bake)
{
	if (bake->spec->source_date_epoch != SPEC_EPOCH_OF_BASE)
		return bake->spec->source_date_epoch;
	return bake->created_ms > 0 ? bake->created_ms / 1000 : 0;
}

static int bake_resolve_base(struct bake *bake, struct err *err)
{
	bool cached;
	struct str created = {0};

	bake_tell(bake, (struct bake_event){.kind = BAKE_BASE, .text = bake->spec->base});
	if (base_resolve(bake->spec, bake->options, &bake->asker, &bake->state, &bake->base,
			 &cached, err) < 0)
		return -1;
	bake->base_layers = bake->state.layer_count;
	if (json_get_string(bake->state.config, "", "created", &created, err) == 1 &&
	    clock_parse(created, &bake->created_ms, err) < 0)
		bake->created_ms = 0; /* a base may say anything */
	bake->clamp = bake_epoch(bake);
	bake_tell(bake, (struct bake_event){
				.kind = BAKE_BASE_DONE, .digest = &bake->base, .cached = cached});
	bake_warn_of_triggers(bake);
	return 0;
}

static int bake_all_steps(struct bake *bake, struct err *err)
{
	for (bake->step = 1; bake->step <= bake->spec->step_count; bake->step++) {
		if (bake_one_step(bake, err) < 0) {
			bake_blame(bake, bake->step, err);
			bake_tell(bake,
				  (struct bake_event){.kind = BAKE_STEP_FAILED,
						      .text = str_of(err->text),
						      .cancelled = err->kind == ERR_CANCELLED});
			return bake_name_step(bake, err);
		}
	}
	bake->step = 0;
	bake->result.steps = bake->spec->step_count;
	return 0;
}

/* The record that makes the image known. */
static int bake_record_image(struct bake *bake, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	const struct image image = {
		.manifest = bake->result.image,
		.size = bake->result.size,
		.layers = bake->result.layers,
		.created_ms = bake->created_ms,
		.baked_ms = clock_now_ms(),
		.slug = bake->spec->slug,
		.base = bake->spec->base,
		.base_digest = bake->base,
	};

	if (meta_begin(bake->options->store, META_WRITE, &meta, err) < 0 ||
	    image_put(meta, &image, err) < 0 ||
	    image_put_steps(meta, &image.manifest, bake->keys, bake->spec->step_count, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static int bake_store_image(struct bake *bake, struct str config, struct str manifest,
			    struct err *err)
{
	struct store *store = bake->options->store;
	struct digest digest;

	bake_end_snapshot(bake);
	if (blob_put(store, config, &digest, err) < 0 ||
	    blob_put(store, manifest, &digest, err) < 0)
		return -1;
	return bake->options->unpublished ? 0 : bake_record_image(bake, err);
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
	result->base = bake->base;
	result->created_ms = bake->created_ms;
	result->layers = bake->state.layer_count;
	result->size = bake_layers_size(&bake->state) + config.len + manifest.len;
	if (bake_snapshot(bake, err) < 0)
		return -1;
	found = image_find(bake->meta, &result->image, &known, err);
	if (found == 0)
		found = bake_store_image(bake, buf_str(&config), buf_str(&manifest), err);
	if (found < 0)
		return err_ctx(err, "publish the image");
	if (found == 1 && clock_now_ms() - known.baked_ms > BAKE_USE_MS)
		use_note(bake->options->store, &result->image);
	if (bake->options->unpublished)
		result->keys = steal_ptr(&bake->keys);
	bake_tell(bake, (struct bake_event){
				.kind = BAKE_DONE, .digest = &result->image, .size = result->size});
	return 0;
}

void bake_end(struct bake *bake, int result)
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

int bake_begin(struct bake *bake, const struct spec *spec, const struct bake_options *options,
	       struct err *err)
{
	*bake = (struct bake){
		.spec = spec,
		.options = options,
		.crew = CREW_INIT(options->worker_path),
	};
	bake->asker = (struct asker){
		.store = options->store,
		.worker_path = options->puller_path,
		.crew = &bake->crew,
		.log = bake_hear_log,
		.progress = bake_hear_pull,
		.ctx = bake,
		.cancel = options->cancel,
	};
	return bake_read_steps(bake, err) < 0 ? -1 : bake_resolve_base(bake, err);
}

static int bake_check_secrets(const struct spec *spec, const struct bake_options *options,
			      struct err *err)
{
	for (size_t i = 0; i < spec->secret_count; i++) {
		struct str id = spec->secrets[i].id;

		if (spec->secrets[i].required && !secrets_find(options->secrets, id))
			return err_set(err, ERR_NOT_FOUND,
				       "the secret " STR_FMT " is required by the spec: give "
				       "--secret id=" STR_FMT ",src=FILE, or name it in the "
				       "daemon's configuration",
				       STR_ARG(id), STR_ARG(id));
	}
	return 0;
}

int bake_run(const struct spec *spec, const struct bake_options *options, struct bake_result *out,
	     struct err *err)
{
	struct bake bake;
	int result;

	*out = (struct bake_result){0};
	if (bake_check_secrets(spec, options, err) < 0)
		return -1;
	result = bake_begin(&bake, spec, options, err);
	if (result == 0)
		result = bake_all_steps(&bake, err);
	if (result == 0)
		result = bake_take_variants(&bake, err);
	if (result == 0)
		result = bake_publish(&bake, err);
	*out = bake.result;
	bake_end(&bake, result);
	return result;
}

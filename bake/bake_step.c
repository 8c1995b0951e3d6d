/* SPDX-License-Identifier: Apache-2.0 */
/* bake_step.c - one step of a bake: entered, keyed, found or made, applied. */
#include "bake/bake_priv.h"

#include "bake/context.h"
#include "bake/expand.h"
#include "bake/gc.h"
#include "layers/digest_json.h"

#define STEP_NAME_MAX ((size_t)80)

void bake_tell(const struct bake *bake, struct bake_event event)
{
	event.step = bake->step;
	event.of = bake->spec->step_count;
	if (bake->options->event)
		bake->options->event(bake->options->event_ctx, &event);
}

bool bake_anew(const struct bake *bake)
{
	const struct bake_options *options = bake->options;

	return options->no_cache ||
	       (options->from_step > 0 && !options->rebake && bake->step >= options->from_step);
}

/* Whether the record of an earlier run may be used. */
static bool bake_may_be_found(const struct bake *bake)
{
	return !bake->options->rebake || bake->step < bake->options->from_step ||
	       bake->steps[bake->step - 1].kind != INSTRUCTION_RUN;
}

int bake_snapshot(struct bake *bake, struct err *err)
{
	return bake->meta ? 0 : meta_begin(bake->options->store, META_READ, &bake->meta, err);
}

void bake_end_snapshot(struct bake *bake)
{
	meta_abort(steal_ptr(&bake->meta));
}

static void bake_set_time(struct bake *bake, int64_t made_ms)
{
	bake->created_ms = bake->spec->reproducible ? bake->clamp * 1000 : made_ms;
}

int bake_apply_record(struct bake *bake, const struct step_record *record, struct err *err)
{
	const struct instruction *instruction = &bake->steps[bake->step - 1];
	struct state_layer layer = {
		.blob = record->blob,
		.diff_id = record->diff_id,
		.size = record->blob_size,
	};

	(void)snprintf(layer.media_type, sizeof(layer.media_type), "%s",
		       manifest_layer_type(record->codec));
	bake_set_time(bake, record->created_ms);
	return state_add_step(&bake->state, buf_str(&instruction->text), bake->created_ms,
			      record->empty ? NULL : &layer, err);
}

int bake_apply_nothing(struct bake *bake, struct err *err)
{
	bake_set_time(bake, bake->created_ms);
	return state_add_step(&bake->state, buf_str(&bake->steps[bake->step - 1].text),
			      bake->created_ms, NULL, err);
}

json_t *bake_components(const struct bake *bake, const struct bake_key *key)
{
	static const struct digest scratch;
	json_t *components = key_components(&key->parts);

	(void)json_object_set_new(components, "text",
				  json_from_str(buf_str(&bake->steps[bake->step - 1].text)));
	if (!digest_equal(&bake->base, &scratch))
		digest_json_set(components, "base", &bake->base);
	return components;
}

static int bake_ask_step(struct bake *bake, const struct instruction *ready,
			 const struct bake_key *key, const struct task *task, bool *out_shared,
			 struct err *err)
{
	int result = bake_keep_list(bake, ready, key, task->components, err);

	if (result == 0)
		result = asker_run_step(&bake->asker, task, bake->options->contextfd, out_shared,
					&bake->result.exit_code, err);
	bake->result.step_late = result < 0 && err->kind == ERR_TIMEOUT;
	sweeper_wake(bake->sweeper);
	return result;
}

/*
 * While it is made the bake rests, so that a collection may take what it does not
 * hold; one that cannot rest would wait for itself. A step that found no room for
 * its result is made once more where something can go.
 */
static int bake_ask_step_with_room(struct bake *bake, const struct instruction *ready,
				   const struct bake_key *key, const struct task *task,
				   bool *out_shared, struct err *err)
{
	const struct bake_options *options = bake->options;
	struct err why;
	int more;

	if (bake_rest(bake, err) < 0)
		return -1;
	if (bake_ask_step(bake, ready, key, task, out_shared, err) == 0)
		return 0;
	if (err->kind != ERR_FULL)
		return -1;
	more = gc_make_more_room(options->store, options->gc, options->cancel, &why);
	if (more <= 0) {
		if (more < 0)
			*err = why;
		return -1;
	}
	bake_tell(bake, (struct bake_event){
				.kind = BAKE_WARNING,
				.text = STR("there was no room for its result: what nothing needs "
					    "was removed, and it is made once more"),
			});
	return bake_ask_step(bake, ready, key, task, out_shared, err);
}

static int bake_make(struct bake *bake, const struct instruction *ready, const struct bake_key *key,
		     bool *out_shared, struct err *err)
{
	AUTO(json) json_t *components = bake_components(bake, key);
	struct task_image images[MOUNTS_MAX + 1];
	struct task task;
	int result;

	if (bake_check_mounts(bake, ready, err) < 0)
		return -1;
	bake_tell(bake, (struct bake_event){.kind = BAKE_STEP_MADE,
					    .text = buf_str(&bake->steps[bake->step - 1].text)});
	if (!bake->sweeper && sweeper_start(bake->options->store, &bake->sweeper, err) < 0)
		return -1;
	bake_fill_task(bake, ready, &key->parts, &key->key, &task);
	task.components = components;
	task.images = images;
	task.image_count = bake_task_images(key, images);
	result = bake_ask_step_with_room(bake, ready, key, &task, out_shared, err);
	bake_free_task(&task);
	return result < 0 ? -1 : bake_resume(bake, err);
}

int bake_find(struct bake *bake, const struct digest *key, bool with_details,
	      struct step_record *out, struct err *err)
{
	const char *rebake = bake->options->rebake;
	int found = 0;

	if (bake_snapshot(bake, err) < 0)
		return -1;
	if (rebake)
		found = draft_find(bake->meta, str_of(rebake), key, with_details, out, err);
	if (found != 0 || !bake_may_be_found(bake))
		return found;
	return step_find(bake->meta, key, with_details, out, err);
}

/* The image that is copied from counts with all of its layers. */
static int bake_find_image(struct bake *bake, const struct instruction *ready, struct bake_key *out,
			   struct err *err)
{
	if (bake_name_held(bake, err) < 0 ||
	    from_resolve(str_of(ready->from), bake->spec, bake->options, &bake->asker, &out->from,
			 err) < 0 ||
	    bake_name_image(bake, &out->from, err) < 0)
		return -1;
	out->content = out->from.chain_id;
	return 0;
}

/* COPY's sources; other steps read nothing from outside. */
static int bake_digest_sources(struct bake *bake, const struct instruction *ready,
			       struct bake_key *out, struct err *err)
{
	const struct context_sources sources = bake_sources(bake, ready);

	if (ready->kind != INSTRUCTION_COPY)
		return 0;
	bake_end_snapshot(bake); /* it must not span the reading of files, or a pull */
	if (ready->from)
		return bake_find_image(bake, ready, out, err);
	return context_digest(&sources, bake->options->cancel, &out->content, err);
}

static enum key_sight bake_sight(const struct instruction *ready)
{
	const struct words *args = &ready->args;

	if (ready->kind == INSTRUCTION_RUN)
		return KEY_SEES_ALL;
	return ready->kind == INSTRUCTION_COPY && args->at[args->count - 1][0] == '/'
		       ? KEY_SEES_NOTHING
		       : KEY_SEES_PLACE;
}

int bake_key_step(struct bake *bake, struct instruction *ready, struct bake_key *out,
		  struct err *err)
{
	out->parts = (struct key_parts){
		.state = &bake->state,
		.instruction = buf_str(&ready->text),
		.content = ready->kind == INSTRUCTION_COPY ? &out->content : NULL,
		.network_none = ready->network_none,
		.detached = ready->link,
		.clamp = bake_clamp(bake),
		.sight = bake_sight(ready),
	};
	if (bake_digest_sources(bake, ready, out, err) < 0 ||
	    bake_digest_mounts(bake, ready, out, err) < 0 ||
	    bake_name_secrets(bake, ready, out, err) < 0)
		return -1;
	key_make(&out->parts, &out->key);
	return 0;
}

static void bake_tell_done(const struct bake *bake, const struct step_record *record, bool cached,
			   bool shared)
{
	bake_tell(bake, (struct bake_event){
				.kind = BAKE_STEP_DONE,
				.cached = cached,
				.shared = shared,
				.empty = record->empty,
				.cut_off = record->cut_off,
				.duration_ms = record->duration_ms,
				.size = record->empty ? 0 : record->blob_size,
				.linked = record->linked_bytes,
			});
}

static int bake_made_step(struct bake *bake, struct instruction *ready, struct err *err)
{
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	auto_bake_key struct bake_key key = {0};
	bool shared = false;
	bool cached;
	int found = 0;

	if (bake_key_step(bake, ready, &key, err) < 0)
		return -1;
	bake->keys[bake->step - 1] = key.key;
	if (!bake_anew(bake))
		found = bake_find(bake, &key.key, false, &record, err);
	cached = found == 1;
	if (found == 0) {
		if (bake_make(bake, ready, &key, &shared, err) < 0)
			return -1;
		found = bake_find(bake, &key.key, true, &record, err);
	}
	if (found == 0)
		return err_set(err, ERR_UNAVAILABLE, "its record is gone; bake again");
	if (found < 0 || bake_apply_record(bake, &record, err) < 0)
		return -1;
	bake->result.cached_steps += cached;
	bake->result.linked_bytes += record.linked_bytes;
	bake_tell_done(bake, &record, cached, shared);
	return 0;
}

/* A step that changes the configuration and no file: applied at once, and never run. */
static int bake_noted_step(struct bake *bake, struct err *err)
{
	bool cached = !bake_anew(bake);

	if (bake_apply_nothing(bake, err) < 0)
		return -1;
	bake->result.cached_steps += cached;
	bake_tell(bake,
		  (struct bake_event){.kind = BAKE_STEP_DONE, .cached = cached, .empty = true});
	return 0;
}

static int bake_set_env(struct bake *bake, const struct instruction *ready, struct err *err)
{
	for (size_t i = 0; i + 1 < ready->args.count; i += 2) {
		if (state_set_env(&bake->state, str_of(ready->args.at[i]),
				  str_of(ready->args.at[i + 1]), err) < 0)
			return -1;
	}
	return 0;
}

/* What a machine mounts there is not the image's. A link to it is found by the machine. */
static int bake_check_workdir(const struct bake *bake, struct err *err)
{
	static const struct str mounted[] = {STR("/proc"), STR("/sys"), STR("/dev")};
	struct str path = state_workdir(&bake->state);

	for (size_t i = 0; i < sizeof(mounted) / sizeof(mounted[0]); i++) {
		size_t len = mounted[i].len;

		if (str_starts(path, mounted[i]) && (path.len == len || path.ptr[len] == '/'))
			return err_set(err, ERR_REFUSED,
				       "WORKDIR: nothing can be run in /proc, /sys or /dev");
	}
	return 0;
}

int bake_enter_step(struct bake *bake, struct instruction *out, struct err *err)
{
	const struct instruction *instruction = &bake->steps[bake->step - 1];

	if (cancel_check(bake->options->cancel, err) < 0 ||
	    expand_instruction(instruction, &bake->state, out, err) < 0)
		return -1;
	switch (instruction->kind) {
	case INSTRUCTION_ENV:
		return bake_set_env(bake, out, err);
	case INSTRUCTION_WORKDIR:
		if (state_set_workdir(&bake->state, str_of(out->args.at[0]), err) < 0 ||
		    bake_check_workdir(bake, err) < 0)
			return -1;
		return !str_equal(state_workdir(&bake->state), STR("/"));
	case INSTRUCTION_RUN:
	case INSTRUCTION_COPY:
		break;
	}
	return 1;
}

int bake_one_step(struct bake *bake, struct err *err)
{
	auto_instruction struct instruction ready = {0};
	int makes;

	bake_tell(bake, (struct bake_event){.kind = BAKE_STEP,
					    .text = buf_str(&bake->steps[bake->step - 1].text)});
	makes = bake_enter_step(bake, &ready, err);
	if (makes <= 0)
		return makes < 0 ? -1 : bake_noted_step(bake, err);
	return bake_made_step(bake, &ready, err);
}

/* "step 2 (RUN make): ...": the number, and enough of its first line to know it. */
int bake_name_step(const struct bake *bake, struct err *err)
{
	struct str text = buf_str(&bake->steps[bake->step - 1].text);
	const char *end = memchr(text.ptr, '\n', text.len);
	size_t n = end ? (size_t)(end - text.ptr) : text.len;
	bool cut = n > STEP_NAME_MAX || end;

	n = n > STEP_NAME_MAX ? STEP_NAME_MAX : n;
	return err_ctx(err, "step %zu (%.*s%s)", bake->step, (int)n, text.ptr, cut ? "..." : "");
}

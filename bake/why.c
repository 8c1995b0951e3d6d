/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/why.h"

#include "bake/bake_priv.h"
#include "bake/differences.h"
#include "bake/listing.h"

#include <string.h>

/* The search for the nearest step. */
struct why_search {
	struct meta *meta;
	const json_t *components; /* of the step in question */
	struct digest key;        /* of the best so far */
	json_t *found;            /* owned: its components; NULL while there is none */
	size_t likeness;
	size_t wording;
	int64_t at_ms;
};

void why_done(struct why *why)
{
	free(why->text);
	json_decref(why->differences);
	*why = (struct why){0};
}

/* "RUN" of "RUN make": steps of another instruction are never like it. */
static struct str why_instruction(const json_t *components)
{
	struct str text = json_str(json_object_get(components, "instruction"));
	struct str name;

	(void)str_cut(&text, ' ', &name);
	return name;
}

/* Nothing below is a place, too. */
static bool why_is_beside(const json_t *a, const json_t *b)
{
	const json_t *parent = json_object_get(a, "parent");
	const json_t *other = json_object_get(b, "parent");

	return (!parent && !other) || json_equal(parent, other);
}

/* Near enough to compare: at the same place, or of the same words. */
static bool why_is_like(const json_t *a, const json_t *b)
{
	return str_equal(why_instruction(a), why_instruction(b)) &&
	       (json_equal(json_object_get(a, "instruction"), json_object_get(b, "instruction")) ||
		why_is_beside(a, b));
}

/* Most in common, then most of the words, then the latest. */
static bool why_is_nearer(const struct why_search *search, size_t likeness, size_t wording,
			  int64_t at_ms)
{
	if (!search->found || likeness != search->likeness)
		return !search->found || likeness > search->likeness;
	return wording != search->wording ? wording > search->wording : at_ms >= search->at_ms;
}

static int why_consider(void *ctx, const struct step_record *hot, struct err *err)
{
	struct why_search *search = ctx;
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	size_t likeness;
	size_t wording;

	if (step_find(search->meta, &hot->key, true, &record, err) < 0)
		return -1;
	if (!record.components || !why_is_like(record.components, search->components))
		return 0;
	likeness = differences_likeness(record.components, search->components);
	wording = differences_wording(record.components, search->components);
	if (!why_is_nearer(search, likeness, wording, record.created_ms))
		return 0;
	json_decref(search->found);
	search->found = json_incref(record.components);
	search->key = record.key;
	search->likeness = likeness;
	search->wording = wording;
	search->at_ms = record.created_ms;
	return 0;
}

/* The search for the step that made the layer at the top of a chain. */
struct why_maker {
	struct meta *meta;
	struct str chain; /* its id as text */
	json_t *text;     /* owned: the step's, when it is found */
};

static int why_match_chain(void *ctx, const struct step_record *hot, struct err *err)
{
	struct why_maker *maker = ctx;
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	struct digest chain;
	char text[DIGEST_TEXT_MAX];

	if (hot->empty)
		return 0;
	if (step_find(maker->meta, &hot->key, true, &record, err) < 0)
		return -1;
	image_config_chain_id(&record.parent, &record.diff_id, &chain);
	if (!str_equal(str_of(digest_format(&chain, text)), maker->chain))
		return 0;
	maker->text = json_incref(json_object_get(record.components, "text"));
	return 1;
}

/* Of a parent that differs: which step made the one, and which the other. */
static int why_name_parent(struct bake *bake, size_t above, json_t *difference, struct err *err)
{
	struct why_maker maker = {.meta = bake->meta,
				  .chain = json_str(json_object_get(difference, "was"))};

	if (above > 0)
		(void)json_object_set_new(difference, "isStep",
					  json_from_str(buf_str(&bake->steps[above - 1].text)));
	if (!json_is_string(json_object_get(difference, "was")))
		return 0;
	if (step_each(bake->meta, why_match_chain, &maker, err) < 0)
		return -1;
	if (maker.text)
		(void)json_object_set_new(difference, "wasStep", maker.text);
	return 0;
}

static int why_name_parents(struct bake *bake, size_t above, const struct why *why, struct err *err)
{
	for (size_t i = 0; i < json_array_size(why->differences); i++) {
		json_t *difference = json_array_get(why->differences, i);

		if (str_equal(json_str(json_object_get(difference, "what")), STR("parent")) &&
		    why_name_parent(bake, above, difference, err) < 0)
			return -1;
	}
	return 0;
}

/* Remove a difference that others explain. */
static void why_drop(json_t *differences, struct str what)
{
	for (size_t i = 0; i < json_array_size(differences); i++) {
		const json_t *difference = json_array_get(differences, i);

		if (str_equal(json_str(json_object_get(difference, "what")), what)) {
			(void)json_array_remove(differences, i);
			return;
		}
	}
}

/* Where the content differs, say which files do. */
static int why_name_files(struct bake *bake, const struct instruction *ready,
			  const struct bake_key *key, const json_t *was, json_t *differences,
			  struct err *err)
{
	auto_buf struct buf now = BUF_INIT(LISTING_BYTES_MAX);
	const json_t *files = json_object_get(was, "files");
	size_t before = json_array_size(differences);
	struct digest kept;

	if (!json_is_string(files))
		return 0;
	bake_end_snapshot(bake); /* it must not span the reading of files */
	if (digest_parse(json_str(files), &kept, err) < 0 ||
	    bake_list_context(bake, ready, key, &now, err) < 0 ||
	    bake_list_from(bake, ready, key, &now, err) < 0)
		return -1;
	if (now.len > 0 &&
	    listing_compare(bake->options->store, &kept, buf_str(&now), differences, err) < 0)
		return -1;
	if (json_array_size(differences) > before)
		why_drop(differences, STR("content"));
	return 0;
}

static int why_compare(struct bake *bake, const struct instruction *ready,
		       const struct bake_key *key, size_t above, struct why *out, struct err *err)
{
	AUTO(json) json_t *components = bake_components(bake, key);
	struct why_search search = {.components = components};
	AUTO(json) json_t *found = NULL;

	if (bake_snapshot(bake, err) < 0)
		return -1;
	search.meta = bake->meta;
	if (step_each(bake->meta, why_consider, &search, err) < 0)
		return -1;
	found = search.found;
	if (!found) {
		out->status = WHY_NEW;
		return 0;
	}
	out->status = WHY_DIFFERS;
	out->nearest = search.key;
	out->at_ms = search.at_ms;
	out->differences = differences_of(found, components);
	if (why_name_parents(bake, above, out, err) < 0)
		return -1;
	return why_name_files(bake, ready, key, found, out->differences, err);
}

/* Explain step bake->step, which may make a layer. 1 it is found, 0 it is not, -1. */
static int why_made(struct bake *bake, struct instruction *ready, size_t *above, struct why *out,
		    struct err *err)
{
	auto_step_record struct step_record record = STEP_RECORD_INIT;
	auto_bake_key struct bake_key key = {0};
	int found;

	if (bake_key_step(bake, ready, &key, err) < 0)
		return -1;
	out->key = key.key;
	found = bake_find(bake, &key.key, false, &record, err);
	if (found == 0)
		return why_compare(bake, ready, &key, *above, out, err);
	if (found < 0 || bake_apply_record(bake, &record, err) < 0)
		return -1;
	out->status = WHY_CACHED;
	out->cut_off = record.cut_off;
	out->at_ms = record.created_ms;
	if (!record.empty)
		*above = bake->step;
	return 1;
}

/* 1 the walk may go on, 0 the step would run, -1. */
static int why_one(struct bake *bake, size_t *above, struct why *out, struct err *err)
{
	auto_instruction struct instruction ready = {0};
	int makes = bake_enter_step(bake, &ready, err);

	if (makes < 0)
		return -1;
	if (makes > 0)
		return why_made(bake, &ready, above, out, err);
	out->status = WHY_NOTHING;
	return bake_apply_nothing(bake, err) < 0 ? -1 : 1;
}

static int why_walk(struct bake *bake, size_t step, struct why *out, struct err *err)
{
	size_t above = 0; /* the last step that made a layer */
	int more = 1;

	for (bake->step = 1; more > 0 && bake->step <= step; bake->step++) {
		more = why_one(bake, &above, out, err);
		if (more < 0)
			return bake_name_step(bake, err);
		out->step = bake->step;
	}
	out->text = strdup(bake->steps[out->step - 1].text.ptr);
	if (!out->text)
		abort();
	return 0;
}

int why_step(const struct spec *spec, const struct bake_options *options, size_t step,
	     struct why *out, struct err *err)
{
	struct bake_options held = *options;
	struct bake bake;
	int result = -1;

	*out = (struct why){0};
	if (step == 0 || step > spec->step_count)
		return err_set(err, ERR_INVALID, "step %zu: the spec has %zu", step,
			       spec->step_count);
	held.held_only = true;
	if (bake_begin(&bake, spec, &held, err) == 0)
		result = why_walk(&bake, step, out, err);
	bake_end(&bake, result);
	return result;
}

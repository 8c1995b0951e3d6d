/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/gc_versions.h"

#include "bake/agent.h"
#include "bake/fault.h"
#include "bake/job.h"
#include "bake/status.h"
#include "layers/base/array.h"
#include "layers/base/clock.h"
#include "layers/journal.h"
#include "registry/reference.h"
#include "registry/tag.h"
#include "sandbox/session.h"

#include <stdio.h>

static int gc_versions_add(void *ctx, const json_t *status, struct err *err)
{
	struct gc_versions *versions = ctx;
	struct str agent_id = json_str(json_object_get(status, "agentId"));
	struct status_image image;
	struct gc_version *out;

	if (!status_image(status, &image))
		return 0;
	if (agent_id.len >= ID_TEXT_MAX)
		return err_set(err, ERR_CORRUPT, "a status of an agent with a long id");
	if (array_make_room(&versions->at, sizeof(*versions->at), versions->count, GC_VERSIONS_MAX,
			    "versions with images", err) < 0)
		return -1;
	out = &versions->at[versions->count++];
	*out = (struct gc_version){.number = status_version(status), .image = image.digest};
	memcpy(out->agent_id, agent_id.ptr, agent_id.len);
	if (status_previous(status, &image))
		out->previous = image.digest;
	return 0;
}

static int gc_versions_compare(const void *a, const void *b)
{
	const struct gc_version *left = a;
	const struct gc_version *right = b;
	int order = strcmp(left->agent_id, right->agent_id);

	return order ? order : (left->number < right->number) - (left->number > right->number);
}

static struct gc_version *gc_versions_find(const struct gc_versions *versions, const char *agent_id,
					   int64_t number)
{
	struct gc_version wanted = {.number = number};

	if (versions->count == 0)
		return NULL;
	(void)snprintf(wanted.agent_id, sizeof(wanted.agent_id), "%s", agent_id);
	return bsearch(&wanted, versions->at, versions->count, sizeof(wanted), gc_versions_compare);
}

static int gc_versions_use(void *ctx, const struct session *session, struct err *err)
{
	const struct gc_versions *versions = ctx;
	struct gc_version *used = gc_versions_find(versions, session->agent_id, session->version);

	(void)err;
	if (used)
		used->in_use = true;
	return 0;
}

static void gc_versions_judge(struct gc_versions *versions)
{
	int64_t rank = 0;

	for (size_t i = 0; i < versions->count; i++) {
		struct gc_version *version = &versions->at[i];

		rank = i > 0 && strcmp(version->agent_id, version[-1].agent_id) == 0 ? rank + 1 : 0;
		version->goes = rank > 0 && rank >= versions->keep && !version->in_use;
	}
}

static int gc_versions_compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int gc_versions_add_name(struct meta *meta, struct gc_versions *versions,
				const struct gc_version *version, struct err *err)
{
	AUTO(json) json_t *status = NULL;
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	int found = status_find(meta, str_of(version->agent_id), version->number, &status, err);

	if (found != 1)
		return found;
	if (job_format_name(status_slug(status), (uint64_t)version->number, &name, err) < 0)
		return -1;
	versions->names = array_grow(versions->names, versions->name_count, sizeof(char *));
	versions->names[versions->name_count++] = str_dup(buf_str(&name));
	return 0;
}

int gc_versions_read(struct meta *meta, int64_t keep, struct gc_versions *out, struct err *err)
{
	auto_gc_versions struct gc_versions versions = {.keep = keep};

	if (status_each(meta, gc_versions_add, &versions, err) < 0)
		return -1;
	if (versions.count > 0)
		qsort(versions.at, versions.count, sizeof(*versions.at), gc_versions_compare);
	if (session_each_open(meta, STR(""), gc_versions_use, &versions, err) < 0)
		return -1;
	gc_versions_judge(&versions);
	for (size_t i = 0; i < versions.count; i++) {
		if (versions.at[i].goes &&
		    gc_versions_add_name(meta, &versions, &versions.at[i], err) < 0)
			return -1;
	}
	if (versions.name_count > 0)
		qsort(versions.names, versions.name_count, sizeof(char *),
		      gc_versions_compare_names);
	*out = versions;
	versions = (struct gc_versions){.keep = 0};
	return 0;
}

int gc_versions_images(const struct gc_versions *versions, struct digest_set *out, struct err *err)
{
	static const struct digest none;

	for (size_t i = 0; i < versions->count; i++) {
		const struct gc_version *version = &versions->at[i];

		if (version->goes)
			continue;
		if (digest_set_add(out, &version->image, err) < 0 ||
		    (!digest_equal(&version->previous, &none) &&
		     digest_set_add(out, &version->previous, err) < 0))
			return -1;
	}
	return 0;
}

bool gc_versions_names(const struct gc_versions *versions, struct str reference)
{
	auto_free char *name = str_dup(reference);

	return versions->name_count > 0 && bsearch(&name, versions->names, versions->name_count,
						   sizeof(char *), gc_versions_compare_names);
}

/* Its name, where that still stands for its image. */
static int gc_versions_untag(struct meta *meta, const json_t *status,
			     const struct gc_version *version, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	struct tag tag;
	int found;

	if (job_format_name(status_slug(status), (uint64_t)version->number, &name, err) < 0)
		return -1;
	found = tag_find_only(meta, buf_str(&name), &tag, err);
	if (found == 1 && digest_equal(&tag.manifest, &version->image))
		found = tag_del(meta, buf_str(&name), err);
	return found < 0 ? -1 : 0;
}

static int gc_versions_tell(struct meta *meta, const struct gc_version *version, json_t *error,
			    int64_t now_ms, struct err *err)
{
	AUTO(json) json_t *data = json_pack("{s:O}", "error", error);
	const struct event event = {
		.at_ms = now_ms,
		.type = STR("image.failed"),
		.agent_id = str_of(version->agent_id),
		.version = version->number,
		.data = data,
	};
	uint64_t id;

	return journal_append(meta, &event, &id, err);
}

static int gc_versions_forget_one(struct meta *meta, const struct gc_version *version,
				  struct err *err)
{
	const struct fault fault = {
		.kind = ERR_GONE,
		.message = STR("the image was collected: newer versions have taken its place"),
		.terminal = true,
	};
	AUTO(json) json_t *status = NULL;
	AUTO(json) json_t *error = NULL;
	int64_t now_ms = clock_now_ms();
	struct status_image image;
	int found = status_find(meta, str_of(version->agent_id), version->number, &status, err);

	if (found < 0)
		return -1;
	if (found == 0 || !status_image(status, &image) ||
	    !digest_equal(&image.digest, &version->image))
		return 0;
	if (gc_versions_untag(meta, status, version, err) < 0)
		return -1;
	error = fault_format(&fault);
	status_set_collected(status, error, now_ms);
	if (status_put(meta, status, err) < 0)
		return -1;
	return gc_versions_tell(meta, version, error, now_ms, err);
}

int gc_versions_forget(struct meta *meta, const struct gc_versions *versions, size_t *at,
		       size_t max, struct err *err)
{
	if (session_each_open(meta, STR(""), gc_versions_use, drop_const(versions), err) < 0)
		return -1;
	for (; max > 0 && *at < versions->count; ++*at) {
		const struct gc_version *version = &versions->at[*at];

		if (!version->goes || version->in_use)
			continue;
		if (gc_versions_forget_one(meta, version, err) < 0)
			return -1;
		max--;
	}
	return 0;
}

struct gc_contexts_walk {
	struct meta *meta;
	const struct gc_versions *versions;
	struct digest_set *out;
};

static int gc_versions_visit_context(void *ctx, const struct agent_context *context,
				     struct err *err)
{
	const struct gc_contexts_walk *walk = ctx;
	const struct gc_version *version =
		gc_versions_find(walk->versions, context->agent_id, context->version);
	struct agent agent;
	int found = agent_find(walk->meta, str_of(context->agent_id), &agent, err);

	if (found < 0)
		return -1;
	if ((!version || version->goes) &&
	    (found == 0 || (context->version != agent.latest &&
			    agent.latest - context->version >= walk->versions->keep)))
		return 0;
	return digest_set_add(walk->out, &context->digest, err) < 0 ? -1 : 0;
}

int gc_versions_contexts(struct meta *meta, const struct gc_versions *versions,
			 struct digest_set *out, struct err *err)
{
	struct gc_contexts_walk walk = {meta, versions, out};

	return agent_each_context(meta, gc_versions_visit_context, &walk, err);
}

void gc_versions_done(struct gc_versions *versions)
{
	for (size_t i = 0; i < versions->name_count; i++)
		free(versions->names[i]);
	free(versions->names);
	free(versions->at);
	*versions = (struct gc_versions){.keep = 0};
}

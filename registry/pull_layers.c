/* SPDX-License-Identifier: Apache-2.0 */
/* pull_layers.c - the layers of one image, fetched on several lanes where they are missing. */
#include "layers/base/clock.h"
#include "registry/lanes_priv.h"
#include "registry/pull_priv.h"
#include "registry/sole_priv.h"

#include <inttypes.h>

#define PULL_EVENT_MS 100 /* a person reads no faster */

/* A layer's bytes on their way into the store, with an event now and then. */
struct layer_sink {
	struct sink sink;
	struct pull *pull;
	const struct descriptor *blob;
	struct receive *receive;
	uint64_t done;
	int64_t told_ms;
};

static int layer_sink_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct layer_sink *layer = container_of(sink, struct layer_sink, sink);
	int64_t now = clock_monotonic_ms();

	if (receive_write(layer->receive, bytes, err) < 0)
		return -1;
	layer->done += bytes.len;
	if (now - layer->told_ms >= PULL_EVENT_MS) {
		layer->told_ms = now;
		pull_tell(layer->pull, PULL_LAYER, layer->blob, layer->done);
	}
	return 0;
}

static void pull_warn_of(struct pull *pull, const struct descriptor *blob, const char *what,
			 uint64_t bytes)
{
	char name[DIGEST_TEXT_MAX];
	char text[DIGEST_TEXT_MAX + 128];

	(void)snprintf(text, sizeof(text), "layer %s: %" PRIu64 " bytes %s",
		       digest_format(&blob->digest, name), bytes, what);
	pull_warn(pull, str_of(text));
}

/* What is odd about a layer that is right. */
static void pull_layer_look(struct pull *pull, const struct descriptor *blob,
			    const struct receive *receive)
{
	struct receive_report report;

	receive_report(receive, &report);
	if (report.behind > 0)
		pull_warn_of(pull, blob, "behind its compressed stream are ignored", report.behind);
	if (receive_is_swollen(&report))
		pull_warn_of(pull, blob, "is what it inflates to, over a hundred times its size",
			     report.tar_size);
}

/* One layer to get: the blob of a descriptor, the tree of a diff id. */
struct layer_job {
	const struct descriptor *blob;
	const struct digest *diff_id;
};

static int pull_layer_fetch(struct pull *pull, size_t lane, const struct receive_spec *spec,
			    const struct descriptor *blob, struct err *err)
{
	AUTO(receive) struct receive *receive = NULL;
	struct layer_sink sink = {.sink = {layer_sink_write}, .pull = pull, .blob = blob};

	if (receive_open(pull->store, spec, &receive, err) < 0)
		return -1;
	sink.receive = receive;
	pull_tell(pull, PULL_LAYER, blob, 0);
	if (pull->origin->blob(pull->origin, lane, blob, &sink.sink, err) < 0 ||
	    receive_finish(receive, err) < 0)
		return -1;
	pull_layer_look(pull, blob, receive);
	pull_tell(pull, PULL_LAYER_DONE, blob, blob->size);
	return 0;
}

/*
 * What is held is not fetched. A tree that was lost is made again from its blob,
 * and a blob that nobody has inflated yet has to prove that the tree is its own.
 */
static int pull_layer_held(struct pull *pull, const struct receive_spec *spec,
			   const struct descriptor *blob, struct err *err)
{
	if (receive_have_tree(pull->store, spec, err) < 0)
		return -1;
	pull_tell(pull, PULL_LAYER_HELD, blob, blob->size);
	return 0;
}

static int pull_layer(struct pull *pull, size_t lane, const struct layer_job *job, struct err *err)
{
	struct receive_spec spec = {.blob = job->blob->digest,
				    .size = job->blob->size,
				    .diff_id = *job->diff_id,
				    .limits = pull->spec->limits,
				    .cancel = pull->spec->cancel,
				    .cancel_too = &pull->stop};
	AUTO(sole) struct sole sole = SOLE_INIT;
	struct blob_info held;
	int found = blob_find(pull->store, &spec.blob, &held, err);

	if (found == 0 &&
	    sole_take(pull->store, &spec.blob, spec.cancel, spec.cancel_too, &sole, err) < 0)
		return -1;
	if (found == 0) /* somebody else may have brought it */
		found = blob_find(pull->store, &spec.blob, &held, err);
	if (found < 0)
		return -1;
	if (found == 0)
		return pull_layer_fetch(pull, lane, &spec, job->blob, err);
	if (held.size != spec.size)
		return err_set(err, ERR_CORRUPT,
			       "blob of %" PRIu64 " bytes, the manifest says %" PRIu64, held.size,
			       spec.size);
	if (blob_find_id(pull->store, &job->blob->digest, &spec.blob, err) < 0)
		return -1;
	return pull_layer_held(pull, &spec, job->blob, err);
}

/* What the lanes share. */
struct layer_work {
	struct pull *pull;
	const struct layer_job *jobs;
	size_t job_count;
};

static int layer_work_one(void *ctx, size_t lane, size_t job, struct err *err)
{
	const struct layer_work *work = ctx;
	char name[DIGEST_TEXT_MAX];

	if (pull_layer(work->pull, lane, &work->jobs[job], err) == 0)
		return 0;
	return err_ctx(err, "layer %s", digest_format(&work->jobs[job].blob->digest, name));
}

/* A blob that a manifest lists twice is one job; it cannot have two contents. */
static int layer_jobs_add(struct layer_job *jobs, size_t *count, const struct descriptor *blob,
			  const struct digest *diff_id, struct err *err)
{
	for (size_t i = 0; i < *count; i++) {
		if (!digest_equal(&jobs[i].blob->digest, &blob->digest))
			continue;
		if (!digest_equal(jobs[i].diff_id, diff_id) || jobs[i].blob->size != blob->size)
			return err_set(
				err, ERR_CORRUPT,
				"one layer is listed twice with different sizes or diff ids");
		return 0;
	}
	jobs[(*count)++] = (struct layer_job){blob, diff_id};
	return 0;
}

int pull_layers(struct pull *pull, const struct manifest *manifest,
		const struct image_config *config, struct err *err)
{
	auto_free struct layer_job *jobs = calloc(manifest->layer_count + 1, sizeof(*jobs));
	struct layer_work work = {.pull = pull, .jobs = jobs};

	if (!jobs)
		abort();
	if (config->diff_id_count != manifest->layer_count)
		return err_set(err, ERR_CORRUPT, "the manifest has %zu layers and the config %zu",
			       manifest->layer_count, config->diff_id_count);
	for (size_t i = 0; i < manifest->layer_count; i++) {
		if (layer_jobs_add(jobs, &work.job_count, &manifest->layers[i],
				   &config->diff_ids[i], err) < 0 ||
		    pull_hold(pull, &manifest->layers[i].digest, err) < 0 ||
		    lease_add(pull->lease, &config->diff_ids[i], err) < 0)
			return -1;
	}
	return lanes_run(layer_work_one, &work, work.job_count, &pull->stop, err);
}

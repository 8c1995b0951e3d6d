/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - what a daemon counts, in Prometheus' text.
 *
 * Counters are interface: their names are in one table (metrics.c), tests read
 * them, and one that was published does not change its meaning. What is not
 * counted here, such as the length of a queue, is asked of a source when the
 * page is made.
 *
 * Threads: all calls may race, but sources are added before the first page.
 */
#pragma once

#include "layers/base/buf.h"

#include <stdint.h>

#define METRICS_PAGE_MAX ((size_t)1024 * 1024)
#define METRICS_SOURCES_MAX 8

enum metric {
	METRIC_READS,
	METRIC_WRITES,
	METRIC_OTHERS, /* health, metrics, the registry, unknown methods */
	METRIC_REFUSED,
	METRIC_FAILED,
	METRIC_UNAUTHORIZED,
	METRIC_REGISTRY_PINGS, /* under /v2/, by what was asked for */
	METRIC_REGISTRY_TOKENS,
	METRIC_REGISTRY_LISTS,
	METRIC_REGISTRY_MANIFESTS,
	METRIC_REGISTRY_BLOBS,
	METRIC_REGISTRY_UPLOADS,
	METRIC_REGISTRY_BYTES,
	METRICS,
};

/* What is timed. */
enum metric_timer {
	METRIC_READ_TIME,
	METRIC_WRITE_TIME,
	METRIC_TIMERS,
};

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

void metrics_count(struct metrics *metrics, enum metric metric);
void metrics_add(struct metrics *metrics, enum metric metric, uint64_t n);
void metrics_time(struct metrics *metrics, enum metric_timer timer, int64_t us);

/* Appends its part of the page, by metrics_value(). */
typedef int metrics_source_fn(void *ctx, struct buf *page, struct err *err);
void metrics_add_source(struct metrics *metrics, metrics_source_fn *fn, void *ctx);

/*
 * One sample: name is a literal, "hearth_bakes"; labels is "" or as in
 * "state=\"queued\"". The first of a name comes with type ("gauge", "counter") and
 * help, the others with NULL.
 */
struct metric_sample {
	const char *name;
	const char *labels;
	const char *type;
	const char *help;
	uint64_t value;
};
int metrics_value(struct buf *page, const struct metric_sample *sample, struct err *err) MUST_CHECK;

int metrics_page(struct metrics *metrics, struct buf *page, struct err *err) MUST_CHECK;

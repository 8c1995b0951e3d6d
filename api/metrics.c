/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>

/* Those of one name are neighbours. */
static const struct metric_sample metric_table[METRICS] = {
	[METRIC_READS] = {"hearth_requests_total", "kind=\"read\"", "counter",
			  "Requests that were answered.", 0},
	[METRIC_WRITES] = {"hearth_requests_total", "kind=\"write\"", NULL, NULL, 0},
	[METRIC_OTHERS] = {"hearth_requests_total", "kind=\"other\"", NULL, NULL, 0},
	[METRIC_REFUSED] = {"hearth_refusals_total", "class=\"4xx\"", "counter",
			    "Answers that were errors.", 0},
	[METRIC_FAILED] = {"hearth_refusals_total", "class=\"5xx\"", NULL, NULL, 0},
	[METRIC_UNAUTHORIZED] = {"hearth_unauthorized_total", "", "counter",
				 "Requests without a token that is known.", 0},
	[METRIC_REGISTRY_PINGS] = {"hearth_registry_requests_total", "kind=\"ping\"", "counter",
				   "Requests under /v2/ that were answered.", 0},
	[METRIC_REGISTRY_TOKENS] = {"hearth_registry_requests_total", "kind=\"token\"", NULL, NULL,
				    0},
	[METRIC_REGISTRY_LISTS] = {"hearth_registry_requests_total", "kind=\"list\"", NULL, NULL,
				   0},
	[METRIC_REGISTRY_MANIFESTS] = {"hearth_registry_requests_total", "kind=\"manifest\"", NULL,
				       NULL, 0},
	[METRIC_REGISTRY_BLOBS] = {"hearth_registry_requests_total", "kind=\"blob\"", NULL, NULL,
				   0},
	[METRIC_REGISTRY_UPLOADS] = {"hearth_registry_requests_total", "kind=\"upload\"", NULL,
				     NULL, 0},
	[METRIC_REGISTRY_BYTES] = {"hearth_registry_sent_bytes_total", "", "counter",
				   "Bytes of the answers to them.", 0},
};

static const char *const metric_timers[METRIC_TIMERS] = {
	[METRIC_READ_TIME] = "read",
	[METRIC_WRITE_TIME] = "write",
};

/* The upper bounds of a histogram, in microseconds. */
static const struct {
	int64_t us;
	const char *seconds;
} metric_bounds[] = {
	{100, "0.0001"}, {500, "0.0005"}, {1000, "0.001"},  {5000, "0.005"},  {20000, "0.02"},
	{100000, "0.1"}, {500000, "0.5"}, {1000000, "1.0"}, {5000000, "5.0"},
};
#define METRIC_BOUNDS (sizeof(metric_bounds) / sizeof(metric_bounds[0]))

struct timer {
	atomic_uint_least64_t within[METRIC_BOUNDS + 1]; /* not cumulative; the last has the rest */
	atomic_uint_least64_t sum_us;
};

struct metrics {
	atomic_uint_least64_t counts[METRICS];
	struct timer timers[METRIC_TIMERS];
	struct {
		metrics_source_fn *fn;
		void *ctx;
	} sources[METRICS_SOURCES_MAX];
	size_t source_count;
};

struct metrics *metrics_new(void)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (!metrics)
		abort();
	return metrics;
}

void metrics_free(struct metrics *metrics)
{
	free(metrics);
}

void metrics_count(struct metrics *metrics, enum metric metric)
{
	metrics_add(metrics, metric, 1);
}

void metrics_add(struct metrics *metrics, enum metric metric, uint64_t n)
{
	atomic_fetch_add_explicit(&metrics->counts[metric], n, memory_order_relaxed);
}

void metrics_time(struct metrics *metrics, enum metric_timer timer, int64_t us)
{
	struct timer *times = &metrics->timers[timer];
	size_t i = 0;

	while (i < METRIC_BOUNDS && us > metric_bounds[i].us)
		i++;
	atomic_fetch_add_explicit(&times->within[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&times->sum_us, (uint64_t)us, memory_order_relaxed);
}

void metrics_add_source(struct metrics *metrics, metrics_source_fn *fn, void *ctx)
{
	assert(metrics->source_count < METRICS_SOURCES_MAX);
	metrics->sources[metrics->source_count].fn = fn;
	metrics->sources[metrics->source_count++].ctx = ctx;
}

int metrics_value(struct buf *page, const struct metric_sample *sample, struct err *err)
{
	if (sample->type && buf_addf(page, err, "# HELP %s %s\n# TYPE %s %s\n", sample->name,
				     sample->help, sample->name, sample->type) < 0)
		return -1;
	return buf_addf(page, err, "%s%s%s%s %" PRIu64 "\n", sample->name,
			*sample->labels ? "{" : "", sample->labels, *sample->labels ? "}" : "",
			sample->value);
}

static int metrics_add_timer(const struct metrics *metrics, enum metric_timer timer,
			     struct buf *page, struct err *err)
{
	const struct timer *times = &metrics->timers[timer];
	const char *kind = metric_timers[timer];
	uint64_t count = 0;
	int result = 0;

	for (size_t i = 0; result == 0 && i <= METRIC_BOUNDS; i++) {
		count += atomic_load(&times->within[i]);
		result = buf_addf(
			page, err,
			"hearth_request_seconds_bucket{kind=\"%s\",le=\"%s\"} %" PRIu64 "\n", kind,
			i < METRIC_BOUNDS ? metric_bounds[i].seconds : "+Inf", count);
	}
	if (result < 0)
		return -1;
	return buf_addf(page, err,
			"hearth_request_seconds_sum{kind=\"%s\"} %.6f\n"
			"hearth_request_seconds_count{kind=\"%s\"} %" PRIu64 "\n",
			kind, (double)atomic_load(&times->sum_us) / 1e6, kind, count);
}

static int metrics_add_timers(const struct metrics *metrics, struct buf *page, struct err *err)
{
	if (buf_add(page,
		    STR("# HELP hearth_request_seconds From a request's headers to its answer.\n"
			"# TYPE hearth_request_seconds histogram\n"),
		    err) < 0)
		return -1;
	for (int i = 0; i < METRIC_TIMERS; i++) {
		if (metrics_add_timer(metrics, (enum metric_timer)i, page, err) < 0)
			return -1;
	}
	return 0;
}

int metrics_page(struct metrics *metrics, struct buf *page, struct err *err)
{
	for (int i = 0; i < METRICS; i++) {
		struct metric_sample sample = metric_table[i];

		sample.value = atomic_load(&metrics->counts[i]);
		if (metrics_value(page, &sample, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < metrics->source_count; i++) {
		if (metrics->sources[i].fn(metrics->sources[i].ctx, page, err) < 0)
			return -1;
	}
	return metrics_add_timers(metrics, page, err);
}

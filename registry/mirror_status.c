/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_priv.h"

#include "layers/base/clock.h"

#include <stdio.h>

static enum mirror_health mirror_status_health_locked(const struct mirror_upstream *upstream,
						      int64_t now_ms) REQUIRES(upstream->lock);
static enum mirror_health mirror_status_health_locked(const struct mirror_upstream *upstream,
						      int64_t now_ms)
{
	if (now_ms < upstream->until_ms && upstream->limited)
		return MIRROR_LIMITED;
	if (upstream->failures > 0)
		return MIRROR_FAILING;
	return upstream->answered_ms > 0 ? MIRROR_HEALTHY : MIRROR_UNASKED;
}

bool mirror_report(struct mirror *mirror, size_t at, struct mirror_report *out)
{
	int64_t now_ms = clock_monotonic_ms();
	struct mirror_upstream *upstream;
	struct mirror_counts *counts;

	if (at >= mirror->upstream_count)
		return false;
	upstream = &mirror->upstreams[at];
	counts = &upstream->counts;
	*out = (struct mirror_report){
		.host = upstream->host,
		.place = upstream->place,
		.prefix = upstream->prefix,
		.is_default = upstream == mirror->fallback,
		.hits = atomic_load(&counts->hits),
		.misses = atomic_load(&counts->misses),
		.stale = atomic_load(&counts->stale),
		.requests = atomic_load(&counts->asked),
		.errors = atomic_load(&counts->errors),
		.fetched_bytes = atomic_load(&counts->fetched),
		.served_bytes = atomic_load(&counts->served),
		.held_bytes = atomic_load(&counts->held),
		.max_bytes = upstream->max_bytes,
	};
	lock_take(&upstream->lock);
	out->health = mirror_status_health_locked(upstream, now_ms);
	out->retry_ms = upstream->until_ms > now_ms ? upstream->until_ms - now_ms : 0;
	out->answered_ms = upstream->answered_ms;
	out->failed_ms = upstream->failed_ms;
	out->limit = upstream->limit;
	out->remaining = upstream->remaining;
	memcpy(out->why, upstream->why, sizeof(out->why));
	lock_drop(&upstream->lock);
	return true;
}

size_t mirror_fills(struct mirror *mirror)
{
	size_t fills;

	lock_take(&mirror->lock);
	fills = mirror->fills;
	lock_drop(&mirror->lock);
	return fills;
}

static const char *mirror_status_word(enum mirror_health health)
{
	static const char *const words[] = {
		[MIRROR_UNASKED] = "unasked",
		[MIRROR_HEALTHY] = "healthy",
		[MIRROR_LIMITED] = "limited",
		[MIRROR_FAILING] = "failing",
	};

	return words[health];
}

static void mirror_status_set_time(json_t *object, const char *key, int64_t ms)
{
	char text[CLOCK_TEXT_MAX];

	if (ms > 0)
		json_set_text(object, key, clock_format(ms, text));
}

static json_t *mirror_status_of(const struct mirror_report *report)
{
	uint64_t served = report->served_bytes;
	uint64_t saved = served > report->fetched_bytes ? served - report->fetched_bytes : 0;
	json_t *out = json_pack("{s:s, s:s+, s:b, s:s}", "host", report->host, "place",
				report->place, report->prefix, "default", report->is_default,
				"health", mirror_status_word(report->health));

	if (!out)
		abort();
	if (report->retry_ms > 0)
		json_set_int(out, "retryMs", report->retry_ms);
	mirror_status_set_time(out, "answeredAt", report->answered_ms);
	mirror_status_set_time(out, "failedAt", report->failed_ms);
	if (report->why[0])
		json_set(out, "error", json_from_str(str_of(report->why)));
	if (report->limit >= 0)
		json_set_int(out, "quotaLimit", report->limit);
	if (report->remaining >= 0)
		json_set_int(out, "quotaRemaining", report->remaining);
	json_set_size(out, "hits", report->hits);
	json_set_size(out, "misses", report->misses);
	json_set_size(out, "stale", report->stale);
	json_set_size(out, "requests", report->requests);
	json_set_size(out, "errors", report->errors);
	json_set_size(out, "fetchedBytes", report->fetched_bytes);
	json_set_size(out, "servedBytes", served);
	json_set_size(out, "savedBytes", saved);
	json_set_size(out, "heldBytes", report->held_bytes);
	if (report->max_bytes > 0)
		json_set_size(out, "maxBytes", report->max_bytes);
	return out;
}

json_t *mirror_status(struct mirror *mirror)
{
	json_t *upstreams = json_array();
	json_t *out = json_object();
	struct mirror_report report;

	if (!upstreams || !out)
		abort();
	for (size_t i = 0; mirror && mirror_report(mirror, i, &report); i++) {
		if (json_array_append_new(upstreams, mirror_status_of(&report)) < 0)
			abort();
	}
	json_set(out, "upstreams", upstreams);
	json_set_size(out, "fills", mirror ? mirror_fills(mirror) : 0);
	return out;
}

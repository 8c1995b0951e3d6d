/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_upstream_priv.h"

#include "layers/base/clock.h"
#include "registry/hub.h"
#include "registry/retry_priv.h"

#include <stdio.h>

#define UPSTREAM_FAILURES_MAX 3u  /* that are borne before it is left alone */
#define UPSTREAM_BACK_OFF_MS 1000 /* then so long, and twice as long after each more */
#define UPSTREAM_BACK_OFF_MAX_MS 30000
#define UPSTREAM_PROBE_MS 5000 /* for the one that finds out whether it is well again */

int mirror_upstream_init(struct mirror_upstream *upstream, const struct mirror_upstream_spec *spec,
			 struct err *err)
{
	struct str rest = spec->place;
	struct str host;

	*upstream = (struct mirror_upstream){
		.plain_http = spec->plain_http,
		.tag_ttl_ms = spec->tag_ttl_ms < 0 ? MIRROR_TAG_TTL_MS : spec->tag_ttl_ms,
		.back_off_ms = UPSTREAM_BACK_OFF_MS,
		.max_bytes = spec->max_bytes,
		.lock = LOCK_INIT,
		.limit = -1,
		.remaining = -1,
	};
	if (mirror_host_name(spec->host, upstream->host, err) < 0)
		return -1;
	upstream->is_hub = hub_is_host(str_of(upstream->host));
	(void)str_cut(&rest, '/', &host);
	if (host.len == 0 || host.len >= sizeof(upstream->place) ||
	    rest.len + 1 >= sizeof(upstream->prefix))
		return err_set(err, ERR_INVALID, "%s: expected a host", upstream->host);
	memcpy(upstream->place, host.ptr, host.len);
	(void)snprintf(upstream->prefix, sizeof(upstream->prefix), STR_FMT "%s", STR_ARG(rest),
		       rest.len > 0 ? "/" : "");
	if (!spec->ca_file)
		return 0;
	upstream->ca_file = strdup(spec->ca_file);
	if (!upstream->ca_file)
		abort();
	return 0;
}

void mirror_upstream_done(struct mirror_upstream *upstream)
{
	free(upstream->ca_file);
}

static int mirror_upstream_admit_locked(struct mirror_upstream *upstream, bool *out_probe,
					struct err *err) REQUIRES(upstream->lock);
static int mirror_upstream_admit_locked(struct mirror_upstream *upstream, bool *out_probe,
					struct err *err)
{
	int64_t now_ms = clock_monotonic_ms();

	if (now_ms < upstream->until_ms)
		return err_set(err, upstream->limited ? ERR_BUSY : ERR_UNAVAILABLE,
			       "%s is left alone for a while: %s", upstream->host, upstream->why);
	*out_probe = upstream->failures >= UPSTREAM_FAILURES_MAX;
	if (*out_probe)
		upstream->until_ms = now_ms + UPSTREAM_PROBE_MS;
	return 0;
}

int mirror_upstream_admit(struct mirror_upstream *upstream, bool *out_probe, struct err *err)
{
	int result;

	lock_take(&upstream->lock);
	result = mirror_upstream_admit_locked(upstream, out_probe, err);
	lock_drop(&upstream->lock);
	return result;
}

int64_t mirror_upstream_retry_s(struct mirror_upstream *upstream)
{
	int64_t left_ms;

	lock_take(&upstream->lock);
	left_ms = upstream->until_ms - clock_monotonic_ms();
	lock_drop(&upstream->lock);
	return left_ms < 1000 ? 1 : (left_ms + 999) / 1000;
}

/* "100;w=21600": 100 in six hours. */
static void mirror_upstream_note_quota(const struct http_reply *reply, const char *name,
				       int64_t *out)
{
	struct str text = http_header(reply, name);
	uint64_t number;

	if (str_take_number(&text, &number) && number <= INT64_MAX)
		*out = (int64_t)number;
}

static int64_t mirror_upstream_back_off_ms(const struct mirror_upstream *upstream)
{
	unsigned more = upstream->failures - UPSTREAM_FAILURES_MAX;
	int64_t ms = upstream->back_off_ms << (more < 8 ? more : 8);

	return ms < UPSTREAM_BACK_OFF_MAX_MS ? ms : UPSTREAM_BACK_OFF_MAX_MS;
}

/* One request's time was enough to wait for: who is silent once is left alone at once. */
static void mirror_upstream_failed_locked(struct mirror_upstream *upstream,
					  const struct http_reply *reply, const struct err *why)
	REQUIRES(upstream->lock);
static void mirror_upstream_failed_locked(struct mirror_upstream *upstream,
					  const struct http_reply *reply, const struct err *why)
{
	int64_t now_ms = clock_monotonic_ms();
	int64_t wait_ms = 0;

	upstream->failed_ms = clock_now_ms();
	(void)snprintf(upstream->why, sizeof(upstream->why), "%.199s", why->text);
	upstream->failures++;
	if (!reply && why->kind == ERR_TIMEOUT && upstream->failures < UPSTREAM_FAILURES_MAX)
		upstream->failures = UPSTREAM_FAILURES_MAX;
	upstream->limited = reply && reply->status == 429;
	if (upstream->failures >= UPSTREAM_FAILURES_MAX)
		wait_ms = mirror_upstream_back_off_ms(upstream);
	else if (upstream->limited)
		wait_ms = upstream->back_off_ms;
	if (reply && reply->retry_after_ms > wait_ms)
		wait_ms = reply->retry_after_ms;
	upstream->until_ms = wait_ms > 0 ? now_ms + wait_ms : 0;
}

void mirror_upstream_heard(struct mirror_upstream *upstream, const struct http_reply *reply,
			   const struct err *why)
{
	bool good = reply && !retry_status(reply->status);

	lock_take(&upstream->lock);
	if (reply) {
		mirror_upstream_note_quota(reply, "ratelimit-limit", &upstream->limit);
		mirror_upstream_note_quota(reply, "ratelimit-remaining", &upstream->remaining);
	}
	if (good) {
		upstream->failures = 0;
		upstream->until_ms = 0;
		upstream->why[0] = '\0';
		upstream->answered_ms = clock_now_ms();
	} else {
		mirror_upstream_failed_locked(upstream, reply, why);
	}
	lock_drop(&upstream->lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/upstreams.h"

#include "api/access.h"
#include "api/input.h"
#include "api/metrics.h"

#include <stddef.h>
#include <stdio.h>

#define UPSTREAMS_CA_MAX ((size_t)16 * 1024 * 1024)

static int upstreams_log_in(void *ctx, struct str reference, const struct cancel *cancel,
			    struct credentials *out, struct err *err)
{
	(void)ctx;
	return access_for(reference, cancel, out, err);
}

static void upstreams_wake(void *ctx, uint64_t topic)
{
	server_wake(ctx, topic);
}

static void upstreams_describe(const struct config *config, const struct config_upstream *upstream,
			       struct mirror_upstream_spec *out)
{
	struct str rest = upstream->place;
	struct str host;

	(void)str_cut(&rest, '/', &host);
	*out = (struct mirror_upstream_spec){
		.host = str_of(upstream->host),
		.place = upstream->place,
		.plain_http = upstream->plain_http || config_is_insecure(config, host),
		.tag_ttl_ms = upstream->tag_ttl_ms,
		.ca_file = upstream->ca,
		.max_bytes = upstream->max_bytes,
	};
}

/* What cannot be read is said now, and not to whoever asks first. */
static int upstreams_check_ca(const struct cli *cli, const struct config_upstream *upstream,
			      struct err *err)
{
	auto_buf struct buf text = BUF_INIT(UPSTREAMS_CA_MAX);

	if (!upstream->ca)
		return 0;
	if (input_read("CA file", upstream->ca, cli->cancel, &text, err) < 0)
		return err_ctx(err, "mirror.upstreams.%s.ca", upstream->host);
	return 0;
}

int upstreams_open(const struct cli *cli, struct store *store, struct server *server,
		   struct vacancy *vacancy, struct mirror **out, struct err *err)
{
	const struct config *config = &cli->config;
	auto_free struct mirror_upstream_spec *specs =
		calloc(config->upstream_count + 1, sizeof(*specs));
	const struct mirror_options options = {
		.store = store,
		.upstreams = specs,
		.upstream_count = config->upstream_count,
		.default_host = str_of(config->default_upstream ? config->default_upstream : ""),
		.login = upstreams_log_in,
		.wake = upstreams_wake,
		.wake_ctx = server,
		.vacancy = vacancy,
	};

	if (!specs)
		abort();
	*out = NULL;
	if (config->upstream_count == 0)
		return 0;
	for (size_t i = 0; i < config->upstream_count; i++) {
		if (upstreams_check_ca(cli, &config->upstreams[i], err) < 0)
			return -1;
		upstreams_describe(config, &config->upstreams[i], &specs[i]);
	}
	return mirror_open(&options, out, err) < 0 ? err_ctx(err, "mirror") : 0;
}

/* A number of each upstream. */
struct upstreams_number {
	const char *name;
	const char *labels; /* beside the upstream's own; or "" */
	const char *type;
	const char *help;
	size_t offset; /* in its report */
};

#define UPSTREAMS_NUMBER(member) offsetof(struct mirror_report, member)

static const struct upstreams_number upstreams_numbers[] = {
	{"hearth_mirror_requests_total", ",from=\"store\"", "counter",
	 "What was asked of the mirror: answered by the store, by an upstream, or by the store "
	 "since the upstream cannot be asked.",
	 UPSTREAMS_NUMBER(hits)},
	{"hearth_mirror_requests_total", ",from=\"upstream\"", NULL, NULL,
	 UPSTREAMS_NUMBER(misses)},
	{"hearth_mirror_requests_total", ",from=\"stale\"", NULL, NULL, UPSTREAMS_NUMBER(stale)},
	{"hearth_mirror_upstream_requests_total", "", "counter", "Requests to upstreams.",
	 UPSTREAMS_NUMBER(requests)},
	{"hearth_mirror_upstream_errors_total", "", "counter",
	 "Of these: without an answer that was any good.", UPSTREAMS_NUMBER(errors)},
	{"hearth_mirror_fetched_bytes_total", "", "counter", "Bytes that came from upstreams.",
	 UPSTREAMS_NUMBER(fetched_bytes)},
	{"hearth_mirror_served_bytes_total", "", "counter", "Bytes of theirs that were given away.",
	 UPSTREAMS_NUMBER(served_bytes)},
	{"hearth_mirror_held_bytes", "", "gauge",
	 "Bytes of theirs in the store, when that was "
	 "looked at last.",
	 UPSTREAMS_NUMBER(held_bytes)},
};

static int upstreams_add(struct mirror *mirror, const struct upstreams_number *number,
			 struct buf *page, struct err *err)
{
	struct mirror_report report;

	for (size_t i = 0; mirror_report(mirror, i, &report); i++) {
		char labels[512];
		struct metric_sample sample = {number->name, labels, i == 0 ? number->type : NULL,
					       number->help, 0};

		(void)snprintf(labels, sizeof(labels), "upstream=\"%s\"%s", report.host,
			       number->labels);
		memcpy(&sample.value, (const char *)&report + number->offset, sizeof(sample.value));
		if (metrics_value(page, &sample, err) < 0)
			return -1;
	}
	return 0;
}

static int upstreams_add_states(struct mirror *mirror, struct buf *page, struct err *err)
{
	struct mirror_report report;

	for (size_t i = 0; mirror_report(mirror, i, &report); i++) {
		char labels[512];
		const struct metric_sample sample = {
			"hearth_mirror_upstream_up", labels, i == 0 ? "gauge" : NULL,
			"Whether an upstream may be asked, as far as is known.",
			report.health == MIRROR_HEALTHY || report.health == MIRROR_UNASKED};

		(void)snprintf(labels, sizeof(labels), "upstream=\"%s\"", report.host);
		if (metrics_value(page, &sample, err) < 0)
			return -1;
	}
	return 0;
}

/* Of those that say so. */
static int upstreams_add_quotas(struct mirror *mirror, struct buf *page, struct err *err)
{
	const char *type = "gauge";
	struct mirror_report report;

	for (size_t i = 0; mirror_report(mirror, i, &report); i++) {
		char labels[512];
		const struct metric_sample sample = {
			"hearth_mirror_quota_remaining", labels, type,
			"Requests that an upstream still allows, as it says.",
			(uint64_t)report.remaining};

		if (report.remaining < 0)
			continue;
		type = NULL;
		(void)snprintf(labels, sizeof(labels), "upstream=\"%s\"", report.host);
		if (metrics_value(page, &sample, err) < 0)
			return -1;
	}
	return 0;
}

int upstreams_metrics(void *ctx, struct buf *page, struct err *err)
{
	const struct metric_sample fills = {"hearth_mirror_fills", "", "gauge",
					    "Blobs that arrive from upstreams at present.",
					    mirror_fills(ctx)};

	for (size_t i = 0; i < sizeof(upstreams_numbers) / sizeof(upstreams_numbers[0]); i++) {
		if (upstreams_add(ctx, &upstreams_numbers[i], page, err) < 0)
			return -1;
	}
	if (upstreams_add_states(ctx, page, err) < 0 || upstreams_add_quotas(ctx, page, err) < 0)
		return -1;
	return metrics_value(page, &fills, err);
}

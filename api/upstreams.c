/* SPDX-License-Identifier: Apache-2.0 */
#include "api/upstreams.h"

#include "api/access.h"

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
		.max_bytes = upstream->max_bytes,
	};
}

int upstreams_open(const struct cli *cli, struct store *store, struct server *server,
		   struct mirror **out, struct err *err)
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
	};

	if (!specs)
		abort();
	*out = NULL;
	if (config->upstream_count == 0)
		return 0;
	for (size_t i = 0; i < config->upstream_count; i++)
		upstreams_describe(config, &config->upstreams[i], &specs[i]);
	return mirror_open(&options, out, err) < 0 ? err_ctx(err, "mirror") : 0;
}

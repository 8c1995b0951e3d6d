/* SPDX-License-Identifier: Apache-2.0 */
/* origin_registry.c - a registry, on a connection for each lane. */
#include "registry/fetch_priv.h"
#include "registry/origin_priv.h"
#include "registry/pull.h"
#include "registry/referrers_remote_priv.h"

struct origin_registry {
	struct origin origin;
	const struct reference *reference;
	struct remote *remote;
	struct http *lanes[LANES]; /* made when first used, by who uses them */
	struct buf got;            /* what a tag's GET gave, so that it is got once */
	struct digest got_digest;
};

static int origin_registry_lane(struct origin_registry *registry, size_t lane, struct http **out,
				struct err *err)
{
	if (!registry->lanes[lane] &&
	    remote_connect(registry->remote, &registry->lanes[lane], err) < 0)
		return -1;
	*out = registry->lanes[lane];
	return 0;
}

static int origin_registry_resolve(struct origin *origin, struct digest *out, struct err *err)
{
	struct origin_registry *registry = container_of(origin, struct origin_registry, origin);
	char tag[REFERENCE_TEXT_MAX];
	struct digest named;
	struct http *http;
	int found;

	if (registry->reference->has_digest) {
		*out = registry->reference->digest;
		return 0;
	}
	(void)snprintf(tag, sizeof(tag), STR_FMT, STR_ARG(registry->reference->tag));
	if (origin_registry_lane(registry, 0, &http, err) < 0)
		return -1;
	found = fetch_head(registry->remote, http, tag, &named, err);
	if (found < 0)
		return -1;
	if (found == 1 && named.algorithm == DIGEST_SHA256) {
		*out = named;
		return 0;
	}
	if (fetch_manifest(registry->remote, http, tag, &registry->got, &registry->got_digest,
			   err) < 0)
		return -1;
	*out = registry->got_digest;
	return 0;
}

static int origin_registry_document(struct origin *origin, const struct digest *digest,
				    struct buf *out, struct err *err)
{
	struct origin_registry *registry = container_of(origin, struct origin_registry, origin);
	char name[DIGEST_TEXT_MAX];
	struct digest found;
	struct http *http;

	if (registry->got.len > 0 && digest_equal(digest, &registry->got_digest))
		return buf_add(out, buf_str(&registry->got), err);
	if (origin_registry_lane(registry, 0, &http, err) < 0 ||
	    fetch_manifest(registry->remote, http, digest_format(digest, name), out, &found, err) <
		    0)
		return -1;
	if (!digest_is_of(digest, buf_str(out)))
		return err_set(err, ERR_CORRUPT, "the manifest does not have the digest %s", name);
	return 0;
}

static int origin_registry_blob(struct origin *origin, size_t lane, const struct descriptor *blob,
				struct sink *out, struct err *err)
{
	struct origin_registry *registry = container_of(origin, struct origin_registry, origin);
	struct http *http;

	if (origin_registry_lane(registry, lane, &http, err) < 0)
		return -1;
	return fetch_blob(registry->remote, http, blob, out, err);
}

static int origin_registry_referrers(struct origin *origin, const struct digest *subject,
				     int (*fn)(void *ctx, const struct digest *digest,
					       struct err *err),
				     void *ctx, struct err *err)
{
	struct origin_registry *registry = container_of(origin, struct origin_registry, origin);
	struct http *http;

	if (origin_registry_lane(registry, 0, &http, err) < 0)
		return -1;
	return referrers_remote_each(registry->remote, http, subject, fn, ctx, err);
}

static void origin_registry_warn(void *ctx, struct str text)
{
	const struct origin_registry *registry = ctx;

	if (registry->origin.warn)
		registry->origin.warn(registry->origin.warn_ctx, text);
}

static void origin_registry_close(struct origin *origin)
{
	struct origin_registry *registry = container_of(origin, struct origin_registry, origin);

	for (size_t i = 0; i < LANES; i++)
		http_close(registry->lanes[i]);
	remote_close(registry->remote);
	buf_done(&registry->got);
	free(registry);
}

int origin_registry_open(const struct pull_spec *spec, const struct cancel *stop,
			 struct origin **out, struct err *err)
{
	const struct reference *reference = spec->mirror ? spec->mirror : spec->reference;
	struct origin_registry *registry = calloc(1, sizeof(*registry));
	const struct remote_spec remote = {.host = reference->host,
					   .path = reference->path,
					   .source = spec->mirror ? spec->reference->host : STR(""),
					   .plain_http = spec->plain_http,
					   .ca_file = spec->ca_file,
					   .user = spec->user,
					   .password = spec->password,
					   .tries = spec->mirror ? PULL_MIRROR_TRIES : PULL_TRIES,
					   .warn = origin_registry_warn,
					   .warn_ctx = registry,
					   .cancel = spec->cancel,
					   .cancel_too = stop};

	if (!registry)
		abort();
	registry->origin = (struct origin){.resolve = origin_registry_resolve,
					   .document = origin_registry_document,
					   .blob = origin_registry_blob,
					   .referrers = origin_registry_referrers,
					   .close = origin_registry_close};
	registry->reference = reference;
	registry->got = BUF_INIT(MANIFEST_MAX);
	if (remote_open(&remote, &registry->remote, err) < 0) {
		origin_registry_close(&registry->origin);
		return -1;
	}
	*out = &registry->origin;
	return 0;
}

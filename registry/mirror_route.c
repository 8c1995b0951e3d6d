/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_route.c - which upstream a request means.
 *
 *	?ns=HOST                    HOST, or nobody
 *	/v2/HOST/NAME/...           HOST, if it is an upstream
 *	by HOST's own listener      HOST
 *	any other name              the default upstream, if it is to be read and is not ours
 */
#include "registry/mirror_priv.h"

#include "layers/meta.h"
#include "registry/repository.h"
#include "registry/v2_path.h"

#include <stdio.h>

struct mirror_upstream *mirror_find_upstream(struct mirror *mirror, struct str text)
{
	char host[URL_HOST_MAX];
	struct err ignored;

	if (mirror_host_name(text, host, &ignored) < 0)
		return NULL;
	for (size_t i = 0; i < mirror->upstream_count; i++) {
		if (strcmp(mirror->upstreams[i].host, host) == 0)
			return &mirror->upstreams[i];
	}
	return NULL;
}

int mirror_place_make(struct mirror_upstream *upstream, struct str name, struct mirror_place *out,
		      struct err *err)
{
	bool is_short = upstream->is_hub && !memchr(name.ptr, '/', name.len);
	struct mirror_place place = {.upstream = upstream, .host_len = strlen(upstream->host)};
	int len = snprintf(place.key, sizeof(place.key), "%s/%s" STR_FMT, upstream->host,
			   is_short ? "library/" : "", STR_ARG(name));

	if (len < 0 || (size_t)len >= sizeof(place.key))
		return err_set(err, ERR_INVALID, "the name is longer than %zu bytes with its host",
			       REFERENCE_REPOSITORY_MAX);
	*out = place;
	return 1;
}

/*
 * 1, 0 it is ours, -1. Who pushes asks for each blob whether it is there, before
 * anything of his is here: the default upstream hears of none of these, unless
 * somebody has pulled from that repository of its.
 */
static int mirror_route_to_default(struct mirror *mirror, const struct v2_path *path,
				   struct mirror_place *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (!mirror->fallback || path->action != V2_PULL)
		return 0;
	if (meta_begin(mirror->options.store, META_READ, &meta, err) < 0)
		return -1;
	found = repository_is_begun(meta, path->repository, err);
	if (found != 0)
		return found < 0 ? -1 : 0;
	if (mirror_place_make(mirror->fallback, path->repository, out, err) < 0)
		return -1;
	found = repository_exists(meta, str_of(out->key), err);
	if (found < 0)
		return -1;
	out->by_default = true;
	out->is_new = found == 0;
	return path->kind == V2_BLOB && path->heads ? found : 1;
}

int mirror_route(struct mirror *mirror, const struct v2_path *path, struct mirror_place *out,
		 struct err *err)
{
	struct mirror_upstream *upstream;
	struct str rest = path->repository;
	struct str first;

	if (path->repository.len == 0)
		return 0;
	if (path->ns.len > 0) {
		upstream = mirror_find_upstream(mirror, path->ns);
		if (!upstream)
			return err_set(err, ERR_DENIED,
				       STR_FMT " is no upstream of this mirror; the configuration "
					       "names them as mirror.upstreams",
				       STR_ARG(path->ns));
		return mirror_place_make(upstream, rest, out, err);
	}
	(void)str_cut(&rest, '/', &first);
	upstream = mirror_find_upstream(mirror, first);
	if (upstream && rest.len > 0)
		return mirror_place_make(upstream, rest, out, err);
	upstream = path->door.len > 0 ? mirror_find_upstream(mirror, path->door) : NULL;
	if (upstream)
		return mirror_place_make(upstream, path->repository, out, err);
	return mirror_route_to_default(mirror, path, out, err);
}

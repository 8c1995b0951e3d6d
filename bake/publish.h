/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h - push an image of the store to a registry, by hearth-puller's role
 * `push` (registry/push.h).
 */
#pragma once

#include "bake/asker.h"
#include "bake/bake.h"

struct publish_request {
	struct str reference; /* canonical */
	struct digest manifest;
	const struct str *tags; /* further ones, at most PUSH_TAGS_MAX */
	size_t tag_count;
	const struct digest *referrers; /* as push.h has them */
	size_t referrer_count;
	struct str from; /* a repository of that registry which has the blobs, or "" */
	bool plain_http;
	const char *ca_file; /* or NULL */
	struct str user;     /* credentials for the reference's registry, or empty */
	const struct secret *password;
};

/*
 * Reports BAKE_PUSH, BAKE_PUSH_BLOB and BAKE_PUSH_DONE through event, in the
 * caller's thread. The asker's progress and ctx are not used.
 */
int publish_image(const struct asker *asker, const struct publish_request *request,
		  bake_event_fn *event, void *event_ctx, struct err *err) MUST_CHECK;

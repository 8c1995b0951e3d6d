/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc_versions.h - which versions of agents keep their images.
 *
 * Of each agent's versions that have an image the newest `keep` keep it, and so
 * does every version with an open session. Each keeps the image that its last
 * rebake replaced, too, for a rollback. An older version loses its name,
 * `<slug>:<version>`, and its status says so; its image then goes like any that
 * nothing names.
 *
 * A context stays as long as its version is the latest, among the newest `keep`,
 * or keeps its image.
 */
#pragma once

#include "layers/digest_set.h"
#include "layers/meta.h"

#define GC_VERSIONS_MAX ((size_t)1000000) /* of one store, with images */

struct gc_version {
	char agent_id[ID_TEXT_MAX];
	int64_t number;
	struct digest image;
	struct digest previous; /* all zero where there is none */
	bool in_use;            /* by a session */
	bool goes;
};

struct gc_versions {
	int64_t keep;
	struct gc_version *at; /* owned; an agent's are neighbours, newest first */
	size_t count;
	char **names; /* owned, sorted: the tags of those that go */
	size_t name_count;
};

/* keep may be GC_NEVER; the newest image of an agent stays whatever it is. */
int gc_versions_read(struct meta *meta, int64_t keep, struct gc_versions *out, struct err *err)
	MUST_CHECK;

/* The images of those that stay. */
int gc_versions_images(const struct gc_versions *versions, struct digest_set *out, struct err *err)
	MUST_CHECK;

/* Whether this is the tag of a version that goes. */
bool gc_versions_names(const struct gc_versions *versions, struct str reference);

/*
 * In a write transaction: remove tag and image of the next `max` that go, from
 * *at on, unless they are used by now.
 */
int gc_versions_forget(struct meta *meta, const struct gc_versions *versions, size_t *at,
		       size_t max, struct err *err) MUST_CHECK;

/* The contexts that versions keep. */
int gc_versions_contexts(struct meta *meta, const struct gc_versions *versions,
			 struct digest_set *out, struct err *err) MUST_CHECK;

void gc_versions_done(struct gc_versions *versions);

static inline void auto_gc_versions_release(struct gc_versions *slot)
{
	gc_versions_done(slot);
}
#define auto_gc_versions AUTO(gc_versions)

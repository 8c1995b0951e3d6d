/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_record_priv.h - table `upstreams`: what upstreams said, and when, of what
 * has no digest: what a tag stands for, and lists. A place is a repository's name with
 * its host, "docker.io/library/alpine".
 */
#pragma once

#include "layers/digest.h"
#include "layers/meta.h"

struct mirror_tag {
	struct digest digest;
	int64_t checked_ms; /* when the upstream said so, since 1970 */
};

/* 1, 0 or -1. */
int mirror_record_find_tag(struct meta *meta, const char *place, struct str tag,
			   struct mirror_tag *out, struct err *err) MUST_CHECK;
int mirror_record_put_tag(struct meta *meta, const char *place, struct str tag,
			  const struct mirror_tag *value, struct err *err) MUST_CHECK;
int mirror_record_del_tag(struct meta *meta, const char *place, struct str tag, struct err *err)
	MUST_CHECK;

/* The tags of a place that are known: an array of their names, in order, which the caller owns. */
int mirror_record_list_tags(struct meta *meta, const char *place, json_t **out, struct err *err)
	MUST_CHECK;

/*
 * A list that the upstream gave, and when: of "tags", or of what refers to a
 * digest. The caller owns *out. 1, 0 or -1.
 */
int mirror_record_find_list(struct meta *meta, const char *place, struct str what, json_t **out,
			    int64_t *out_ms, struct err *err) MUST_CHECK;
int mirror_record_put_list(struct meta *meta, const char *place, struct str what, json_t *list,
			   int64_t at_ms, struct err *err) MUST_CHECK;

/*
 * Remove at most max records that are older, but for tags whose manifest is here.
 * How many were, or -1.
 */
int mirror_record_forget(struct meta *meta, int64_t before_ms, size_t max, struct err *err)
	MUST_CHECK;

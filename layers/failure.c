/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure.c - table `steps.failed`: the hex of a step's key -> v, atMs, and the
 * members of a log (step_log.c).
 */
#include "layers/failure.h"

#include <stdio.h>

struct oldest {
	size_t count;
	int64_t at_ms;
	char hex[DIGEST_HEX_MAX];
};

static int failure_consider(void *ctx, struct str key, const json_t *record, struct err *err)
{
	struct oldest *oldest = ctx;
	int64_t at_ms;

	if (json_need_int(record, FAILURE_TABLE, "atMs", &at_ms, err) < 0)
		return -1;
	if (oldest->count++ == 0 || at_ms < oldest->at_ms) {
		oldest->at_ms = at_ms;
		(void)snprintf(oldest->hex, sizeof(oldest->hex), STR_FMT, STR_ARG(key));
	}
	return 0;
}

static int failure_keep_newest(struct meta *meta, struct err *err)
{
	struct oldest oldest = {0};

	if (meta_each(meta, FAILURE_TABLE, STR(""), failure_consider, &oldest, err) < 0)
		return -1;
	if (oldest.count <= FAILURES_MAX)
		return 0;
	return meta_del(meta, FAILURE_TABLE, str_of(oldest.hex), err) < 0 ? -1 : 0;
}

int failure_put(struct meta *meta, const struct failure *failure, struct err *err)
{
	AUTO(json) json_t *record = json_pack("{s:i, s:I}", "v", 1, "atMs", failure->at_ms);
	char hex[DIGEST_HEX_MAX];

	if (!record)
		abort();
	step_log_format(&failure->log, record);
	if (meta_put(meta, FAILURE_TABLE, str_of(digest_hex(&failure->key, hex)), record, err) < 0)
		return -1;
	return failure_keep_newest(meta, err);
}

struct search {
	struct failure *found;
	size_t count;
};

static int failure_take(void *ctx, struct str key, const json_t *record, struct err *err)
{
	struct search *search = ctx;
	char text[DIGEST_TEXT_MAX];

	if (search->count++ > 0)
		return 0; /* one too many; the caller says so */
	(void)snprintf(text, sizeof(text), "sha256:" STR_FMT, STR_ARG(key));
	if (digest_parse(str_of(text), &search->found->key, err) < 0 ||
	    json_need_int(record, FAILURE_TABLE, "atMs", &search->found->at_ms, err) < 0)
		return -1;
	return step_log_parse(record, &search->found->log, err);
}

int failure_find(struct meta *meta, struct str hex, struct failure *out, struct err *err)
{
	struct search search = {.found = out};

	if (meta_each(meta, FAILURE_TABLE, hex, failure_take, &search, err) < 0)
		return -1;
	if (search.count > 1)
		return err_set(err, ERR_INVALID, "%zu steps that failed begin with " STR_FMT,
			       search.count, STR_ARG(hex));
	return (int)search.count;
}

int failure_remove(struct meta *meta, const struct digest *key, struct err *err)
{
	char hex[DIGEST_HEX_MAX];

	return meta_del(meta, FAILURE_TABLE, str_of(digest_hex(key, hex)), err);
}

void failure_done(struct failure *failure)
{
	step_log_done(&failure->log);
}

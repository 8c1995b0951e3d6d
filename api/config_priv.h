/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_priv.h - the parts of a configuration's reading that its files share.
 *
 * The document was seen by the schema (config.c), so types are right; members that
 * are not there leave *out as it is. path is the object's, for messages. All fail
 * with ERR_INVALID.
 */
#pragma once

#include "api/config.h"
#include "layers/base/schema.h"

#define CONFIG_MS_MAX ((int64_t)100 * 366 * 24 * 3600 * 1000) /* a century */

/* A text, which is not empty. */
int config_text(const json_t *object, const char *path, const char *key, const char **out,
		struct err *err) MUST_CHECK;

/* A number, which is not above max: it would overflow somewhere. */
int config_number(const json_t *object, const char *path, const char *key, int64_t max,
		  int64_t *out, struct err *err) MUST_CHECK;
void config_size(const json_t *object, const char *key, uint64_t *out);

/* Room for all of a list, or of an object's members, which config_done() frees in any case. */
int config_room(const json_t *list, const char *path, size_t size, void *out, struct err *err)
	MUST_CHECK;
int config_texts(const json_t *list, const char *path, struct config_texts *out, struct err *err)
	MUST_CHECK;

/* Check HOST:PORT, or NULL; the port is needed, and 0 is any free one. */
int config_check_listen(const char *text, struct err *err) MUST_CHECK;

/* Check a member that is an object, under a name that the operator chose. */
int config_check_member(json_t *value, const struct schema *keys, const char *path, struct err *err)
	MUST_CHECK;

/* `registry` and `mirror`. */
int config_read_registry(const json_t *document, struct config *out, struct err *err) MUST_CHECK;
int config_read_upstreams(const json_t *document, struct config *out, struct err *err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - JSON documents read with care and written one way.
 *
 * A document from outside is parsed whole, under ceilings of size and depth;
 * duplicate keys and NULs in strings are errors. The getters check presence and
 * type, and name the path of what is wrong ("image.steps[2]: expected a string").
 *
 * Ownership: json_get_*() lend what belongs to the document. A json_t * that
 * is owned is declared `AUTO(json) json_t *`.
 */
#pragma once

#include "layers/base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

DEFINE_AUTO(json, json_t *, json_decref);

#define JSON_DEPTH_MAX 128 /* levels; what people write has ten */

/* Parse one document. ERR_INVALID names line and column; ERR_LIMIT above max. */
int json_parse(struct str text, size_t max, json_t **out, struct err *err) MUST_CHECK;

/*
 * Append the canonical form: keys sorted by bytes, no blanks. The same value
 * has the same bytes, whatever made it.
 */
int json_format(const json_t *value, struct buf *out, struct err *err) MUST_CHECK;

/*
 * Members of an object. 1 found, 0 absent or null, -1 of another type:
 * ERR_INVALID, naming path and key. path may be "".
 */
int json_get_string(const json_t *object, const char *path, const char *key, struct str *out,
		    struct err *err) MUST_CHECK;
int json_get_int(const json_t *object, const char *path, const char *key, int64_t *out,
		 struct err *err) MUST_CHECK;
int json_get_bool(const json_t *object, const char *path, const char *key, bool *out,
		  struct err *err) MUST_CHECK;
int json_get_object(const json_t *object, const char *path, const char *key, json_t **out,
		    struct err *err) MUST_CHECK;
int json_get_array(const json_t *object, const char *path, const char *key, json_t **out,
		   struct err *err) MUST_CHECK;

/* The same, where absence is ERR_INVALID too. 0 or -1. */
int json_need_string(const json_t *object, const char *path, const char *key, struct str *out,
		     struct err *err) MUST_CHECK;
int json_need_int(const json_t *object, const char *path, const char *key, int64_t *out,
		  struct err *err) MUST_CHECK;
int json_need_object(const json_t *object, const char *path, const char *key, json_t **out,
		     struct err *err) MUST_CHECK;
int json_need_array(const json_t *object, const char *path, const char *key, json_t **out,
		    struct err *err) MUST_CHECK;

/* "a string", "an object", …: for messages. */
const char *json_type_name(json_type type);

/*
 * From now on what a document occupied is zeroed when it is released: once, at
 * the start of a program that parses secrets, before any thread and document.
 */
void json_wipe_released(void);

/* A string value of these bytes. NUL and what is not UTF-8 become U+FFFD. */
json_t *json_from_str(struct str text);

/* Set a member. The value is taken over; NULL is one that had no memory, and aborts. */
void json_set(json_t *object, const char *key, json_t *value);

/* The same of one type. Text that is NULL leaves the object as it is. */
void json_set_text(json_t *object, const char *key, const char *text);
void json_set_int(json_t *object, const char *key, int64_t value);
void json_set_size(json_t *object, const char *key, uint64_t value);
void json_set_bool(json_t *object, const char *key, bool value);

/* A string value's bytes. */
static inline struct str json_str(const json_t *string)
{
	return (struct str){json_string_value(string), json_string_length(string)};
}

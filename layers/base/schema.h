/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - which keys an object may have, and what their values are.
 *
 * A schema is a table. A value that does not fit is ERR_INVALID, with its path
 * and what was expected (err.h): "sandbox.image.steps[2]: expected a string,
 * found an integer"; for an unknown key the nearest known one is named, too.
 * null is the same as absent.
 */
#pragma once

#include "layers/base/json.h"

#define SCHEMA_PATH_MAX ERR_PATH_MAX
#define SCHEMA_INTEGER_MAX 9007199254740991 /* what every JSON reader keeps exact: 2^53 - 1 */
#define SCHEMA_WARNINGS_MAX ((size_t)100)   /* and one that says that there are more */

enum schema_type {
	SCHEMA_STRING,
	SCHEMA_STRINGS, /* an array of strings */
	SCHEMA_COUNT,   /* an integer from 0 */
	SCHEMA_AMOUNT,  /* an integer from 1 */
	SCHEMA_NUMBER,
	SCHEMA_BOOL,
	SCHEMA_OBJECT,
	SCHEMA_NAMED,   /* an object, or a string that names one */
	SCHEMA_OBJECTS, /* an array of objects */
};

struct schema {
	const char *name;
	enum schema_type type;
	const char *const *choices;   /* of a string; ends with NULL; NULL for any */
	const struct schema *members; /* of objects; ends with a nameless one; NULL for any */
	double least;                 /* of SCHEMA_NUMBER */
	double most; /* of it; of integers, 0 for SCHEMA_INTEGER_MAX; of arrays, 0 for any number */
};

struct schema_path {
	char text[SCHEMA_PATH_MAX];
};

/* The path of a member and of an array's item; path may be "". */
struct schema_path schema_at_key(const char *path, const char *key);
struct schema_path schema_at_item(const char *path, size_t item);

/* path is of the object, "" at the top. */
int schema_check(json_t *object, const struct schema *members, const char *path, struct err *err)
	MUST_CHECK;

/*
 * The same of an object, or NULL, that may have other keys: each is appended to
 * warnings, unless that is NULL.
 */
int schema_check_open(json_t *object, const struct schema *members, const char *path,
		      json_t *warnings, struct err *err) MUST_CHECK;

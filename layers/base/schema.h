/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - which keys an object may have, and what their values are.
 *
 * A schema is a table. What does not fit is ERR_INVALID and named by its path
 * ("sandbox.image.steps[2]: expected a string, found an integer"); for an
 * unknown key the nearest known one is named too. null is the same as absent.
 */
#pragma once

#include "layers/base/json.h"

#define SCHEMA_PATH_MAX ((size_t)160)

enum schema_type {
	SCHEMA_STRING,
	SCHEMA_STRINGS, /* an array of strings */
	SCHEMA_COUNT,   /* an integer from 0 */
	SCHEMA_AMOUNT,  /* an integer from 1 */
	SCHEMA_NUMBER,  /* above 0 */
	SCHEMA_BOOL,
	SCHEMA_OBJECT,
	SCHEMA_OBJECTS, /* an array of objects */
};

struct schema {
	const char *name;
	enum schema_type type;
	const char *const *choices;   /* of a string; ends with NULL; NULL for any */
	const struct schema *members; /* of objects; ends with a nameless one; NULL for any */
};

/* path is of the object, "" at the top. */
int schema_check(json_t *object, const struct schema *members, const char *path, struct err *err)
	MUST_CHECK;

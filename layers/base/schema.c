/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/schema.h"

#include "layers/base/nearest.h"

#include <stdio.h>

#define SCHEMA_NAMES_MAX ((size_t)32)

struct schema_path schema_at_key(const char *path, const char *key)
{
	struct schema_path at;

	(void)snprintf(at.text, sizeof(at.text), "%s%s%s", path, *path ? "." : "", key);
	return at;
}

struct schema_path schema_at_item(const char *path, size_t item)
{
	struct schema_path at;
	int len = (int)strnlen(path, SCHEMA_PATH_MAX - sizeof("[18446744073709551615]"));

	(void)snprintf(at.text, sizeof(at.text), "%.*s[%zu]", len, path, item);
	return at;
}

static int schema_wrong(const char *path, const char *expected, const json_t *value,
			struct err *err)
{
	(void)err_wrong(err, expected, "expected %s, found %s", expected,
			json_type_name(json_typeof(value)));
	return err_at(err, path, NULL);
}

/* "one of A, B, C" */
static int schema_list(const char *const *names, struct buf *out, struct err *err)
{
	if (buf_addf(out, err, "one of") < 0)
		return -1;
	for (size_t i = 0; names[i]; i++) {
		if (buf_addf(out, err, "%s %s", i ? "," : "", names[i]) < 0)
			return -1;
	}
	return 0;
}

/* The members' names, and how many they are; ends with NULL. */
static size_t schema_names(const struct schema *members, const char *names[SCHEMA_NAMES_MAX + 1])
{
	size_t count = 0;

	for (; count < SCHEMA_NAMES_MAX && members[count].name; count++)
		names[count] = members[count].name;
	names[count] = NULL;
	return count;
}

static int schema_refuse_key(const char *key, const struct schema *members, const char *path,
			     struct err *err)
{
	auto_buf struct buf list = BUF_INIT(512);
	const char *names[SCHEMA_NAMES_MAX + 1];
	char hint[NEAREST_HINT_MAX];
	size_t count = schema_names(members, names);

	if (schema_list(names, &list, err) < 0)
		return -1;
	if (*nearest_hint(str_of(key), names, count, hint))
		(void)err_wrong(err, list.ptr, "unknown key%s", hint);
	else
		(void)err_wrong(err, list.ptr, "unknown key; expected %s", list.ptr);
	return err_at(err, path, key);
}

static void schema_warn(const char *key, const struct schema *members, const char *path,
			json_t *warnings)
{
	const char *names[SCHEMA_NAMES_MAX + 1];
	char hint[NEAREST_HINT_MAX];
	char text[2 * SCHEMA_PATH_MAX];
	size_t count = schema_names(members, names);

	if (json_array_size(warnings) > SCHEMA_WARNINGS_MAX)
		return;
	(void)snprintf(text, sizeof(text), "%s%s%.60s: unknown key, kept and not used%s", path,
		       *path ? "." : "", key, nearest_hint(str_of(key), names, count, hint));
	if (json_array_size(warnings) == SCHEMA_WARNINGS_MAX)
		(void)snprintf(text, sizeof(text), "and more unknown keys");
	json_array_append_new(warnings, json_from_str(str_of(text)));
}

static int schema_check_string(const struct schema *schema, const json_t *value, const char *path,
			       struct err *err)
{
	auto_buf struct buf list = BUF_INIT(512);

	if (!json_is_string(value))
		return schema_wrong(path, "a string", value, err);
	if (!schema->choices)
		return 0;
	for (size_t i = 0; schema->choices[i]; i++) {
		if (strcmp(schema->choices[i], json_string_value(value)) == 0)
			return 0;
	}
	if (schema_list(schema->choices, &list, err) < 0)
		return -1;
	(void)err_wrong(err, list.ptr, "expected %s, found \"%.40s\"", list.ptr,
			json_string_value(value));
	return err_at(err, path, NULL);
}

static int schema_check_integer(const json_t *value, json_int_t least, json_int_t most,
				const char *path, struct err *err)
{
	json_int_t found = json_integer_value(value);
	char expected[64];

	if (!json_is_integer(value))
		return schema_wrong(path, "an integer", value, err);
	if (found >= least && found <= most)
		return 0;
	if (found < least)
		(void)snprintf(expected, sizeof(expected), "at least %" JSON_INTEGER_FORMAT, least);
	else
		(void)snprintf(expected, sizeof(expected), "at most %" JSON_INTEGER_FORMAT, most);
	(void)err_wrong(err, expected, "expected %s, found %" JSON_INTEGER_FORMAT, expected, found);
	return err_at(err, path, NULL);
}

static int schema_check_number(const struct schema *schema, const json_t *value, const char *path,
			       struct err *err)
{
	double found = json_number_value(value);
	char expected[64];

	if (!json_is_number(value))
		return schema_wrong(path, "a number", value, err);
	if (found >= schema->least && found <= schema->most)
		return 0;
	(void)snprintf(expected, sizeof(expected), "%g to %g", schema->least, schema->most);
	(void)err_wrong(err, expected, "expected %s, found %g", expected, found);
	return err_at(err, path, NULL);
}

static int schema_check_object(const struct schema *schema, json_t *value, const char *path,
			       struct err *err)
{
	if (!json_is_object(value))
		return schema_wrong(path, "an object", value, err);
	return schema->members ? schema_check(value, schema->members, path, err) : 0;
}

static int schema_check_array(const struct schema *schema, json_t *value, const char *path,
			      struct err *err)
{
	json_t *item;
	size_t i;

	if (!json_is_array(value))
		return schema_wrong(path, "an array", value, err);
	if (schema->most > 0 && json_array_size(value) > (size_t)schema->most) {
		(void)err_set(err, ERR_LIMIT, "more than %g", schema->most);
		return err_at(err, path, NULL);
	}
	json_array_foreach(value, i, item)
	{
		struct schema_path at = schema_at_item(path, i);

		if (schema->type == SCHEMA_STRINGS
			    ? schema_check_string(schema, item, at.text, err) < 0
			    : schema_check_object(schema, item, at.text, err) < 0)
			return -1;
	}
	return 0;
}

static int schema_check_value(const struct schema *schema, json_t *value, const char *path,
			      struct err *err)
{
	json_int_t most = schema->most > 0 ? (json_int_t)schema->most : SCHEMA_INTEGER_MAX;

	switch (schema->type) {
	case SCHEMA_STRING:
		return schema_check_string(schema, value, path, err);
	case SCHEMA_COUNT:
		return schema_check_integer(value, 0, most, path, err);
	case SCHEMA_AMOUNT:
		return schema_check_integer(value, 1, most, path, err);
	case SCHEMA_NUMBER:
		return schema_check_number(schema, value, path, err);
	case SCHEMA_BOOL:
		return json_is_boolean(value) ? 0 : schema_wrong(path, "true or false", value, err);
	case SCHEMA_NAMED:
		if (json_is_string(value))
			return 0;
		return json_is_object(value)
			       ? 0
			       : schema_wrong(path, "an object or a string", value, err);
	case SCHEMA_OBJECT:
		return schema_check_object(schema, value, path, err);
	case SCHEMA_STRINGS:
	case SCHEMA_OBJECTS:
		return schema_check_array(schema, value, path, err);
	}
	return 0;
}

/* 1 it is a member, and right; 0 it is none; -1. */
static int schema_check_member(const char *key, json_t *value, const struct schema *members,
			       const char *path, struct err *err)
{
	while (members->name && strcmp(members->name, key) != 0)
		members++;
	if (!members->name)
		return 0;
	if (!json_is_null(value) &&
	    schema_check_value(members, value, schema_at_key(path, key).text, err) < 0)
		return -1;
	return 1;
}

int schema_check(json_t *object, const struct schema *members, const char *path, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		int known = schema_check_member(key, value, members, path, err);

		if (known == 0)
			return schema_refuse_key(key, members, path, err);
		if (known < 0)
			return -1;
	}
	return 0;
}

int schema_check_open(json_t *object, const struct schema *members, const char *path,
		      json_t *warnings, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		int known = schema_check_member(key, value, members, path, err);

		if (known == 0 && warnings)
			schema_warn(key, members, path, warnings);
		if (known < 0)
			return -1;
	}
	return 0;
}

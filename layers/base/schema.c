/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/schema.h"

#include "layers/base/nearest.h"

#include <stdio.h>

#define SCHEMA_NAMES_MAX ((size_t)32)

struct schema_path {
	char text[SCHEMA_PATH_MAX];
};

static struct schema_path schema_at_key(const char *path, const char *key)
{
	struct schema_path at;

	(void)snprintf(at.text, sizeof(at.text), "%s%s%s", path, *path ? "." : "", key);
	return at;
}

static struct schema_path schema_at_item(const char *path, size_t item)
{
	struct schema_path at;
	int len = (int)strnlen(path, SCHEMA_PATH_MAX - sizeof("[18446744073709551615]"));

	(void)snprintf(at.text, sizeof(at.text), "%.*s[%zu]", len, path, item);
	return at;
}

static int schema_wrong(const char *path, const char *expected, const json_t *value,
			struct err *err)
{
	return err_set(err, ERR_INVALID, "%s: expected %s, found %s", path, expected,
		       json_type_name(json_typeof(value)));
}

static int schema_refuse_key(const char *key, const struct schema *members, const char *path,
			     struct err *err)
{
	const char *names[SCHEMA_NAMES_MAX];
	char hint[NEAREST_HINT_MAX];
	size_t count = 0;

	for (; count < SCHEMA_NAMES_MAX && members[count].name; count++)
		names[count] = members[count].name;
	return err_set(err, ERR_INVALID, "%s: unknown key%s", schema_at_key(path, key).text,
		       nearest_hint(str_of(key), names, count, hint));
}

static int schema_check_string(const struct schema *schema, const json_t *value, const char *path,
			       struct err *err)
{
	auto_buf struct buf list = BUF_INIT(512);

	if (!json_is_string(value))
		return schema_wrong(path, "a string", value, err);
	for (size_t i = 0; schema->choices && schema->choices[i]; i++) {
		if (strcmp(schema->choices[i], json_string_value(value)) == 0)
			return 0;
		if (buf_addf(&list, err, "%s%s", i ? ", " : "", schema->choices[i]) < 0)
			return -1;
	}
	if (!schema->choices)
		return 0;
	return err_set(err, ERR_INVALID, "%s: expected one of %s, found \"%.40s\"", path, list.ptr,
		       json_string_value(value));
}

static int schema_check_integer(const json_t *value, json_int_t least, const char *path,
				struct err *err)
{
	if (!json_is_integer(value))
		return schema_wrong(path, "an integer", value, err);
	if (json_integer_value(value) < least)
		return err_set(err, ERR_INVALID, "%s: expected at least %" JSON_INTEGER_FORMAT,
			       path, least);
	return 0;
}

static int schema_check_number(const json_t *value, const char *path, struct err *err)
{
	if (!json_is_number(value))
		return schema_wrong(path, "a number", value, err);
	if (!(json_number_value(value) > 0))
		return err_set(err, ERR_INVALID, "%s: expected more than 0", path);
	return 0;
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
	switch (schema->type) {
	case SCHEMA_STRING:
		return schema_check_string(schema, value, path, err);
	case SCHEMA_COUNT:
		return schema_check_integer(value, 0, path, err);
	case SCHEMA_AMOUNT:
		return schema_check_integer(value, 1, path, err);
	case SCHEMA_NUMBER:
		return schema_check_number(value, path, err);
	case SCHEMA_BOOL:
		return json_is_boolean(value) ? 0 : schema_wrong(path, "true or false", value, err);
	case SCHEMA_OBJECT:
		return schema_check_object(schema, value, path, err);
	case SCHEMA_STRINGS:
	case SCHEMA_OBJECTS:
		return schema_check_array(schema, value, path, err);
	}
	return 0;
}

int schema_check(json_t *object, const struct schema *members, const char *path, struct err *err)
{
	void *at = json_object_iter(object);

	for (; at; at = json_object_iter_next(object, at)) {
		const char *key = json_object_iter_key(at);
		json_t *value = json_object_iter_value(at);
		const struct schema *found = members;

		while (found->name && strcmp(found->name, key) != 0)
			found++;
		if (!found->name)
			return schema_refuse_key(key, members, path, err);
		if (!json_is_null(value) &&
		    schema_check_value(found, value, schema_at_key(path, key).text, err) < 0)
			return -1;
	}
	return 0;
}

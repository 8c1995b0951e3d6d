/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/json.h"

#include <malloc.h>
#include <string.h>

/* jansson parses by recursion, and callers walk what it made the same way, on small stacks. */
static bool json_is_deep(struct str text)
{
	size_t depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '"')
			in_string = !in_string;
		else if (in_string)
			i += c == '\\';
		else if (c == '[' || c == '{')
			depth++;
		else if ((c == ']' || c == '}') && depth > 0)
			depth--;
		if (depth > JSON_DEPTH_MAX)
			return true;
	}
	return false;
}

int json_parse(struct str text, size_t max, json_t **out, struct err *err)
{
	json_error_t why;
	json_t *value;

	if (text.len > max)
		return err_set(err, ERR_LIMIT, "JSON document of more than %zu bytes", max);
	if (json_is_deep(text))
		return err_set(err, ERR_INVALID, "JSON document of more than %d levels",
			       JSON_DEPTH_MAX);
	value = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &why);
	if (!value && json_error_code(&why) == json_error_null_character)
		return err_set(err, ERR_INVALID, "line %d column %d: \\u0000 is not allowed",
			       why.line, why.column);
	if (!value)
		return err_set(err, ERR_INVALID, "line %d column %d: %s", why.line, why.column,
			       why.text);
	*out = value;
	return 0;
}

struct json_out {
	struct buf *buf;
	struct err *err;
	bool told; /* what went wrong */
};

static int json_format_piece(const char *bytes, size_t len, void *ctx)
{
	struct json_out *out = ctx;

	out->told = buf_add(out->buf, (struct str){bytes, len}, out->err) < 0;
	return out->told ? -1 : 0;
}

int json_format(const json_t *value, struct buf *out, struct err *err)
{
	struct json_out ctx = {.buf = out, .err = err};

	if (json_dump_callback(value, json_format_piece, &ctx,
			       JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) == 0)
		return 0;
	if (!ctx.told)
		return err_set(err, ERR_INVALID, "value cannot be written as JSON");
	return -1;
}

const char *json_type_name(json_type type)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object",    [JSON_ARRAY] = "an array",
		[JSON_STRING] = "a string",     [JSON_INTEGER] = "an integer",
		[JSON_REAL] = "a number",       [JSON_TRUE] = "true or false",
		[JSON_FALSE] = "true or false", [JSON_NULL] = "null",
	};

	return names[type];
}

static int json_get(const json_t *object, const char *path, const char *key, json_type type,
		    json_t **out, struct err *err)
{
	json_t *value = json_object_get(object, key);
	const char *expected = json_type_name(type);

	if (!value || json_is_null(value))
		return 0;
	if (json_typeof(value) != type &&
	    !(type == JSON_TRUE && json_typeof(value) == JSON_FALSE)) {
		(void)err_wrong(err, expected, "expected %s, found %s", expected,
				json_type_name(json_typeof(value)));
		return err_at(err, path, key);
	}
	*out = value;
	return 1;
}

int json_get_string(const json_t *object, const char *path, const char *key, struct str *out,
		    struct err *err)
{
	json_t *value = NULL;
	int found = json_get(object, path, key, JSON_STRING, &value, err);

	if (found == 1)
		*out = json_str(value);
	return found;
}

int json_get_int(const json_t *object, const char *path, const char *key, int64_t *out,
		 struct err *err)
{
	json_t *value = NULL;
	int found = json_get(object, path, key, JSON_INTEGER, &value, err);

	if (found == 1)
		*out = json_integer_value(value);
	return found;
}

int json_get_bool(const json_t *object, const char *path, const char *key, bool *out,
		  struct err *err)
{
	json_t *value = NULL;
	int found = json_get(object, path, key, JSON_TRUE, &value, err);

	if (found == 1)
		*out = json_is_true(value);
	return found;
}

int json_get_object(const json_t *object, const char *path, const char *key, json_t **out,
		    struct err *err)
{
	return json_get(object, path, key, JSON_OBJECT, out, err);
}

int json_get_array(const json_t *object, const char *path, const char *key, json_t **out,
		   struct err *err)
{
	return json_get(object, path, key, JSON_ARRAY, out, err);
}

static int json_needed(int found, json_type type, const char *path, const char *key,
		       struct err *err)
{
	const char *expected = json_type_name(type);

	if (found != 0)
		return found < 0 ? -1 : 0;
	(void)err_wrong(err, expected, "missing; expected %s", expected);
	return err_at(err, path, key);
}

int json_need_string(const json_t *object, const char *path, const char *key, struct str *out,
		     struct err *err)
{
	return json_needed(json_get_string(object, path, key, out, err), JSON_STRING, path, key,
			   err);
}

int json_need_int(const json_t *object, const char *path, const char *key, int64_t *out,
		  struct err *err)
{
	return json_needed(json_get_int(object, path, key, out, err), JSON_INTEGER, path, key, err);
}

int json_need_object(const json_t *object, const char *path, const char *key, json_t **out,
		     struct err *err)
{
	return json_needed(json_get_object(object, path, key, out, err), JSON_OBJECT, path, key,
			   err);
}

int json_need_array(const json_t *object, const char *path, const char *key, json_t **out,
		    struct err *err)
{
	return json_needed(json_get_array(object, path, key, out, err), JSON_ARRAY, path, key, err);
}

static void json_free_wiped(void *ptr)
{
	if (ptr)
		explicit_bzero(ptr, malloc_usable_size(ptr));
	free(ptr);
}

void json_wipe_released(void)
{
	json_set_alloc_funcs(malloc, json_free_wiped);
}

/* The length of the valid UTF-8 sequence at the start, or 0. NUL is none: nobody reads it. */
static size_t utf8_sequence(struct str text)
{
	const unsigned char *p = (const unsigned char *)text.ptr;
	size_t need = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	AUTO(json) json_t *probe = NULL;

	if (need > text.len || p[0] == 0 || (p[0] >= 0x80 && p[0] < 0xc2) || p[0] > 0xf4)
		return 0;
	if (need == 1)
		return 1;
	probe = json_stringn(text.ptr, need); /* jansson judges the rest */
	return probe ? need : 0;
}

json_t *json_from_str(struct str text)
{
	bool whole = text.len == 0 || !memchr(text.ptr, '\0', text.len);
	json_t *plain = whole ? json_stringn(text.ptr, text.len) : NULL;
	auto_buf struct buf clean = BUF_INIT(3 * text.len + 1);
	struct err err;

	if (plain)
		return plain;
	for (size_t at = 0; at < text.len;) {
		size_t n = utf8_sequence(str_skip(text, at));
		struct str piece = n ? (struct str){text.ptr + at, n} : STR("\xef\xbf\xbd");

		if (buf_add(&clean, piece, &err) < 0)
			abort(); /* three bytes for each is the ceiling */
		at += n ? n : 1;
	}
	return json_stringn(clean.ptr ? clean.ptr : "", clean.len);
}

void json_set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) < 0)
		abort(); /* only out of memory */
}

void json_set_text(json_t *object, const char *key, const char *text)
{
	if (text)
		json_set(object, key, json_from_str(str_of(text)));
}

void json_set_int(json_t *object, const char *key, int64_t value)
{
	json_set(object, key, json_integer(value));
}

void json_set_size(json_t *object, const char *key, uint64_t value)
{
	json_set(object, key, json_integer((json_int_t)value));
}

void json_set_bool(json_t *object, const char *key, bool value)
{
	json_set(object, key, json_boolean(value));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* config_fields.c - members of a configuration, one at a time. */
#include "api/config_priv.h"

int config_text(const json_t *object, const char *path, const char *key, const char **out,
		struct err *err)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value))
		return 0;
	*out = json_string_value(value);
	if (**out == '\0')
		return err_set(err, ERR_INVALID, "%s%s%s: expected a text that is not empty", path,
			       *path ? "." : "", key);
	return 0;
}

int config_number(const json_t *object, const char *path, const char *key, int64_t max,
		  int64_t *out, struct err *err)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		return 0;
	*out = json_integer_value(value);
	if (*out > max)
		return err_set(err, ERR_INVALID, "%s.%s: expected at most %lld", path, key,
			       (long long)max);
	return 0;
}

void config_size(const json_t *object, const char *key, uint64_t *out)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value))
		*out = (uint64_t)json_integer_value(value);
}

int config_room(const json_t *list, const char *path, size_t size, void *out, struct err *err)
{
	size_t count = json_is_object(list) ? json_object_size(list) : json_array_size(list);
	void *room = calloc(count + 1, size);

	if (!room)
		abort();
	memcpy(out, &room, sizeof(room));
	if (count > CONFIG_LIST_MAX)
		return err_set(err, ERR_INVALID, "%s: expected at most %zu, found %zu", path,
			       CONFIG_LIST_MAX, count);
	return 0;
}

int config_texts(const json_t *list, const char *path, struct config_texts *out, struct err *err)
{
	const json_t *item;
	size_t i;

	if (config_room(list, path, sizeof(*out->at), &out->at, err) < 0)
		return -1;
	json_array_foreach(list, i, item) out->at[i] = json_string_value(item);
	out->count = json_array_size(list);
	return 0;
}

int config_check_listen(const char *text, struct err *err)
{
	const char *colon = text ? strrchr(text, ':') : NULL;
	uint64_t number;

	if (!text)
		return 0;
	if (colon && colon > text && str_parse_number(str_of(colon + 1), &number) &&
	    number <= UINT16_MAX)
		return 0;
	return err_set(err, ERR_INVALID, "listen: expected HOST:PORT, found %s", text);
}

int config_check_member(json_t *value, const struct schema *keys, const char *path, struct err *err)
{
	if (!json_is_object(value))
		return err_set(err, ERR_INVALID, "%s: expected an object, found %s", path,
			       json_type_name(json_typeof(value)));
	return schema_check(value, keys, path, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/differences.h"

#include <string.h>

/* What weighs most: the same words, then the same place, then the rest. */
#define LIKENESS_INSTRUCTION 100
#define LIKENESS_PARENT 50

/* The components in order, and what people call them. */
static const struct {
	const char *key;
	const char *what;
} differences_order[] = {
	{"base", "base"},       {"parent", "parent"},   {"instruction", "instruction"},
	{"env", "environment"}, {"workdir", "workdir"}, {"user", "user"},
	{"shell", "shell"},     {"content", "content"}, {"platform", "platform"},
	{"network", "network"}, {"version", "builder"}, {"epoch", "builder"},
	{"clamp", "times"},     {"secrets", "secrets"},
};
#define DIFFERENCES_KNOWN (sizeof(differences_order) / sizeof(differences_order[0]))

static json_t *differences_or_null(const json_t *value)
{
	return value ? json_copy(drop_const(value)) : json_null();
}

void differences_add(json_t *out, const char *what, const char *name, const json_t *was,
		     const json_t *is)
{
	json_t *difference = json_object();

	json_set_text(difference, "what", what);
	if (name)
		json_set_text(difference, "name", name);
	(void)json_object_set_new(difference, "was", differences_or_null(was));
	(void)json_object_set_new(difference, "is", differences_or_null(is));
	(void)json_array_append_new(out, difference);
}

/* "K=V" texts as an object of them. */
static json_t *differences_variables(const json_t *env)
{
	json_t *variables = json_object();

	for (size_t i = 0; i < json_array_size(env); i++) {
		struct str value = json_str(json_array_get(env, i));
		struct str name;

		(void)str_cut(&value, '=', &name);
		(void)json_object_setn_new(variables, name.ptr, name.len, json_from_str(value));
	}
	return variables;
}

/* Variables of `is` that differ; then those that only `was` has. */
static void differences_env(json_t *out, const json_t *was, const json_t *is)
{
	AUTO(json) json_t *before = differences_variables(was);
	AUTO(json) json_t *now = differences_variables(is);
	const char *name;
	json_t *value;

	json_object_foreach(now, name, value)
	{
		const json_t *old = json_object_get(before, name);

		if (!json_equal(old, value))
			differences_add(out, "environment", name, old, value);
	}
	json_object_foreach(before, name, value)
	{
		if (!json_object_get(now, name))
			differences_add(out, "environment", name, value, NULL);
	}
}

/* In the words of the spec, if it is them that differ; else as it was expanded. */
static void differences_instruction(json_t *out, const json_t *was, const json_t *is)
{
	const char *key = "text";

	if (json_equal(json_object_get(was, key), json_object_get(is, key)))
		key = "instruction";
	differences_add(out, "instruction", NULL, json_object_get(was, key),
			json_object_get(is, key));
}

static bool differences_is_known(const char *key)
{
	if (strcmp(key, "text") == 0 || strcmp(key, "files") == 0)
		return true;
	for (size_t i = 0; i < DIFFERENCES_KNOWN; i++) {
		if (strcmp(differences_order[i].key, key) == 0)
			return true;
	}
	return false;
}

static void differences_unknown(json_t *out, const json_t *was, const json_t *is)
{
	const char *key;
	json_t *value;

	json_object_foreach(drop_const(is), key, value)
	{
		const json_t *old = json_object_get(was, key);

		if (!differences_is_known(key) && !json_equal(old, value))
			differences_add(out, key, NULL, old, value);
	}
	json_object_foreach(drop_const(was), key, value)
	{
		if (!differences_is_known(key) && !json_object_get(is, key))
			differences_add(out, key, NULL, value, NULL);
	}
}

json_t *differences_of(const json_t *was, const json_t *is)
{
	json_t *out = json_array();

	for (size_t i = 0; i < DIFFERENCES_KNOWN; i++) {
		const json_t *before = json_object_get(was, differences_order[i].key);
		const json_t *now = json_object_get(is, differences_order[i].key);

		if ((!before && !now) || json_equal(before, now))
			continue;
		if (strcmp(differences_order[i].key, "env") == 0)
			differences_env(out, before, now);
		else if (strcmp(differences_order[i].key, "instruction") == 0)
			differences_instruction(out, was, is);
		else
			differences_add(out, differences_order[i].what, NULL, before, now);
	}
	differences_unknown(out, was, is);
	return out;
}

static bool differences_same(const json_t *was, const json_t *is, const char *key)
{
	const json_t *before = json_object_get(was, key);
	const json_t *now = json_object_get(is, key);

	return (!before && !now) || json_equal(before, now);
}

size_t differences_likeness(const json_t *was, const json_t *is)
{
	size_t likeness = 0;

	for (size_t i = 0; i < DIFFERENCES_KNOWN; i++)
		likeness += differences_same(was, is, differences_order[i].key);
	if (differences_same(was, is, "instruction"))
		likeness += LIKENESS_INSTRUCTION;
	if (differences_same(was, is, "parent"))
		likeness += LIKENESS_PARENT;
	return likeness;
}

size_t differences_wording(const json_t *was, const json_t *is)
{
	struct str a = json_str(json_object_get(was, "text"));
	struct str b = json_str(json_object_get(is, "text"));
	size_t shorter = a.len < b.len ? a.len : b.len;
	size_t head = 0;
	size_t tail = 0;

	while (head < shorter && a.ptr[head] == b.ptr[head])
		head++;
	while (tail < shorter - head && a.ptr[a.len - 1 - tail] == b.ptr[b.len - 1 - tail])
		tail++;
	return head + tail;
}

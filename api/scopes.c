/* SPDX-License-Identifier: Apache-2.0 */
#include "api/scopes.h"

#include <stdatomic.h>

struct scope {
	enum v2_action action;
	struct str glob; /* in `text` */
};

struct scopes {
	atomic_uint refs;
	size_t count;
	char *text; /* owned */
	struct scope at[];
};

static enum v2_action scopes_action(struct str word)
{
	if (str_equal(word, STR("pull")))
		return V2_PULL;
	if (str_equal(word, STR("push")))
		return V2_PUSH;
	if (str_equal(word, STR("list")))
		return V2_LIST;
	return str_equal(word, STR("delete")) ? V2_DELETE : V2_NOTHING;
}

/* "pull" is "pull:*". False: a level. */
static bool scopes_read(struct str text, struct scope *out)
{
	struct str rest = text;
	struct str word;

	(void)str_cut(&rest, ':', &word);
	*out = (struct scope){scopes_action(word), rest.ptr ? rest : STR("*")};
	return out->action != V2_NOTHING;
}

static void scopes_add(struct scopes *scopes, const struct scope *scope, char *at)
{
	memcpy(at, scope->glob.ptr, scope->glob.len);
	scopes->at[scopes->count++] = (struct scope){scope->action, {at, scope->glob.len}};
}

struct scopes *scopes_new(const json_t *list)
{
	size_t count = json_array_size(list);
	AUTO(scopes)
	struct scopes *scopes = calloc(1, sizeof(*scopes) + count * sizeof(scopes->at[0]));
	size_t bytes = 0;
	struct scope scope;

	for (size_t i = 0; i < count; i++)
		bytes += json_str(json_array_get(list, i)).len + 1;
	if (!scopes || !(scopes->text = malloc(bytes + 1)))
		abort();
	atomic_init(&scopes->refs, 1);
	bytes = 0;
	for (size_t i = 0; i < count; i++) {
		if (!scopes_read(json_str(json_array_get(list, i)), &scope))
			continue;
		scopes_add(scopes, &scope, scopes->text + bytes);
		bytes += scope.glob.len;
	}
	return scopes->count > 0 ? steal_ptr(&scopes) : NULL;
}

struct scopes *scopes_ref(struct scopes *scopes)
{
	if (scopes)
		atomic_fetch_add_explicit(&scopes->refs, 1, memory_order_relaxed);
	return scopes;
}

void scopes_unref(struct scopes *scopes)
{
	if (!scopes || atomic_fetch_sub(&scopes->refs, 1) > 1)
		return;
	free(scopes->text);
	free(scopes);
}

/* Of the stars, only the last one that was met may have to take more. */
bool scopes_match(struct str glob, struct str text)
{
	size_t star = SIZE_MAX;
	size_t taken = 0;
	size_t g = 0;
	size_t t = 0;

	while (t < text.len) {
		if (g < glob.len && glob.ptr[g] == '*') {
			star = g++;
			taken = t;
		} else if (g < glob.len && (glob.ptr[g] == '?' || glob.ptr[g] == text.ptr[t])) {
			g++;
			t++;
		} else if (star != SIZE_MAX) {
			g = star + 1;
			t = ++taken;
		} else {
			return false;
		}
	}
	while (g < glob.len && glob.ptr[g] == '*')
		g++;
	return g == glob.len;
}

bool scopes_match_start(struct str glob, struct str start)
{
	for (size_t i = 0; i < start.len; i++) {
		if (i < glob.len && glob.ptr[i] == '*')
			return true;
		if (i == glob.len || (glob.ptr[i] != '?' && glob.ptr[i] != start.ptr[i]))
			return false;
	}
	return glob.len > start.len;
}

bool scopes_allow(const struct scopes *scopes, enum v2_action action, struct str repository)
{
	for (size_t i = 0; scopes && i < scopes->count; i++) {
		const struct scope *scope = &scopes->at[i];

		if (scope->action == action && scopes_match(scope->glob, repository))
			return true;
	}
	return false;
}

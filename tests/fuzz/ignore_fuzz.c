/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: of a .dockerignore and a path (its last line) that are accepted, a
 * directory that is hidden with all below it hides all below it, and a rule
 * that hides something is one of the file's.
 */
#include "bake/ignore_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct ignore *ignore, struct str path)
{
	const struct ignore_rule *rule = NULL;
	bool hidden = false;

	for (size_t i = 1; i <= path.len; i++) {
		enum ignore_verdict verdict;

		if (i < path.len && path.ptr[i] != '/')
			continue;
		verdict = ignore_judge(ignore, (struct str){path.ptr, i}, &rule);
		if (hidden && verdict != IGNORE_HIDDEN)
			abort();
		hidden = verdict == IGNORE_HIDDEN;
		if (verdict != IGNORE_SEEN &&
		    (rule < ignore->rules || rule >= ignore->rules + ignore->count || rule->shows))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	const char *line = size ? memrchr(data, '\n', size) : NULL;
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	auto_ignore struct ignore ignore = {0};
	struct err err;

	if (!line || size > 4096 || memchr(line, '\0', (size_t)(text.ptr + size - line)))
		return 0;
	if (path_join(STR("/"), (struct str){line + 1, (size_t)(text.ptr + size - line) - 1}, &path,
		      &err) < 0)
		return 0;
	text.len = (size_t)(line - text.ptr);
	if (ignore_parse(text, &ignore, &err) < 0)
		return 0;
	judge(&ignore, (struct str){path.ptr + 1, path.len - 1});
	return 0;
}

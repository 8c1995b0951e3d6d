/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/ignore_priv.h"

#include "layers/base/array.h"
#include "layers/base/fd.h"
#include "layers/base/path.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static struct str ignore_trim(struct str text)
{
	while (text.len > 0 && isspace((unsigned char)text.ptr[0]))
		text = str_skip(text, 1);
	while (text.len > 0 && isspace((unsigned char)text.ptr[text.len - 1]))
		text.len--;
	return text;
}

/* It begins with "..", once it is clean: nothing in the context has such a path. */
static bool ignore_leads_out(struct str text)
{
	struct str part;
	size_t depth = 0;

	if (str_starts(text, STR("/")))
		return false;
	while (path_next(&text, &part)) {
		if (!str_equal(part, STR("..")))
			depth += !str_equal(part, STR("."));
		else if (depth-- == 0)
			return true;
	}
	return false;
}

static int ignore_add(struct ignore *ignore, struct str text, size_t line, struct err *err)
{
	struct ignore_rule rule = {.shows = str_starts(text, STR("!")), .line = line};

	if (rule.shows)
		text = ignore_trim(str_skip(text, 1));
	if (text.len == 0)
		return err_set(err, ERR_REFUSED, "a pattern is missing behind !");
	if (memchr(text.ptr, '\0', text.len))
		return err_set(err, ERR_REFUSED, "a pattern holds a NUL byte");
	if (ignore_leads_out(text))
		return 0;
	if (array_make_room(&ignore->rules, sizeof(rule), ignore->count, IGNORE_RULES_MAX,
			    "patterns", err) < 0 ||
	    pattern_parse(text, &rule.pattern, err) < 0)
		return -1;
	ignore->rules[ignore->count++] = rule;
	return 0;
}

int ignore_parse(struct str text, struct ignore *out, struct err *err)
{
	auto_ignore struct ignore made = {0};
	struct str line;
	size_t number = 0;

	if (str_starts(text, STR("\xef\xbb\xbf")))
		text = str_skip(text, 3);
	while (str_cut(&text, '\n', &line)) {
		number++;
		if (str_starts(line, STR("#")))
			continue;
		line = ignore_trim(line);
		if (line.len > 0 && ignore_add(&made, line, number, err) < 0)
			return err_ctx(err, IGNORE_FILE " line %zu", number);
	}
	*out = made;
	made = (struct ignore){0};
	return 0;
}

int ignore_from_words(const char *const *words, size_t count, struct ignore *out, struct err *err)
{
	auto_ignore struct ignore made = {0};

	for (size_t i = 0; i < count; i++) {
		struct str text = ignore_trim(str_of(words[i]));

		if (text.len > 0 && ignore_add(&made, text, i + 1, err) < 0)
			return err_ctx(err, "--exclude");
	}
	*out = made;
	made = (struct ignore){0};
	return 0;
}

/* A .dockerignore that is a link to nowhere would hide nothing, though it was meant to. */
static int ignore_absent(int contextfd, struct err *err)
{
	struct stat st;

	if (fstatat(contextfd, IGNORE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(err, ERR_REFUSED,
			       IGNORE_FILE " is a link that leads out of the context, or nowhere; "
					   "put the file itself there");
	if (errno == ENOENT)
		return 0;
	return err_os(err, errno, "stat " IGNORE_FILE);
}

int ignore_read(int contextfd, struct ignore *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(IGNORE_FILE_MAX);
	auto_close int fd =
		fd_open_in_root(contextfd, IGNORE_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
	struct stat st;

	*out = (struct ignore){0};
	if (fd < 0 && err->kind == ERR_OS && (err->os == ENOENT || err->os == ENOTDIR))
		return ignore_absent(contextfd, err);
	if (fd < 0)
		return err_ctx(err, IGNORE_FILE);
	if (fstat(fd, &st) < 0)
		return err_os(err, errno, "stat " IGNORE_FILE);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_REFUSED, IGNORE_FILE " is no file");
	if (fd_read_all(fd, &text, err) < 0)
		return err_ctx(err, IGNORE_FILE);
	return ignore_parse(buf_str(&text), out, err);
}

void ignore_done(struct ignore *ignore)
{
	for (size_t i = 0; i < ignore->count; i++)
		pattern_done(&ignore->rules[i].pattern);
	free(ignore->rules);
	*ignore = (struct ignore){0};
}

enum ignore_verdict ignore_judge(const struct ignore *ignore, struct str path,
				 const struct ignore_rule **out_rule)
{
	bool shown_below = false;

	for (size_t i = ignore->count; i > 0; i--) {
		const struct ignore_rule *rule = &ignore->rules[i - 1];
		enum pattern_reach reach = pattern_try(&rule->pattern, path);

		if (reach == PATTERN_BELOW)
			shown_below |= rule->shows;
		if (reach != PATTERN_HIT)
			continue;
		if (rule->shows)
			return IGNORE_SEEN;
		*out_rule = rule;
		return shown_below ? IGNORE_HIDDEN_TOP : IGNORE_HIDDEN;
	}
	return IGNORE_SEEN;
}

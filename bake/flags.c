/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/flags_priv.h"

#include "bake/expand.h"
#include "bake/ignore_priv.h"
#include "bake/mode_priv.h"
#include "bake/words_priv.h"
#include "layers/base/nearest.h"
#include "registry/reference.h"

#define FLAG_MAX ((size_t)64 * 1024)

struct flag {
	struct buf text; /* owned: without the dashes */
	struct str name;
	struct str value; /* "" where there is none */
	bool has_value;
};

static inline void auto_flag_release(struct flag *slot)
{
	buf_done(&slot->text);
}
#define auto_flag AUTO(flag)

/* One word, quotes and escapes removed, appended to out; *rest is behind it. */
static int flags_read_word(struct str *rest, char escape, struct buf *out, struct err *err)
{
	size_t at = 0;
	char quote = '\0';

	for (; at < rest->len && (quote || !words_blank(rest->ptr[at])); at++) {
		char c = rest->ptr[at];

		if (quote ? c == quote : c == '"' || c == '\'') {
			quote = (char)(quote ? '\0' : c);
			continue;
		}
		if (c == escape && ++at == rest->len)
			break;
		if (buf_add(out, (struct str){rest->ptr + at, 1}, err) < 0)
			return err_ctx(err, "flag");
	}
	if (quote)
		return err_set(err, ERR_REFUSED, "--" STR_FMT ": the quote %c is never closed",
			       STR_ARG(buf_str(out)), quote);
	*rest = str_skip(*rest, at);
	return 0;
}

static void flags_skip_blanks(struct str *rest)
{
	while (rest->len > 0 && words_blank(rest->ptr[0]))
		*rest = str_skip(*rest, 1);
}

static void flags_divide(struct flag *flag)
{
	struct str text = buf_str(&flag->text);
	const char *equals = memchr(text.ptr, '=', text.len);
	size_t n = equals ? (size_t)(equals - text.ptr) : text.len;

	flag->name = (struct str){text.ptr, n};
	flag->has_value = equals != NULL;
	flag->value = equals ? (struct str){equals + 1, text.len - n - 1} : STR("");
}

/*
 * Take the next flag off *rest, which shrinks to what follows. 1, or 0 when
 * there is no more, or -1 for an open quote.
 */
static int flags_next(struct str *rest, char escape, struct flag *out, struct err *err)
{
	struct str text = *rest;

	flags_skip_blanks(&text);
	*rest = text;
	if (!str_starts(text, STR("--")))
		return 0;
	text = str_skip(text, 2);
	if (text.len == 0 || words_blank(text.ptr[0])) {
		flags_skip_blanks(&text);
		*rest = text;
		return 0;
	}
	buf_done(&out->text);
	out->text = BUF_INIT(FLAG_MAX);
	if (flags_read_word(&text, escape, &out->text, err) < 0)
		return -1;
	flags_divide(out);
	*rest = text;
	return 1;
}

typedef int flags_set_fn(struct instruction *to, const struct flag *flag, struct err *err);

static int flags_set_network(struct instruction *to, const struct flag *flag, struct err *err)
{
	to->network_none = str_equal(flag->value, STR("none"));
	if (to->network_none || str_equal(flag->value, STR("default")))
		return 0;
	if (str_equal(flag->value, STR("host")))
		return err_set(err, ERR_REFUSED,
			       "--network=host is not supported: a step never sees the host's "
			       "network; default and none are");
	return err_set(err, ERR_REFUSED, "--network=" STR_FMT ": expected default or none",
		       STR_ARG(flag->value));
}

/* A value in which variables expand; from here on its escape is a backslash. */
static int flags_take_value(const struct instruction *to, const struct flag *flag, char **out,
			    struct err *err)
{
	auto_buf struct buf value = BUF_INIT(2 * flag->value.len + 1);

	if (to->escape == '\\') {
		*out = str_dup(flag->value);
		return 0;
	}
	if (words_escape(flag->value, to->escape, &value, err) < 0)
		return -1;
	*out = str_dup(buf_str(&value));
	return 0;
}

static int flags_set_chown(struct instruction *to, const struct flag *flag, struct err *err)
{
	if (flag->value.len == 0)
		return err_set(err, ERR_REFUSED, "--chown: expected =USER[:GROUP]");
	return flags_take_value(to, flag, &to->chown, err);
}

static int flags_set_chmod(struct instruction *to, const struct flag *flag, struct err *err)
{
	if (flag->value.len == 0)
		return err_set(err, ERR_REFUSED,
			       "--chmod: expected =MODE, octal like 0755 or changes like +x");
	if (flags_take_value(to, flag, &to->chmod, err) < 0)
		return -1;
	if (memchr(flag->value.ptr, '$', flag->value.len))
		return 0; /* judged once it is expanded */
	return mode_check(flag->value, err);
}

static int flags_set_later(struct instruction *to, const struct flag *flag, struct err *err)
{
	(void)to;
	return err_set(err, ERR_REFUSED, "--" STR_FMT " is not supported yet", STR_ARG(flag->name));
}

static int flags_add_mount(struct instruction *to, const struct flag *flag, struct err *err)
{
	auto_mount struct mount form = {0};
	auto_free char *text = NULL;

	if (flag->value.len == 0)
		return err_set(err, ERR_REFUSED, "--mount: expected =type=TYPE,target=PATH,…");
	if (to->mount_texts.count == MOUNTS_MAX)
		return err_set(err, ERR_REFUSED, "more than %d mounts", MOUNTS_MAX);
	if (flags_take_value(to, flag, &text, err) < 0 ||
	    mount_parse(str_of(text), NULL, &form, err) < 0)
		return -1;
	to->binds |= form.source && !form.from;
	return words_add(&to->mount_texts, str_of(text), err);
}

/* A switch alone is on. */
static int flags_read_switch(const struct flag *flag, bool *out, struct err *err)
{
	static const char *const words[] = {"false", "true"};

	*out = true;
	if (!flag->has_value)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		*out = i == 1;
		if (flag->value.len == strlen(words[i]) &&
		    strncasecmp(flag->value.ptr, words[i], flag->value.len) == 0)
			return 0;
	}
	return err_set(err, ERR_REFUSED, "--" STR_FMT "=" STR_FMT ": expected true or false",
		       STR_ARG(flag->name), STR_ARG(flag->value));
}

static int flags_set_link(struct instruction *to, const struct flag *flag, struct err *err)
{
	return flags_read_switch(flag, &to->link, err);
}

/* An image's name, never expanded: variables must not decide which image is read. */
static int flags_set_from(struct instruction *to, const struct flag *flag, struct err *err)
{
	auto_buf struct buf expanded = BUF_INIT(FLAG_MAX);
	struct reference reference;
	uint64_t number;

	if (flag->value.len == 0)
		return err_set(err, ERR_REFUSED, "--from: expected =IMAGE");
	if (expand_word(flag->value, NULL, &expanded, err) < 0 ||
	    !str_equal(buf_str(&expanded), flag->value))
		return err_set(err, ERR_REFUSED,
			       "--from=" STR_FMT ": variable expansion is not supported for --from",
			       STR_ARG(flag->value));
	if (str_parse_number(flag->value, &number))
		return err_set(err, ERR_REFUSED,
			       "--from=" STR_FMT ": there are no stages; name an image",
			       STR_ARG(flag->value));
	if (reference_parse(flag->value, &reference, err) < 0)
		return err_set(err, ERR_REFUSED, "--from=" STR_FMT " is no image's name",
			       STR_ARG(flag->value));
	if (reference.kind == REFERENCE_SCRATCH)
		return err_set(err, ERR_REFUSED, "--from=scratch: it holds no files");
	to->from = str_dup(flag->value);
	return 0;
}

static int flags_set_parents(struct instruction *to, const struct flag *flag, struct err *err)
{
	return flags_read_switch(flag, &to->parents, err);
}

/* Checked at once, since it is never expanded. */
static int flags_add_exclude(struct instruction *to, const struct flag *flag, struct err *err)
{
	auto_ignore struct ignore ignore = {0};
	const char *word;

	if (flag->value.len == 0)
		return err_set(err, ERR_REFUSED, "--exclude: expected =PATTERN");
	if (words_add(&to->excludes, flag->value, err) < 0)
		return -1;
	word = to->excludes.at[to->excludes.count - 1];
	return ignore_from_words(&word, 1, &ignore, err);
}

static const struct {
	enum instruction_kind kind;
	bool list; /* it may come again */
	const char *name;
	flags_set_fn *set;
} flags[] = {
	{INSTRUCTION_RUN, false, "network", flags_set_network},
	{INSTRUCTION_RUN, true, "mount", flags_add_mount},
	{INSTRUCTION_RUN, false, "security", flags_set_later},
	{INSTRUCTION_RUN, false, "device", flags_set_later},
	{INSTRUCTION_COPY, false, "chown", flags_set_chown},
	{INSTRUCTION_COPY, false, "chmod", flags_set_chmod},
	{INSTRUCTION_COPY, false, "from", flags_set_from},
	{INSTRUCTION_COPY, false, "link", flags_set_link},
	{INSTRUCTION_COPY, false, "parents", flags_set_parents},
	{INSTRUCTION_COPY, true, "exclude", flags_add_exclude},
};

#define FLAGS (sizeof(flags) / sizeof(flags[0]))

static int flags_refuse(enum instruction_kind kind, struct str name, struct err *err)
{
	const char *known[FLAGS];
	char hint[NEAREST_HINT_MAX];
	size_t count = 0;

	for (size_t i = 0; i < FLAGS; i++) {
		if (flags[i].kind == kind)
			known[count++] = flags[i].name;
	}
	return err_set(err, ERR_REFUSED, "unknown flag --" STR_FMT "%s", STR_ARG(name),
		       nearest_hint(name, known, count, hint));
}

static int flags_take_one(struct instruction *to, const struct flag *flag, unsigned *seen,
			  struct err *err)
{
	for (size_t i = 0; i < FLAGS; i++) {
		if (flags[i].kind != to->kind || !str_equal(str_of(flags[i].name), flag->name))
			continue;
		if (*seen & 1U << i && !flags[i].list)
			return err_set(err, ERR_REFUSED, "--%s is given twice", flags[i].name);
		*seen |= 1U << i;
		return flags[i].set(to, flag, err);
	}
	return flags_refuse(to->kind, flag->name, err);
}

int flags_take(struct instruction *to, struct str *rest, struct err *err)
{
	unsigned seen = 0;

	for (;;) {
		auto_flag struct flag flag = {0};
		int more = flags_next(rest, to->escape, &flag, err);

		if (more <= 0)
			return more;
		if (flags_take_one(to, &flag, &seen, err) < 0)
			return -1;
	}
}

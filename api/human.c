/* SPDX-License-Identifier: Apache-2.0 */
#include "api/human.h"

const char *human_size(uint64_t bytes, char text[static HUMAN_TEXT_MAX])
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes / 1000;
	size_t unit = 0;

	if (bytes < 1000) {
		(void)snprintf(text, HUMAN_TEXT_MAX, "%u B", (unsigned)bytes);
		return text;
	}
	for (; value >= 999.95 && unit < 5; unit++)
		value /= 1000;
	(void)snprintf(text, HUMAN_TEXT_MAX, "%.1f %s", value, units[unit]);
	return text;
}

const char *human_linked(uint64_t bytes, char text[static HUMAN_LINKED_MAX])
{
	char size[HUMAN_TEXT_MAX];

	(void)snprintf(text, HUMAN_LINKED_MAX,
		       "%s copied because a hard link reaches into a layer below",
		       human_size(bytes, size));
	return text;
}

const char *human_duration(int64_t ms, char text[static HUMAN_TEXT_MAX])
{
	if (ms < 60000)
		(void)snprintf(text, HUMAN_TEXT_MAX, "%.1fs", (double)ms / 1000);
	else
		(void)snprintf(text, HUMAN_TEXT_MAX, "%dm%02ds", (int)(ms / 60000),
			       (int)(ms / 1000 % 60));
	return text;
}

const char *human_age(int64_t ms, char text[static HUMAN_TEXT_MAX])
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = {{31536000, "year"}, {2592000, "month"}, {86400, "day"},
		     {3600, "hour"},     {60, "minute"},     {1, "second"}};
	int64_t seconds = ms / 1000;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		int64_t n = seconds / units[i].seconds;

		if (n < 1)
			continue;
		(void)snprintf(text, HUMAN_TEXT_MAX, "%d %s%s ago", (int)n, units[i].name,
			       n == 1 ? "" : "s");
		return text;
	}
	(void)snprintf(text, HUMAN_TEXT_MAX, "now");
	return text;
}

/* How many bytes of an escape sequence stand at the start of text. */
static size_t human_escape(struct str text)
{
	size_t n = 2;

	if (text.len < 2 || text.ptr[1] != '[')
		return 1;
	while (n < text.len && (text.ptr[n] < '@' || text.ptr[n] > '~'))
		n++;
	return n < text.len ? n + 1 : n;
}

/* C0 and C1 controls and DEL: a terminal may act on them. */
static bool human_is_control(struct str text)
{
	unsigned char c = (unsigned char)text.ptr[0];

	return c < 0x20 || c == 0x7f ||
	       (c == 0xc2 && text.len > 1 && (unsigned char)text.ptr[1] < 0xa0);
}

/* The bytes of the character, or of the escape sequence, that stands first. */
static size_t human_first(struct str text)
{
	unsigned char c = (unsigned char)text.ptr[0];

	if (c == 0x1b)
		return human_escape(text);
	if (c >= 0xf0)
		return 4;
	if (c >= 0xe0)
		return 3;
	return c >= 0xc0 ? 2 : 1;
}

int human_line(struct str text, size_t width, struct buf *out, struct err *err)
{
	AUTO(json) json_t *clean = json_from_str(text); /* valid UTF-8 from here on */
	struct str rest = json_str(clean);
	size_t column = 0;

	while (rest.len > 0 && column < width) {
		size_t n = human_first(rest);
		struct str shown = {rest.ptr, n};

		if (rest.ptr[0] == '\t')
			shown = STR(" ");
		else if (human_is_control(rest))
			shown.len = 0;
		if (buf_add(out, shown, err) < 0)
			return -1;
		column += shown.len > 0;
		rest.ptr += n;
		rest.len -= n;
	}
	return 0;
}

char *human_text(struct str text)
{
	struct buf out = BUF_INIT(3 * text.len + 1);
	struct err err;

	if (human_line(text, text.len, &out, &err) < 0 || buf_add(&out, STR(""), &err) < 0)
		abort(); /* three bytes for each is the ceiling */
	return out.ptr;
}

int human_widen(int width, const char *name)
{
	size_t len = strnlen(name, HUMAN_NAME_MAX);

	return len > (size_t)width ? (int)len : width;
}

void human_json(const json_t *value, FILE *out)
{
	(void)json_dumpf(value, out, JSON_COMPACT | JSON_ENSURE_ASCII);
	(void)fputc('\n', out);
}

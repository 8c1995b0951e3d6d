/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/platform.h"

#include <stdio.h>
#include <sys/utsname.h>

#define PLATFORM_RANK_SAME 100 /* of the same variant: above that of any level */

static const struct {
	const char *alias;
	const char *architecture;
	const char *variant;
} platform_aliases[] = {
	{"x86_64", "amd64", ""},    {"x86-64", "amd64", ""}, {"aarch64", "arm64", ""},
	{"armv8l", "arm", "v7"},    {"armhf", "arm", "v7"},  {"armv7l", "arm", "v7"},
	{"armel", "arm", "v6"},     {"armv6l", "arm", "v6"}, {"i386", "386", ""},
	{"i686", "386", ""},        {"i586", "386", ""},     {"loongarch64", "loong64", ""},
	{"ppc64el", "ppc64le", ""},
};

/* What an architecture without a variant is. */
static const struct {
	const char *architecture;
	int level;
} platform_levels[] = {{"arm", 7}, {"arm64", 8}, {"amd64", 1}};

static bool platform_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

static bool platform_part(struct str part, size_t room)
{
	if (part.len >= room)
		return false;
	for (size_t i = 0; i < part.len; i++) {
		if (!platform_char(part.ptr[i]))
			return false;
	}
	return true;
}

static void platform_copy(char *out, struct str part)
{
	if (part.len > 0)
		memcpy(out, part.ptr, part.len);
	out[part.len] = '\0';
}

static void platform_normalize(struct platform *platform)
{
	for (size_t i = 0; i < sizeof(platform_aliases) / sizeof(platform_aliases[0]); i++) {
		if (strcmp(platform->architecture, platform_aliases[i].alias) != 0)
			continue;
		platform_copy(platform->architecture, str_of(platform_aliases[i].architecture));
		if (!platform->variant[0])
			platform_copy(platform->variant, str_of(platform_aliases[i].variant));
		return;
	}
}

int platform_set(struct platform *out, struct str os, struct str architecture, struct str variant,
		 struct err *err)
{
	struct platform parsed;

	if (os.len == 0 || architecture.len == 0 || !platform_part(os, sizeof(parsed.os)) ||
	    !platform_part(architecture, sizeof(parsed.architecture)) ||
	    !platform_part(variant, sizeof(parsed.variant)))
		return err_set(err, ERR_INVALID, "not a platform: \"" STR_FMT "/" STR_FMT "\"",
			       STR_ARG(os), STR_ARG(architecture));
	platform_copy(parsed.os, os);
	platform_copy(parsed.architecture, architecture);
	platform_copy(parsed.variant, variant);
	platform_normalize(&parsed);
	*out = parsed;
	return 0;
}

/* What is before the first slash; *text becomes what is behind it, or "". */
static struct str platform_cut(struct str *text)
{
	const char *slash = text->len ? memchr(text->ptr, '/', text->len) : NULL;
	struct str part = {text->ptr, slash ? (size_t)(slash - text->ptr) : text->len};
	size_t used = slash ? part.len + 1 : part.len;

	*text = str_skip(*text, used);
	return part;
}

int platform_parse(struct str text, struct platform *out, struct err *err)
{
	struct str rest = text;
	struct str os = platform_cut(&rest);
	struct str architecture = platform_cut(&rest);
	bool slash_at_end = text.len > 0 && text.ptr[text.len - 1] == '/';

	/* What is left is the variant, in which a third slash is not a legal character. */
	if (!slash_at_end && platform_set(out, os, architecture, rest, err) == 0)
		return 0;
	return err_set(err, ERR_INVALID,
		       "not a platform: \"" STR_FMT "\"; write it like linux/amd64 or "
		       "linux/arm64/v8",
		       STR_ARG(text));
}

void platform_host(struct platform *out)
{
	struct utsname name;
	struct err err;

	if (uname(&name) < 0 ||
	    platform_set(out, STR("linux"), str_of(name.machine), STR(""), &err) < 0)
		abort();
}

/* The number of a variant: "v8" is 8. */
static int platform_level(const struct platform *platform)
{
	const char *variant = platform->variant;

	if (variant[0] == 'v' && variant[1] >= '0' && variant[1] <= '9' &&
	    (variant[2] == '\0' || variant[2] == '.'))
		return variant[1] - '0';
	for (size_t i = 0; i < sizeof(platform_levels) / sizeof(platform_levels[0]); i++) {
		if (strcmp(platform->architecture, platform_levels[i].architecture) == 0)
			return platform_levels[i].level;
	}
	return 0;
}

bool platform_matches(const struct platform *wanted, const struct platform *offered)
{
	if (strcmp(wanted->os, offered->os) != 0 ||
	    strcmp(wanted->architecture, offered->architecture) != 0)
		return false;
	if (strcmp(wanted->variant, offered->variant) == 0)
		return true;
	return platform_level(offered) > 0 && platform_level(offered) <= platform_level(wanted);
}

int platform_rank(const struct platform *wanted, const struct platform *offered)
{
	if (!platform_matches(wanted, offered))
		return 0;
	return strcmp(wanted->variant, offered->variant) == 0 ? PLATFORM_RANK_SAME
							      : 1 + platform_level(offered);
}

const char *platform_format(const struct platform *platform, char text[static PLATFORM_TEXT_MAX])
{
	(void)snprintf(text, PLATFORM_TEXT_MAX, "%s/%s%s%s", platform->os, platform->architecture,
		       platform->variant[0] ? "/" : "", platform->variant);
	return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/reference.h"

#include "registry/grammar.h"
#include "registry/hub.h"
#include "registry/transport.h"

#include <assert.h>
#include <strings.h>

#define REFERENCE_PORT_DIGITS ((size_t)5)

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool reference_port_is_valid(struct str port)
{
	uint64_t number;

	return port.len <= REFERENCE_PORT_DIGITS && str_parse_number(port, &number) && number > 0 &&
	       number <= UINT16_MAX;
}

/* Letters, digits and inner dashes between single dots. */
static bool reference_host_name_is_valid(struct str name)
{
	char before = '.';

	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		bool letter = is_lower(c) || is_upper(c) || is_digit(c);

		if (!letter && c != '-' && c != '.')
			return false;
		if ((c == '.' && before == '-') || (!letter && before == '.'))
			return false;
		before = c;
	}
	return before != '.' && before != '-';
}

/* [2001:db8::1], with what follows in *rest. */
static bool reference_host_v6_is_valid(struct str host, struct str *rest)
{
	const char *end = memchr(host.ptr, ']', host.len);
	size_t n = end ? (size_t)(end - host.ptr) : 0;

	if (n < 3)
		return false;
	for (size_t i = 1; i < n; i++) {
		char c = host.ptr[i];

		if (!is_digit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F') &&
		    c != ':' && c != '.')
			return false;
	}
	*rest = str_skip(host, n + 1);
	return true;
}

static bool reference_host_is_valid(struct str host)
{
	struct str rest;
	const char *colon;

	if (host.len > 0 && host.ptr[0] == '[') {
		if (!reference_host_v6_is_valid(host, &rest))
			return false;
	} else {
		colon = memchr(host.ptr, ':', host.len);
		rest = colon ? str_skip(host, (size_t)(colon - host.ptr))
			     : (struct str){host.ptr + host.len, 0};
		if (!reference_host_name_is_valid((struct str){host.ptr, host.len - rest.len}))
			return false;
	}
	return rest.len == 0 || (rest.ptr[0] == ':' && reference_port_is_valid(str_skip(rest, 1)));
}

/* Docker's rule for "a/b": what looks like a host is one. */
static bool reference_looks_like_host(struct str part)
{
	if (str_equal(part, STR("localhost")) || (part.len > 0 && part.ptr[0] == '['))
		return true;
	for (size_t i = 0; i < part.len; i++) {
		if (part.ptr[i] == '.' || part.ptr[i] == ':')
			return true;
	}
	return false;
}

/* Copy text behind what storage holds already; reference_check_text() saw that there is room. */
static struct str reference_keep(struct reference *out, size_t *used, struct str text)
{
	struct str kept = {out->storage + *used, text.len};

	assert(text.len <= sizeof(out->storage) - *used);
	if (text.len > 0 && text.ptr)
		memcpy(out->storage + *used, text.ptr, text.len);
	*used += text.len;
	return kept;
}

/* What the text says, as views into it. */
struct reference_parts {
	enum reference_kind kind;
	struct str host;
	struct str prefix; /* of the path, when a familiar name left it out */
	struct str path;
	struct str tag;
	struct str digest;
};

/* NAME[:TAG][@DIGEST]: cut from the end, since a host may hold a colon. */
static int reference_split(struct str text, struct reference_parts *out, struct err *err)
{
	const char *at = text.len ? memchr(text.ptr, '@', text.len) : NULL;
	struct reference_parts parts = {.kind = REFERENCE_REGISTRY};
	const char *colon;
	const char *slash;

	if (at) {
		parts.digest = str_skip(text, (size_t)(at - text.ptr) + 1);
		text.len = (size_t)(at - text.ptr);
	}
	slash = text.len ? memrchr(text.ptr, '/', text.len) : NULL;
	colon = text.len ? memrchr(text.ptr, ':', text.len) : NULL;
	if (colon && (!slash || colon > slash)) {
		parts.tag = str_skip(text, (size_t)(colon - text.ptr) + 1);
		text.len = (size_t)(colon - text.ptr);
		if (!grammar_is_tag(parts.tag))
			return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not a tag",
				       STR_ARG(parts.tag));
	}
	slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
	if (slash &&
	    reference_looks_like_host((struct str){text.ptr, (size_t)(slash - text.ptr)})) {
		parts.host = (struct str){text.ptr, (size_t)(slash - text.ptr)};
		text = str_skip(text, parts.host.len + 1);
	}
	parts.path = text;
	*out = parts;
	return 0;
}

static int reference_too_long(struct err *err)
{
	return err_set(err, ERR_INVALID, "repository name of more than %zu bytes",
		       REFERENCE_REPOSITORY_MAX);
}

static int reference_check_path(struct str path, struct err *err)
{
	for (size_t i = 0; i < path.len; i++) {
		if (is_upper(path.ptr[i]))
			return err_set(err, ERR_INVALID,
				       "repository \"" STR_FMT "\" must be in lower case",
				       STR_ARG(path));
	}
	if (path.len > REFERENCE_REPOSITORY_MAX)
		return reference_too_long(err);
	if (!grammar_is_name(path))
		return err_set(err, ERR_INVALID, "repository \"" STR_FMT "\" is not a name",
			       STR_ARG(path));
	return 0;
}

/* Hosts have no case. */
static bool reference_host_is(struct str host, const char *name)
{
	return host.len == strlen(name) && strncasecmp(host.ptr, name, host.len) == 0;
}

/* Fill in what a familiar name leaves out: "debian" is docker.io/library/debian. */
static void reference_complete(struct reference_parts *parts)
{
	if (parts->host.len == 0 || reference_host_is(parts->host, "index.docker.io"))
		parts->host = STR(HUB_HOST);
	if (reference_host_is(parts->host, HUB_HOST) &&
	    !memchr(parts->path.ptr, '/', parts->path.len))
		parts->prefix = STR("library/");
	if (parts->tag.len == 0 && parts->digest.len == 0)
		parts->tag = STR("latest");
}

static void reference_lower_case(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (is_upper(text[i]))
			text[i] = (char)(text[i] + ('a' - 'A'));
	}
}

static void reference_fill(const struct reference_parts *parts, struct reference *out)
{
	size_t used = 0;

	*out = (struct reference){.kind = parts->kind};
	out->host = reference_keep(out, &used, parts->host);
	reference_lower_case(out->storage, used);
	out->path = reference_keep(out, &used, parts->prefix);
	out->path.len += reference_keep(out, &used, parts->path).len;
	out->tag = reference_keep(out, &used, parts->tag);
}

static int reference_parse_registry(struct str text, struct reference *out, struct err *err)
{
	bool has_digest = memchr(text.ptr, '@', text.len);
	struct reference_parts parts = {0};
	struct digest digest = {0};

	if (reference_split(text, &parts, err) < 0)
		return -1;
	if (parts.host.len > 0 && !reference_host_is_valid(parts.host))
		return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not a registry's host name",
			       STR_ARG(parts.host));
	if (reference_check_path(parts.path, err) < 0 ||
	    (has_digest && digest_parse(parts.digest, &digest, err) < 0))
		return -1;
	reference_complete(&parts);
	if (parts.host.len + 1 + parts.prefix.len + parts.path.len > REFERENCE_REPOSITORY_MAX)
		return reference_too_long(err);
	reference_fill(&parts, out);
	out->has_digest = has_digest;
	out->digest = digest;
	return 0;
}

static int reference_parse_place(const struct transport *transport, struct str text,
				 struct reference *out, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(2 * REFERENCE_TEXT_MAX);
	struct reference_parts parts = {.kind = transport->kind};

	if (transport_split(transport, text, &parts.path, &parts.tag, err) < 0)
		return -1;
	/* It is kept in full, so that any spelling finds it. */
	if (transport->kind == REFERENCE_DOCKER_ARCHIVE && parts.tag.ptr) {
		if (reference_parse_name(parts.tag, &name, err) < 0)
			return -1;
		parts.tag = buf_str(&name);
	}
	if (parts.path.len + parts.tag.len >= REFERENCE_TEXT_MAX)
		return err_set(err, ERR_INVALID, "reference of more than %zu bytes",
			       REFERENCE_TEXT_MAX);
	reference_fill(&parts, out);
	return 0;
}

static int reference_check_text(struct str text, struct err *err)
{
	if (text.len == 0)
		return err_set(err, ERR_INVALID, "an image reference cannot be empty");
	if (text.len >= REFERENCE_TEXT_MAX)
		return err_set(err, ERR_INVALID, "reference of more than %zu bytes",
			       REFERENCE_TEXT_MAX);
	for (size_t i = 0; i < text.len; i++) {
		if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
			return err_set(err, ERR_INVALID, "control character in a reference");
	}
	if (memmem(text.ptr, text.len, "://", 3))
		return err_set(err, ERR_INVALID,
			       "\"" STR_FMT "\" is a URL; a reference is HOST/NAME:TAG",
			       STR_ARG(text));
	return transport_check_known(text, err);
}

int reference_parse(struct str text, struct reference *out, struct err *err)
{
	const struct transport *transport;

	if (reference_check_text(text, err) < 0)
		return -1;
	if (str_equal(text, STR("scratch"))) {
		reference_fill(&(struct reference_parts){.kind = REFERENCE_SCRATCH}, out);
		return 0;
	}
	transport = transport_find(text);
	if (transport)
		return reference_parse_place(transport, text, out, err);
	return reference_parse_registry(text, out, err);
}

int reference_format(const struct reference *reference, struct buf *out, struct err *err)
{
	const struct transport *transport = transport_of(reference->kind);
	char digest[DIGEST_TEXT_MAX] = "";
	bool tagged = reference->tag.len > 0;

	if (reference->kind == REFERENCE_SCRATCH)
		return buf_add(out, STR("scratch"), err);
	if (reference->has_digest)
		digest_format(&reference->digest, digest);
	return buf_addf(out, err, STR_FMT "%s" STR_FMT "%s" STR_FMT "%s%s",
			STR_ARG(transport ? transport->prefix : reference->host),
			transport ? "" : "/", STR_ARG(reference->path), tagged ? ":" : "",
			STR_ARG(reference->tag), reference->has_digest ? "@" : "", digest);
}

int reference_parse_name(struct str text, struct buf *out, struct err *err)
{
	struct reference reference;

	if (reference_parse(text, &reference, err) < 0)
		return -1;
	if (reference.kind != REFERENCE_REGISTRY || reference.has_digest)
		return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not NAME[:TAG]",
			       STR_ARG(text));
	if (str_starts(text, STR("sha256:")))
		return err_set(err, ERR_INVALID,
			       "\"" STR_FMT "\" is the beginning of a digest, and no name",
			       STR_ARG(text));
	return reference_format(&reference, out, err);
}

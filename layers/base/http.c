/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/http.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

static const char *const http_methods[] = {
	[HTTP_OTHER] = "OTHER",   [HTTP_GET] = "GET",         [HTTP_HEAD] = "HEAD",
	[HTTP_POST] = "POST",     [HTTP_PUT] = "PUT",         [HTTP_PATCH] = "PATCH",
	[HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS",
};

enum http_method http_method_parse(const char *text)
{
	for (int i = HTTP_GET; i <= HTTP_OPTIONS; i++) {
		if (strcmp(http_methods[i], text) == 0)
			return (enum http_method)i;
	}
	return HTTP_OTHER;
}

const char *http_method_name(enum http_method method)
{
	return http_methods[method];
}

/* A line break in a header would begin another one. */
static size_t http_safe_length(struct str value)
{
	size_t n = 0;

	while (n < value.len && (unsigned char)value.ptr[n] >= 0x20 && value.ptr[n] != 0x7f)
		n++;
	return n;
}

void http_add_header(struct http_response *response, const char *name, struct str value)
{
	assert(response->header_count < HTTP_HEADERS_MAX);
	response->headers[response->header_count++] = (struct http_header){
		.name = name,
		.value = str_dup((struct str){value.ptr, http_safe_length(value)}),
	};
}

void http_set_body(struct http_response *response, const char *type, struct str text)
{
	struct err err;

	buf_clear(&response->body);
	if (buf_add(&response->body, text, &err) < 0) {
		response->status = (unsigned)err_http_status(err.kind);
		return;
	}
	http_add_header(response, "Content-Type", str_of(type));
}

void http_response_clear(struct http_response *response)
{
	for (size_t i = 0; i < response->header_count; i++)
		free(response->headers[i].value);
	buf_done(&response->body);
	if (response->stream)
		response->stream->close(response->stream);
	*response = HTTP_RESPONSE_INIT;
}

struct str http_etag(struct str name, char out[static HTTP_ETAG_MAX])
{
	int n = snprintf(out, HTTP_ETAG_MAX, "\"" STR_FMT "\"", STR_ARG(name));

	assert(n > 0 && (size_t)n < HTTP_ETAG_MAX);
	return (struct str){out, (size_t)n};
}

bool http_etag_matches(const char *if_none_match, struct str etag)
{
	struct str rest = str_of(if_none_match ? if_none_match : "");
	struct str one;

	while (str_cut(&rest, ',', &one)) {
		one = str_trim(one);
		if (str_starts(one, STR("W/")))
			one = str_skip(one, 2);
		if (str_equal(one, etag) || str_equal(one, STR("*")))
			return true;
	}
	return false;
}

bool http_add_etag(const struct http_request *request, struct http_response *response,
		   struct str etag)
{
	bool known = http_etag_matches(http_find_header(request, "If-None-Match"), etag);

	http_add_header(response, "ETag", etag);
	if (known)
		response->status = 304;
	return known;
}

/* FNV-1a: who shares a number by chance looks once too often. */
uint64_t http_topic(struct str name)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < name.len; i++)
		hash = (hash ^ (unsigned char)name.ptr[i]) * 0x100000001b3;
	return hash;
}

int http_add_escaped(struct buf *out, struct str text, const char *also, struct err *err)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];
		bool plain = isalnum(c) || (c != '\0' && (strchr("-._~", c) || strchr(also, c)));

		if ((plain ? buf_add(out, (struct str){&text.ptr[i], 1}, err)
			   : buf_addf(out, err, "%%%02X", c)) < 0)
			return -1;
	}
	return 0;
}

static int http_hex(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20; /* lower case */
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of an escape at the start of text, or -1; 0 is none. */
static int http_escape(struct str text)
{
	int high = text.len < 3 ? -1 : http_hex(text.ptr[1]);
	int low = high < 0 ? -1 : http_hex(text.ptr[2]);

	return low < 0 || (high | low) == 0 ? -1 : high << 4 | low;
}

bool http_unescape(char *text, size_t *len, bool plus)
{
	struct str all = {text, *len};
	size_t out = 0;

	for (size_t i = 0; i < all.len; i++) {
		if (text[i] == '%' && http_escape(str_skip(all, i)) < 0)
			return false;
	}
	for (size_t i = 0; i < all.len; i++, out++) {
		text[out] = text[i];
		if (plus && text[i] == '+')
			text[out] = ' ';
		if (text[i] != '%')
			continue;
		text[out] = (char)http_escape(str_skip(all, i));
		i += 2;
	}
	*len = out;
	return true;
}

bool http_unescape_path(char *text, size_t *len)
{
	struct str all = {text, *len};

	for (size_t i = 0; i < all.len; i++) {
		if (text[i] == '%' && http_escape(str_skip(all, i)) == '/')
			return false;
	}
	return http_unescape(text, len, false);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: of whatever path, what is parsed fits its grammar and lies in the
 * request, and had neither an escaped / nor a wrong escape; what is refused is
 * refused as JSON with a status of 400 or more.
 *
 * The input's first byte is the method; then come the path and, behind a NUL, ns.
 */
#include "registry/grammar.h"
#include "registry/v2_path.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_view(struct str all, struct str part)
{
	if (part.len > 0 && (part.ptr < all.ptr || part.ptr + part.len > all.ptr + all.len))
		abort();
}

static void check_path(const struct http_request *request, const struct v2_path *path)
{
	bool named = path->kind != V2_PING && path->kind != V2_CATALOG;

	check_view(request->path, path->repository);
	check_view(request->path, path->reference);
	check_view(request->query->value, path->ns);
	if (named != (path->repository.len > 0))
		abort();
	if (named && !grammar_is_name(path->repository))
		abort();
	if (path->kind == V2_MANIFEST && !path->by_digest && !grammar_is_tag(path->reference))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_http_response struct http_response refusal = HTTP_RESPONSE_INIT;
	struct str rest = {(const char *)data, size};
	auto_free char *text = NULL;
	struct http_field ns = {.name = STR("ns")};
	struct http_request request = {.query = &ns};
	struct v2_path path;
	bool decoded;

	if (size == 0)
		return 0;
	request.method = data[0] % (HTTP_OPTIONS + 1);
	rest = str_skip(rest, 1);
	(void)str_cut(&rest, '\0', &request.path);
	text = str_dup(request.path);
	request.path = str_of(text);
	decoded = http_unescape_path(text, &request.path.len);
	ns.value = rest;
	request.query_count = rest.ptr ? 1 : 0;
	if (v2_path_parse(&request, &path, &refusal) == 0) {
		if (!decoded)
			abort();
		check_path(&request, &path);
	} else if (refusal.status < 400 || buf_str(&refusal.body).ptr[0] != '{') {
		abort();
	}
	return 0;
}

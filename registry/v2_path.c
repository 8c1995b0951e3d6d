/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_path.h"

#include "registry/grammar.h"
#include "registry/v2_refuse.h"

#include <ctype.h>
#include <stdio.h>

#define V2_PATH_SHOWN 100 /* of a path that is wrong, how much an error says */

/* A path's last part, with which it is known; the separators are not in it. */
static bool v2_path_cut_last(struct str *rest, struct str *out)
{
	size_t at = rest->len;

	while (at > 0 && rest->ptr[at - 1] != '/')
		at--;
	if (at == 0)
		return false;
	*out = str_skip(*rest, at);
	rest->len = at - 1;
	return true;
}

static bool v2_path_cut_end(struct str *rest, struct str end)
{
	if (rest->len < end.len || !str_equal(str_skip(*rest, rest->len - end.len), end))
		return false;
	rest->len -= end.len;
	return true;
}

static bool v2_path_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* "docker.io", "127.0.0.1:5000", "[::1]:5000": no more is known of it here. */
static bool v2_path_is_host(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (!v2_path_is_word(c) && c != '.' && c != '-' && c != ':' && c != '[' && c != ']')
			return false;
	}
	return text.len > 0 && text.len <= V2_NAMESPACE_MAX;
}

static bool v2_path_is_session(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!v2_path_is_word(text.ptr[i]) && text.ptr[i] != '-')
			return false;
	}
	return text.len > 0 && text.len <= V2_SESSION_MAX;
}

bool v2_path_find(const struct http_request *request, struct str name, struct str *out)
{
	for (size_t i = 0; i < request->query_count; i++) {
		if (!str_equal(request->query[i].name, name))
			continue;
		*out = request->query[i].value;
		return true;
	}
	return false;
}

/* The methods that a kind knows, and what one must be allowed to for each. */
struct v2_path_methods {
	const char *allow;
	enum v2_action actions[HTTP_OPTIONS + 1]; /* V2_NOTHING: not known */
};

#define V2_PATH_READ(action) [HTTP_GET] = (action), [HTTP_HEAD] = (action)

static const struct v2_path_methods v2_path_methods[V2_KINDS] = {
	[V2_PING] = {"GET, HEAD", {V2_NOTHING}},
	[V2_CATALOG] = {"GET, HEAD", {V2_PATH_READ(V2_LIST)}},
	[V2_TAGS] = {"GET, HEAD", {V2_PATH_READ(V2_PULL)}},
	[V2_REFERRERS] = {"GET, HEAD", {V2_PATH_READ(V2_PULL)}},
	[V2_BLOB] = {"GET, HEAD, DELETE", {V2_PATH_READ(V2_PULL), [HTTP_DELETE] = V2_DELETE}},
	[V2_MANIFEST] = {"GET, HEAD, PUT, DELETE",
			 {V2_PATH_READ(V2_PULL), [HTTP_PUT] = V2_PUSH, [HTTP_DELETE] = V2_DELETE}},
	[V2_UPLOADS] = {"POST", {[HTTP_POST] = V2_PUSH}},
	[V2_UPLOAD] = {"GET, HEAD, PATCH, PUT, DELETE",
		       {V2_PATH_READ(V2_PUSH), [HTTP_PATCH] = V2_PUSH, [HTTP_PUT] = V2_PUSH,
			[HTTP_DELETE] = V2_PUSH}},
};

/* The kind, and what it is about. False: no path of this API. */
static bool v2_path_split(struct str path, struct v2_path *out)
{
	struct str rest;

	if (str_equal(path, STR("/v2")) || str_equal(path, STR("/v2/"))) {
		out->kind = V2_PING;
		return true;
	}
	if (!str_starts(path, STR("/v2/")))
		return false;
	rest = str_skip(path, sizeof("/v2/") - 1);
	out->kind = V2_CATALOG;
	if (str_equal(rest, STR("_catalog")))
		return true;
	out->kind = V2_TAGS;
	out->repository = rest;
	if (v2_path_cut_end(&out->repository, STR("/tags/list")))
		return true;
	out->kind = V2_UPLOADS;
	if (v2_path_cut_end(&out->repository, STR("/blobs/uploads/")) ||
	    v2_path_cut_end(&out->repository, STR("/blobs/uploads")))
		return true;
	if (!v2_path_cut_last(&out->repository, &out->reference))
		return false;
	out->kind = V2_UPLOAD;
	if (v2_path_cut_end(&out->repository, STR("/blobs/uploads")))
		return true;
	out->kind = V2_BLOB;
	if (v2_path_cut_end(&out->repository, STR("/blobs")))
		return true;
	out->kind = V2_REFERRERS;
	if (v2_path_cut_end(&out->repository, STR("/referrers")))
		return true;
	out->kind = V2_MANIFEST;
	return v2_path_cut_end(&out->repository, STR("/manifests"));
}

static int v2_path_check_method(const struct http_request *request, struct v2_path *path,
				struct http_response *refusal)
{
	const struct v2_path_methods *known = &v2_path_methods[path->kind];
	bool reads = request->method == HTTP_GET || request->method == HTTP_HEAD;

	path->action = known->actions[request->method];
	path->heads = request->method == HTTP_HEAD;
	if (path->action != V2_NOTHING || (path->kind == V2_PING && reads))
		return 0;
	http_add_header(refusal, "Allow", str_of(known->allow));
	v2_refuse(refusal, 405, V2_UNSUPPORTED, "this is asked for by %s", known->allow);
	return -1;
}

static int v2_path_check_digest(struct v2_path *path, struct http_response *refusal)
{
	struct err err;

	path->by_digest = true;
	if (digest_parse(path->reference, &path->digest, &err) == 0)
		return 0;
	v2_refuse(refusal, 400, V2_DIGEST_INVALID,
		  "expected sha256: and 64 or sha512: and 128 lower-case hex digits, found %.*s",
		  (int)(path->reference.len < V2_PATH_SHOWN ? path->reference.len : V2_PATH_SHOWN),
		  path->reference.ptr);
	return -1;
}

/* What no manifest can be called, none is; only who puts one hears why. */
static int v2_path_check_tag(const struct v2_path *path, struct http_response *refusal)
{
	if (grammar_is_tag(path->reference))
		return 0;
	if (path->action == V2_PUSH)
		v2_refuse(refusal, 400, V2_TAG_INVALID,
			  "a tag is at most %zu letters, digits, dots, dashes and underscores, and "
			  "begins with none of . and -",
			  GRAMMAR_TAG_MAX);
	else
		v2_refuse(refusal, 404, V2_MANIFEST_UNKNOWN, "no tag can be called that");
	return -1;
}

static int v2_path_check_reference(struct v2_path *path, struct http_response *refusal)
{
	switch (path->kind) {
	case V2_BLOB:
	case V2_REFERRERS:
		return v2_path_check_digest(path, refusal);
	case V2_MANIFEST:
		if (memchr(path->reference.ptr, ':', path->reference.len))
			return v2_path_check_digest(path, refusal);
		return v2_path_check_tag(path, refusal);
	case V2_UPLOAD:
		if (v2_path_is_session(path->reference))
			return 0;
		v2_refuse(refusal, 404, V2_BLOB_UPLOAD_UNKNOWN, "no upload can be called that");
		return -1;
	case V2_PING:
	case V2_CATALOG:
	case V2_TAGS:
	case V2_UPLOADS:
	case V2_KINDS:
		break;
	}
	return 0;
}

int v2_path_parse(const struct http_request *request, struct v2_path *out,
		  struct http_response *refusal)
{
	struct v2_path path = {.kind = V2_PING, .door = str_of(request->door ? request->door : "")};

	if (!v2_path_split(request->path, &path)) {
		v2_refuse(refusal, 404, V2_UNSUPPORTED, "there is nothing at %.*s",
			  (int)(request->path.len < V2_PATH_SHOWN ? request->path.len
								  : V2_PATH_SHOWN),
			  request->path.ptr);
		return -1;
	}
	if (path.kind != V2_PING && path.kind != V2_CATALOG && !grammar_is_name(path.repository)) {
		v2_refuse(refusal, 400, V2_NAME_INVALID,
			  "a repository's name is lower-case letters and digits, with single dots, "
			  "underscores and dashes between them, in parts with / between them, and "
			  "%zu bytes at most",
			  GRAMMAR_NAME_MAX);
		return -1;
	}
	if (v2_path_find(request, STR("ns"), &path.ns) && !v2_path_is_host(path.ns)) {
		v2_refuse(refusal, 400, V2_NAME_INVALID, "ns: expected a registry's host");
		return -1;
	}
	if (v2_path_check_method(request, &path, refusal) < 0 ||
	    v2_path_check_reference(&path, refusal) < 0)
		return -1;
	*out = path;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_path.h - what a request under /v2/ asks for: method, path and query.
 *
 *	/v2/                            GET HEAD
 *	/v2/_catalog                    GET HEAD
 *	/v2/NAME/tags/list              GET HEAD
 *	/v2/NAME/referrers/DIGEST       GET HEAD
 *	/v2/NAME/blobs/DIGEST           GET HEAD DELETE
 *	/v2/NAME/manifests/TAG|DIGEST   GET HEAD PUT DELETE
 *	/v2/NAME/blobs/uploads/         POST
 *	/v2/NAME/blobs/uploads/ID       GET HEAD PATCH PUT DELETE
 *
 * A path is read from its end, so a repository may be called a/tags/list. Nothing
 * is tidied up in it: a part that is empty, . or .., and an escaped /, which the
 * server leaves as it came, are in no name.
 *
 * Format: OCI distribution-spec 1.1, "Endpoints" and "Pulling manifests".
 *
 * Invariant: in a parsed path repository and tag are spelt as grammar.h says. All
 * are views of the request.
 */
#pragma once

#include "layers/base/http.h"
#include "layers/digest.h"

#define V2_NAMESPACE_MAX ((size_t)255) /* a host and its port */
#define V2_SESSION_MAX ((size_t)128)   /* an upload's id */

enum v2_kind {
	V2_PING,
	V2_CATALOG,
	V2_TAGS,
	V2_REFERRERS,
	V2_BLOB,
	V2_MANIFEST,
	V2_UPLOADS, /* an upload begins */
	V2_UPLOAD,  /* one that has begun */
	V2_KINDS,
};

/* What somebody must be allowed to. */
enum v2_action {
	V2_NOTHING, /* to ping */
	V2_PULL,
	V2_PUSH,
	V2_DELETE,
	V2_LIST, /* the catalog: only of what he may pull */
};

struct v2_path {
	enum v2_kind kind;
	enum v2_action action;
	bool heads;            /* HEAD: it is only asked whether it is there */
	struct str repository; /* "repo-bot", "docker.io/library/alpine" */
	struct str ns;         /* ?ns=, a host; or empty */
	struct str door;       /* of which upstream the listener is that it came by; or empty */
	struct str reference;  /* a tag, a digest, or a session's id */
	bool by_digest;        /* the reference is this one: */
	struct digest digest;
};

/* -1: *refusal says why it is nothing that can be asked for. */
int v2_path_parse(const struct http_request *request, struct v2_path *out,
		  struct http_response *refusal) MUST_CHECK;

/* A parameter of the query; the first one where it is given twice. */
bool v2_path_find(const struct http_request *request, struct str name, struct str *out);

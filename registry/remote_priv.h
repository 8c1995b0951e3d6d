/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_priv.h - one repository of a registry somewhere else, asked over HTTP.
 *
 * http.c sends once; this asks until there is an answer: with the proof of
 * auth.c, through redirects (which carry that proof to no other host), and
 * again after failures that may pass. A body is sent anew each time.
 *
 * Threads: one struct remote serves all of a pull or push, each thread with a
 * struct http of its own from remote_connect(). When a registry asks one of
 * them to wait (Retry-After), all wait.
 */
#pragma once

#include "registry/auth_priv.h"
#include "registry/warnings_priv.h"

#define REMOTE_REDIRECTS_MAX 10

struct remote;

struct remote_spec {
	struct str host;
	struct str path;
	struct str source; /* the host that this is a mirror of, which it is told; or empty */
	bool push;         /* to be written to, too */
	struct str from;   /* a repository that blobs are mounted from, which a token is for, too */
	bool plain_http;
	const char *ca_file;
	struct str user;
	const struct secret *password; /* with user */
	int tries;
	int retry_base_ms; /* 0 for RETRY_BASE_MS */
	int stall_ms;      /* 0 for HTTP_STALL_MS */
	int document_ms;   /* 0 for HTTP_DOCUMENT_MS */
	warning_fn *warn;  /* hears what the registry says beside its answers; may be NULL */
	void *warn_ctx;
	const struct cancel *cancel;
	const struct cancel *cancel_too;
};

/* Borrows what spec points to. Nothing is sent yet. */
int remote_open(const struct remote_spec *spec, struct remote **out, struct err *err) MUST_CHECK;
void remote_close(struct remote *remote);
int remote_connect(struct remote *remote, struct http **out, struct err *err) MUST_CHECK;

/* The registry's own URL, "https://HOST/". */
int remote_base(const struct remote *remote, struct buf *out, struct err *err) MUST_CHECK;

/* What is asked for, before scheme, proof and redirects. */
struct remote_request {
	enum http_method method;
	const char *kind; /* "manifests", "blobs"; NULL for what is the registry's own */
	const char *name; /* a tag or a digest; "_catalog" */
	const char *url;  /* in place of both: where the registry sent us; or NULL */
	bool document;    /* as http_call has it */
	const char *accept;
	const char *range;
	const char *content_type;
	const char *content_range;
	struct sink *body;
	struct http_upload *upload;
};

/*
 * One try: 0 and the last answer, whatever its status; -1 where none came.
 * *out_strayed: another host gave it.
 */
int remote_try(struct remote *remote, struct http *http, const struct remote_request *request,
	       struct http_reply *response, bool *out_strayed, struct err *err) MUST_CHECK;

/*
 * After a try that returned `result` and is no success: fill *err, and say
 * whether to try again. `what` was asked for, in words.
 */
bool remote_failed(struct remote *remote, const struct http_reply *response, int result,
		   bool strayed, const char *what, struct err *err);

/* Fill *err for an answer that is final. Always -1. */
int remote_refused(const struct remote *remote, const struct http_reply *response, const char *what,
		   struct err *err);

/* Whether the registry wanted a proof so far. */
bool remote_was_asked(const struct remote *remote);

/* How often and how soon this remote is asked again. */
struct retry remote_retry(const struct remote *remote);

/*
 * Try until there is an answer that another try would not change: 0, whatever
 * its status; or -1.
 */
int remote_send(struct remote *remote, struct http *http, const struct remote_request *request,
		const char *what, struct http_reply *response, struct err *err) MUST_CHECK;

/*
 * A document, whole, into out, whose ceiling holds: a try that broke leaves
 * nothing of it. 0 and a 200; -1 where the answer is another, which *response is.
 */
int remote_get(struct remote *remote, struct http *http, const struct remote_request *request,
	       const char *what, struct buf *out, struct http_reply *response, struct err *err)
	MUST_CHECK;

/*
 * Where a list goes on behind the page that was asked for, by its answer's Link,
 * for the next request's url (which *out may lend this one's): 1, 0 it does not,
 * -1.
 */
int remote_next_page(const struct remote *remote, const struct remote_request *request,
		     const struct http_reply *response, struct buf *out, struct err *err)
	MUST_CHECK;

DEFINE_AUTO(remote, struct remote *, remote_close);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - ask the daemon for a method, from the command line.
 *
 * The daemon is that of HEARTH_URL, with the token of HEARTH_TOKEN; else the
 * one that serves this data directory, by its socket and with admin.token. HTTP
 * is spoken by the role `call` of hearth-puller, since loading libcurl takes
 * time.
 */
#pragma once

#include "api/cli.h"
#include "bake/asker.h"
#include "layers/base/http.h"

struct call_spec {
	const char *method;  /* "agents.sync" */
	const json_t *args;  /* an object */
	int streamfd;        /* 0, or what the body is read from: args is NULL then */
	asker_log_fn *heard; /* NULL, or who gets the answer as it comes, whatever it is */
	void *ctx;           /* of heard */
	char *etag;          /* NULL, or HTTP_ETAG_MAX bytes: of the answer that is known; or "" */
};

/*
 * *out is the answer, the caller's to own; an empty object where it went to heard.
 * With an etag it is the JSON null where the answer is the one that is known, and
 * else etag becomes the new one's. The daemon's error comes as ours.
 * ERR_UNAVAILABLE where none answers.
 */
int call_daemon(const struct cli *cli, const struct call_spec *spec, json_t **out, struct err *err)
	MUST_CHECK;

/*
 * The same for the daemon's registry: GET this path and query. *out_more: the
 * list that it answers goes on.
 */
int call_registry(const struct cli *cli, const char *path, json_t **out, bool *out_more,
		  struct err *err) MUST_CHECK;

/* The role's whole run; its exit code. */
int call_serve(void);

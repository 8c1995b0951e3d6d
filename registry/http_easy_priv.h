/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_easy_priv.h - a request set on libcurl's easy handle, and the callbacks
 * that libcurl makes while it is under way; http.c drives it.
 *
 * A callback of ours that fails leaves why in `failure` and ends the transfer.
 */
#pragma once

#include "registry/http_priv.h"

#include <curl/curl.h>

struct http {
	struct http_options options;
	CURL *easy;
	CURLM *multi;
	char why[CURL_ERROR_SIZE];
	/* of the request that is being sent: */
	const struct http_call *request;
	struct http_reply *response;
	struct curl_slist *headers;
	struct err failure;  /* of a callback of ours */
	size_t header_bytes; /* with those of informational answers */
	bool heard_enough;   /* of an error's body */
	struct str lent;     /* what libcurl has not taken yet of the body that is sent */
	uint64_t unsent;     /* of that body */
	uint64_t bytes;      /* received and sent */
	uint64_t bytes_then; /* at `since_ms` */
	int64_t since_ms;    /* moves on while sink or source make us wait */
	int64_t begun_ms;
};

/* Tell the easy handle all of a request; http->headers is to be freed after it. */
void http_easy_prepare(struct http *http, const struct http_call *request);

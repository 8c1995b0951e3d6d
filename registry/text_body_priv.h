/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_body_priv.h - a text in memory, as the body of a request.
 *
 * Ownership: the text is borrowed for as long as the body is used.
 */
#pragma once

#include "registry/http_priv.h"

struct text_body {
	struct http_upload http;
	struct str text;
	bool read;
};

void text_body_init(struct text_body *body, struct str text);

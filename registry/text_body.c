/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/text_body_priv.h"

static int text_body_read(struct source *source, struct str *out, struct err *err)
{
	struct text_body *body = container_of(source, struct text_body, http.source);

	(void)err;
	if (body->read)
		return 0;
	body->read = true;
	*out = body->text;
	return 1;
}

static int text_body_rewind(struct http_upload *http, struct err *err)
{
	(void)err;
	container_of(http, struct text_body, http)->read = false;
	return 0;
}

void text_body_init(struct text_body *body, struct str text)
{
	*body = (struct text_body){
		.http = {.source = {text_body_read}, .size = text.len, .rewind = text_body_rewind},
		.text = text};
}

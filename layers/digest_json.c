/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/digest_json.h"

void digest_json_set(json_t *object, const char *key, const struct digest *digest)
{
	char text[DIGEST_TEXT_MAX];

	json_set_text(object, key, digest_format(digest, text));
}

int digest_json_need(const json_t *object, const char *path, const char *key, struct digest *out,
		     struct err *err)
{
	struct str text;

	if (json_need_string(object, path, key, &text, err) < 0)
		return -1;
	return digest_parse(text, out, err);
}

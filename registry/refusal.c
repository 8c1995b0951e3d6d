/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/refusal_priv.h"

#include "layers/base/json.h"

#define REFUSAL_BODY_MAX ((size_t)64 * 1024)

/* Append text without what could move a terminal's cursor. */
static void refusal_add(struct buf *out, struct str text)
{
	struct err full;

	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];
		char shown = (char)(c < 0x20 || c == 0x7f ? ' ' : c);

		if (buf_add(out, (struct str){&shown, 1}, &full) < 0)
			return; /* the beginning has to do */
	}
}

/* " (CODE: message)" of the first error, or nothing. */
static void refusal_words(struct str body, struct buf *out)
{
	AUTO(json) json_t *document = NULL;
	struct str code = STR("");
	struct str message = STR("");
	const json_t *first;
	struct err ignored;

	if (json_parse(body, REFUSAL_BODY_MAX, &document, &ignored) < 0)
		return;
	first = json_array_get(json_object_get(document, "errors"), 0);
	if (!first)
		return;
	if (json_get_string(first, "", "code", &code, &ignored) < 0 ||
	    json_get_string(first, "", "message", &message, &ignored) < 0 ||
	    code.len + message.len == 0)
		return;
	refusal_add(out, STR("; it says: "));
	refusal_add(out, code);
	if (code.len > 0 && message.len > 0)
		refusal_add(out, STR(": "));
	refusal_add(out, message);
}

int refusal_explain(long status, struct str body, bool has_credentials, const char *what,
		    struct err *err)
{
	auto_buf struct buf words = BUF_INIT(REFUSAL_TEXT_MAX);
	const char *said;

	refusal_words(body, &words);
	said = buf_str(&words).ptr;
	switch (status) {
	case 401:
		return err_set(err, ERR_UNAUTHORIZED,
			       has_credentials
				       ? "these credentials give no access to it, or there is no "
					 "such repository%s"
				       : "it needs credentials, or there is no such repository%s",
			       said);
	case 403:
		return err_set(err, ERR_DENIED,
			       has_credentials
				       ? "access denied: these credentials do not allow it%s"
				       : "access denied: it may need credentials%s",
			       said);
	case 404:
		return err_set(err, ERR_NOT_FOUND, "%s not found: check name and tag%s", what,
			       said);
	case 413:
		return err_set(err, ERR_REMOTE, "the registry takes nothing as large as %s%s", what,
			       said);
	case 507:
		return err_set(err, ERR_REMOTE, "the registry is full: %s has no room there%s",
			       what, said);
	case 429:
		return err_set(err, ERR_BUSY,
			       has_credentials
				       ? "too many requests for this account; try later%s"
				       : "too many requests; try later, or with credentials%s",
			       said);
	default:
		return err_set(err, ERR_REMOTE, "unexpected status %ld for %s%s", status, what,
			       said);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form.h - a body of application/x-www-form-urlencoded, as fields of http.h.
 *
 * Ownership: a form owns its text, in which all fields lie.
 */
#pragma once

#include "layers/base/http.h"

#define FORM_FIELDS_MAX ((size_t)16)

struct form {
	char *text; /* owned */
	struct http_field fields[FORM_FIELDS_MAX];
	size_t count;
};

/* ERR_INVALID for an escape that is none, and above FORM_FIELDS_MAX. */
int form_parse(struct str body, struct form *out, struct err *err) MUST_CHECK;

/* "" where there is no such field; the first where there are several. */
struct str form_find(const struct form *form, struct str name);

static inline void auto_form_release(struct form *slot)
{
	free(slot->text);
	slot->text = NULL;
}
#define auto_form AUTO(form)

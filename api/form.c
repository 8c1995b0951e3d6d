/* SPDX-License-Identifier: Apache-2.0 */
#include "api/form.h"

/* Decode a part of the text where it stands. */
static bool form_decode(struct str part, struct str *out)
{
	size_t len = part.len;

	if (!http_unescape(drop_const(part.ptr), &len, true))
		return false;
	*out = (struct str){part.ptr, len};
	return true;
}

static int form_add(struct form *form, struct str pair, struct err *err)
{
	struct http_field *field = &form->fields[form->count];
	struct str name;

	if (form->count == FORM_FIELDS_MAX)
		return err_set(err, ERR_INVALID, "a form of more than %zu fields", FORM_FIELDS_MAX);
	(void)str_cut(&pair, '=', &name);
	if (!form_decode(name, &field->name) ||
	    !form_decode(pair.ptr ? pair : str_skip(name, name.len), &field->value))
		return err_set(err, ERR_INVALID, "a form with an escape that is none");
	form->count++;
	return 0;
}

int form_parse(struct str body, struct form *out, struct err *err)
{
	auto_form struct form form = {.text = str_dup(body)};
	struct str rest = str_of(form.text);
	struct str pair;

	while (rest.len > 0 && str_cut(&rest, '&', &pair)) {
		if (form_add(&form, pair, err) < 0)
			return -1;
	}
	*out = form;
	form.text = NULL;
	return 0;
}

struct str form_find(const struct form *form, struct str name)
{
	for (size_t i = 0; i < form->count; i++) {
		if (str_equal(form->fields[i].name, name))
			return form->fields[i].value;
	}
	return STR("");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: the fields of whatever form lie in its text; what scopes ask for is
 * what a token of ours may have, and names repositories.
 */
#include "api/form.h"
#include "api/scopes.h"
#include "api/token_flow.h"
#include "registry/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_view(const char *text, size_t size, struct str part)
{
	if (part.ptr < text || part.ptr + part.len > text + size)
		abort();
}

static void check_scope(struct str scope)
{
	struct str name = scope;
	struct str action;

	if (str_equal(scope, STR("list:*")))
		return;
	(void)str_cut(&name, ':', &action);
	if (!str_equal(action, STR("pull")) && !str_equal(action, STR("push")) &&
	    !str_equal(action, STR("delete")))
		abort();
	if (!name.ptr || !grammar_is_name(name))
		abort();
}

static void check_scopes(const struct form *form)
{
	AUTO(json) json_t *list = token_flow_scopes(form->fields, form->count);
	AUTO(scopes) struct scopes *scopes = scopes_new(list);

	if (json_array_size(list) > TOKEN_SCOPES_MAX || !scopes != !json_array_size(list))
		abort();
	for (size_t i = 0; i < json_array_size(list); i++)
		check_scope(json_str(json_array_get(list, i)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_form struct form form = {.text = NULL};
	struct err err;

	if (form_parse((struct str){(const char *)data, size}, &form, &err) < 0)
		return 0;
	for (size_t i = 0; i < form.count; i++) {
		check_view(form.text, size, form.fields[i].name);
		check_view(form.text, size, form.fields[i].value);
	}
	check_scopes(&form);
	return 0;
}

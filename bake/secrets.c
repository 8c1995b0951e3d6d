/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/secrets.h"

#include "bake/csv_priv.h"
#include "layers/base/array.h"
#include "layers/base/nearest.h"

#define SECRETS_FIELD_MAX ((size_t)8192)

static int secrets_refuse_key(struct str key, struct err *err)
{
	static const char *const known[] = {"id", "src", "source", "env", "type"};
	char hint[NEAREST_HINT_MAX];

	return err_set(err, ERR_INVALID, "unknown key " STR_FMT "%s", STR_ARG(key),
		       nearest_hint(key, known, sizeof(known) / sizeof(known[0]), hint));
}

/* `type` only says what the other keys say as well. */
static int secrets_take_field(struct secret_source *source, struct str field, struct str *type,
			      struct err *err)
{
	struct str value = field;
	struct str key;
	char **slot;

	(void)str_cut(&value, '=', &key);
	if (!memchr(field.ptr, '=', field.len) || value.len == 0)
		return err_set(err, ERR_INVALID, "expected id=ID,src=FILE or id=ID,env=NAME");
	if (str_equal(key, STR("type"))) {
		*type = str_equal(value, STR("env")) ? STR("env") : STR("file");
		return str_equal(value, *type)
			       ? 0
			       : err_set(err, ERR_INVALID, "type: expected file or env");
	}
	slot = str_equal(key, STR("id"))                                     ? &source->id
	       : str_equal(key, STR("env"))                                  ? &source->env
	       : str_equal(key, STR("src")) || str_equal(key, STR("source")) ? &source->file
									     : NULL;
	if (!slot)
		return secrets_refuse_key(key, err);
	if (*slot)
		return err_set(err, ERR_INVALID, STR_FMT " is given twice", STR_ARG(key));
	*slot = str_dup(value);
	return 0;
}

static int secrets_read_fields(struct str text, struct secret_source *source, struct str *type,
			       struct err *err)
{
	auto_buf struct buf field = BUF_INIT(SECRETS_FIELD_MAX);
	bool more = true;

	while (more) {
		if (csv_next(&text, &field, &more, err) < 0 ||
		    secrets_take_field(source, buf_str(&field), type, err) < 0)
			return -1;
	}
	return 0;
}

int secret_source_parse(struct str text, secret_variable_fn *has_variable,
			struct secret_source *out, struct err *err)
{
	auto_secret_source struct secret_source source = {0};
	struct str type = STR("");

	if (secrets_read_fields(text, &source, &type, err) < 0)
		return -1;
	if (!source.id || strlen(source.id) > SECRETS_ID_MAX)
		return err_set(err, ERR_INVALID, "expected id=ID, of at most %zu bytes",
			       SECRETS_ID_MAX);
	if (source.file && source.env)
		return err_set(err, ERR_INVALID, "both src and env");
	if (str_equal(type, STR("env")) && source.file) {
		source.env = source.file;
		source.file = NULL;
	}
	if (!source.file && !source.env) {
		bool variable = !str_equal(type, STR("file")) && has_variable(source.id);

		*(variable ? &source.env : &source.file) = str_dup(str_of(source.id));
	}
	*out = source;
	source = (struct secret_source){0};
	return 0;
}

void secret_source_done(struct secret_source *source)
{
	free(source->id);
	free(source->file);
	free(source->env);
	*source = (struct secret_source){0};
}

int secrets_add(struct secrets *secrets, const char *id, struct buf *bytes, struct err *err)
{
	if (secrets_find(secrets, str_of(id)))
		return err_set(err, ERR_INVALID, "the secret %s is given twice", id);
	if (array_make_room(&secrets->at, sizeof(*secrets->at), secrets->count, SECRETS_MAX,
			    "secrets", err) < 0)
		return -1;
	secrets->at[secrets->count] = (struct secrets_entry){.id = str_dup(str_of(id))};
	secret_take(&secrets->at[secrets->count++].value, bytes);
	return 0;
}

const struct secret *secrets_find(const struct secrets *secrets, struct str id)
{
	for (size_t i = 0; secrets && i < secrets->count; i++) {
		if (str_equal(str_of(secrets->at[i].id), id))
			return &secrets->at[i].value;
	}
	return NULL;
}

void secrets_done(struct secrets *secrets)
{
	for (size_t i = 0; i < secrets->count; i++) {
		free(secrets->at[i].id);
		secret_done(&secrets->at[i].value);
	}
	free(secrets->at);
	*secrets = (struct secrets){0};
}

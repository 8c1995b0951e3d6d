/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets.h - the secrets that the operator gives to a bake by --secret, for
 * steps that ask for them by id.
 *
 * A value is in no key, no layer, no record and no log of ours (mask.h hides
 * what a step prints of it), and no program has it among its arguments. Steps
 * with equal texts are one step whatever their secrets are: a changed value
 * runs nothing again, and a bake that joins a running step gets the result that
 * another bake's secret made.
 */
#pragma once

#include "layers/base/secret.h"

#define SECRETS_MAX 256
#define SECRETS_ID_MAX ((size_t)256)

/* Where a secret is to be found: `id=ID,src=FILE` or `id=ID,env=NAME`. */
struct secret_source {
	char *id;
	char *file; /* file or env is set */
	char *env;
};

/* An id alone names a variable where has_variable says so, else a file. */
typedef bool secret_variable_fn(const char *name);
int secret_source_parse(struct str text, secret_variable_fn *has_variable,
			struct secret_source *out, struct err *err) MUST_CHECK;
void secret_source_done(struct secret_source *source);

struct secrets_entry {
	char *id;
	struct secret value;
};

struct secrets {
	struct secrets_entry *at; /* owned */
	size_t count;
};

/* Take over a wiped buf's bytes. ERR_INVALID for an id that is given twice. */
int secrets_add(struct secrets *secrets, const char *id, struct buf *bytes, struct err *err)
	MUST_CHECK;

/* NULL where there is none, or no secrets at all. Lent. */
const struct secret *secrets_find(const struct secrets *secrets, struct str id);
void secrets_done(struct secrets *secrets);

static inline void auto_secret_source_release(struct secret_source *slot)
{
	secret_source_done(slot);
}
#define auto_secret_source AUTO(secret_source)
static inline void auto_secrets_release(struct secrets *slot)
{
	secrets_done(slot);
}
#define auto_secrets AUTO(secrets)

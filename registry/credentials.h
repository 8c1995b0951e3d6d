/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials.h - user and password for a repository, in Docker's config.json.
 *
 * Keys are hosts ("127.0.0.1:5000"), hosts with the beginning of a path
 * ("quay.io/acme") or URLs ("https://index.docker.io/v1/"); the docker.io
 * family of names is one registry. The longest path that fits wins. A helper of
 * credHelpers goes before auths; the one of credsStore is asked for hosts whose
 * entry in auths is empty or absent, and need not know the latter. A host of
 * which the file says nothing is anonymous.
 *
 * Tokens are marked as Docker's helpers mark them: by a user name that nobody
 * can have.
 */
#pragma once

#include "layers/base/json.h"
#include "layers/base/secret.h"

#define CREDENTIALS_MAX ((size_t)4096)
#define CREDENTIALS_FILE_MAX ((size_t)1024 * 1024)
#define CREDENTIALS_HELPER_MAX ((size_t)64)

#define CREDENTIALS_IDENTITY "<token>" /* the password is what a token service takes for one */
#define CREDENTIALS_BEARER "<bearer>"  /* the password is the token itself */

struct credentials {
	char user[CREDENTIALS_MAX];
	struct secret password;
	char helper[CREDENTIALS_HELPER_MAX]; /* where one has to be asked: its name */
	bool guessed; /* it is the helper for all hosts, and nothing is said of this one */
};

/*
 * 1 found, 0 nothing is said of this repository, -1. text is the file's
 * content. *out, {0} or earlier credentials, is the caller's to release. Where
 * out->helper is set helper_ask() finds the rest.
 */
int credentials_find(struct str text, struct str host, struct str path, struct credentials *out,
		     struct err *err) MUST_CHECK;

/*
 * The helper that keeps the credentials of a host, by its name: 1, 0 the file
 * keeps them itself, -1.
 */
int credentials_keeper(struct str text, struct str host, char out[static CREDENTIALS_HELPER_MAX],
		       struct err *err) MUST_CHECK;

/*
 * The file with other credentials for all of a host, in any of its spellings;
 * what else it says stays. An empty text is a new file. Without a password the
 * entry is empty, as docker leaves it where a helper has the rest.
 */
int credentials_put(struct str text, struct str host, struct str user,
		    const struct secret *password, struct buf *out, struct err *err) MUST_CHECK;

/* The file without them: 1, 0 it has none, -1. */
int credentials_del(struct str text, struct str host, struct buf *out, struct err *err) MUST_CHECK;

static inline void auto_credentials_release(struct credentials *slot)
{
	secret_done(&slot->password);
}
#define auto_credentials AUTO(credentials)

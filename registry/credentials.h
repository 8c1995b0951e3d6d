/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials.h - user and password for a registry, from Docker's config.json.
 *
 * Keys are hosts ("127.0.0.1:5000") or URLs ("https://index.docker.io/v1/");
 * the docker.io family of names is one registry. Entries that need a helper
 * are ERR_UNSUPPORTED and name it.
 */
#pragma once

#include "layers/base/json.h"
#include "layers/base/secret.h"

#define CREDENTIALS_MAX ((size_t)4096)
#define CREDENTIALS_FILE_MAX ((size_t)1024 * 1024)

struct credentials {
	char user[CREDENTIALS_MAX];
	struct secret password;
};

/*
 * 1 found, 0 nothing for this host, -1. text is the file's content. *out is
 * credentials or {0} before, and the caller's to end.
 */
int credentials_find(struct str text, struct str host, struct credentials *out, struct err *err)
	MUST_CHECK;

static inline void auto_credentials_release(struct credentials *slot)
{
	secret_done(&slot->password);
}
#define auto_credentials AUTO(credentials)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * login_file.h - a file in which docker or podman keep credentials
 * (registry/credentials.h): read, and replaced whole.
 *
 * While it is open no other hearth changes it. A link is followed, so that what
 * it leads to is replaced. A new file is 0600, its directory 0700.
 */
#pragma once

#include "layers/base/buf.h"

struct login_file {
	int dirfd;       /* locked */
	char *path;      /* owned: where the file really is */
	char *name;      /* within it */
	struct buf text; /* what it says; empty where there is none */
};

#define LOGIN_FILE_INIT ((struct login_file){.dirfd = -1, .text = BUF_WIPED(LOGIN_FILE_MAX)})
#define LOGIN_FILE_MAX ((size_t)1024 * 1024)

/* With `make` its directory is made where there is none; else the file is empty then. */
int login_file_open(struct login_file *file, const char *path, bool make, struct err *err)
	MUST_CHECK;

/* Durable when it returns 0; after a failure the file is as it was. */
int login_file_replace(const struct login_file *file, struct str text, struct err *err) MUST_CHECK;

void login_file_done(struct login_file *file);

static inline void auto_login_file_release(struct login_file *slot)
{
	login_file_done(slot);
}
#define auto_login_file AUTO(login_file)

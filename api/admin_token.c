/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admin_token.h"

#include "api/token.h"

#include <fcntl.h>
#include <stdio.h>

#define ADMIN_FILE "admin.token"
#define ADMIN_FILE_NEW "admin.token.new"

int admin_token_read(int datafd, struct secret *out, struct err *err)
{
	auto_close int fd = openat(datafd, ADMIN_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_buf struct buf text = BUF_WIPED(SECRET_MAX);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "open " ADMIN_FILE);
	if (fd_read_all(fd, &text, err) < 0)
		return err_ctx(err, ADMIN_FILE);
	while (text.len > 0 && text.ptr[text.len - 1] == '\n')
		text.ptr[--text.len] = '\0';
	secret_take(out, &text);
	return 1;
}

/* 1 the file's token works. */
static int admin_token_check(struct store *store, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_secret struct secret secret = {0};
	auto_token struct token token = TOKEN_INIT;
	int found = admin_token_read(store_dirfd(store, STORE_ROOT), &secret, err);

	if (found <= 0)
		return found;
	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = token_find(meta, secret_bytes(&secret), &token, err);
	return found == 1 ? token.level == TOKEN_ADMIN : found;
}

/* Whole or not at all. */
static int admin_token_write(int datafd, const struct secret *secret, struct err *err)
{
	auto_close int fd = -1;
	struct str text = secret_bytes(secret);

	if (unlinkat(datafd, ADMIN_FILE_NEW, 0) < 0 && errno != ENOENT)
		return err_os(err, errno, "remove " ADMIN_FILE_NEW);
	fd = openat(datafd, ADMIN_FILE_NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_os(err, errno, "make " ADMIN_FILE_NEW);
	if (fd_write_all(fd, text.ptr, text.len, err) < 0 || fd_write_all(fd, "\n", 1, err) < 0)
		return err_ctx(err, ADMIN_FILE_NEW);
	if (fsync(fd) < 0 || renameat(datafd, ADMIN_FILE_NEW, datafd, ADMIN_FILE) < 0 ||
	    fsync(datafd) < 0)
		return err_os(err, errno, "make " ADMIN_FILE);
	return 0;
}

/*
 * Write the file before the record: a file without a record is replaced at the
 * next start, but a record without a file would stay.
 */
int admin_token_ensure(struct store *store, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *scopes = json_pack("[s]", token_level_name(TOKEN_ADMIN));
	auto_secret struct secret secret = {0};
	auto_token struct token token = TOKEN_INIT;
	int works = admin_token_check(store, err);

	if (works != 0)
		return works < 0 ? -1 : 0;
	if (meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    token_create(meta, STR(ADMIN_FILE), scopes, &secret, &token, err) < 0 ||
	    admin_token_write(store_dirfd(store, STORE_ROOT), &secret, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

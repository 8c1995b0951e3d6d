/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mac.c - what is named is length of the domain (8 bytes, little endian),
 * domain, bytes.
 */
#include "layers/mac.h"

#include "layers/base/fd.h"

#include <endian.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/stat.h>

#define MAC_KEY_NAME "secret.key"

struct mac_key {
	unsigned char bytes[MAC_KEY_BYTES];
};

static inline void auto_mac_key_release(struct mac_key *slot)
{
	OPENSSL_cleanse(slot, sizeof(*slot));
}
#define auto_mac_key AUTO(mac_key)

/* 1 and the key, 0 there is none yet, -1. */
static int mac_read_key(int rootfd, struct mac_key *out, struct err *err)
{
	auto_close int fd = openat(rootfd, MAC_KEY_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "open " MAC_KEY_NAME);
	n = fd_pread_all(fd, out->bytes, sizeof(out->bytes), 0, err);
	if (n < 0)
		return err_ctx(err, MAC_KEY_NAME);
	if (n != (ssize_t)sizeof(out->bytes) || fstat(fd, &st) < 0 || st.st_size != n)
		return err_set(err, ERR_CORRUPT,
			       MAC_KEY_NAME
			       " is no key of %zu bytes; without it, a new one is made",
			       MAC_KEY_BYTES);
	return 1;
}

/* Durable before it has its name, which only the first one gets. */
static int mac_make_key(struct store *store, struct err *err)
{
	auto_staging struct staging staging = STAGING_INIT;
	int rootfd = store_dirfd(store, STORE_ROOT);
	auto_mac_key struct mac_key key;
	auto_close int fd = -1;

	if (getrandom(key.bytes, sizeof(key.bytes), 0) != (ssize_t)sizeof(key.bytes))
		return err_os(err, errno, "random bytes");
	if (staging_open(store, &staging, err) < 0)
		return -1;
	fd = openat(staging.fd, MAC_KEY_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_all(fd, key.bytes, sizeof(key.bytes), err) < 0 || fsync(fd) < 0)
		return err_os(err, errno, "write " MAC_KEY_NAME);
	if (renameat2(staging.fd, MAC_KEY_NAME, rootfd, MAC_KEY_NAME, RENAME_NOREPLACE) < 0 &&
	    errno != EEXIST)
		return err_os(err, errno, "name " MAC_KEY_NAME);
	return fsync(rootfd) < 0 ? err_os(err, errno, "sync %s", store_path(store)) : 0;
}

static int mac_key(struct store *store, struct mac_key *out, struct err *err)
{
	int rootfd = store_dirfd(store, STORE_ROOT);
	int found = mac_read_key(rootfd, out, err);

	if (found != 0)
		return found < 0 ? -1 : 0;
	if (mac_make_key(store, err) < 0)
		return -1;
	found = mac_read_key(rootfd, out, err);
	if (found == 0)
		return err_set(err, ERR_UNAVAILABLE, MAC_KEY_NAME " went as soon as it was made");
	return found < 0 ? -1 : 0;
}

int mac_of(struct store *store, struct str domain, struct str bytes, struct digest *out,
	   struct err *err)
{
	auto_buf struct buf text = BUF_WIPED(sizeof(uint64_t) + domain.len + bytes.len + 1);
	uint64_t len = htole64(domain.len);
	auto_mac_key struct mac_key key;
	struct digest made = {.algorithm = DIGEST_SHA256};

	if (mac_key(store, &key, err) < 0 ||
	    buf_add(&text, (struct str){(const char *)&len, sizeof(len)}, err) < 0 ||
	    buf_add(&text, domain, err) < 0 || buf_add(&text, bytes, err) < 0)
		return -1;
	if (!HMAC(EVP_sha256(), key.bytes, (int)sizeof(key.bytes), (const unsigned char *)text.ptr,
		  text.len, made.bytes, NULL))
		return err_set(err, ERR_UNSUPPORTED, "libcrypto makes no HMAC");
	*out = made;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#define OPENSSL_API_COMPAT 0x10100000L /* SHA256_Init(), for digest_of() */
#include "layers/digest.h"

#include "layers/base/hex.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <string.h>

DEFINE_AUTO(md, EVP_MD_CTX *, EVP_MD_CTX_free);

static const struct {
	const char *prefix;
	size_t bytes;
	const EVP_MD *(*type)(void);
} algorithms[] = {
	[DIGEST_SHA256] = {"sha256:", 32, EVP_sha256},
	[DIGEST_SHA512] = {"sha512:", 64, EVP_sha512},
};

int digest_parse(struct str text, struct digest *out, struct err *err)
{
	for (size_t a = 0; a < sizeof(algorithms) / sizeof(algorithms[0]); a++) {
		const size_t prefix = strlen(algorithms[a].prefix);
		struct digest parsed = {.algorithm = (uint8_t)a};

		if (text.len != prefix + 2 * algorithms[a].bytes ||
		    memcmp(text.ptr, algorithms[a].prefix, prefix) != 0)
			continue;
		if (!hex_decode(str_skip(text, prefix), parsed.bytes))
			break;
		*out = parsed;
		return 0;
	}
	return err_set(err, ERR_INVALID, "not a sha256 or sha512 digest: " STR_FMT, STR_ARG(text));
}

const char *digest_format(const struct digest *digest, char text[static DIGEST_TEXT_MAX])
{
	const size_t prefix = strlen(algorithms[digest->algorithm].prefix);

	memcpy(text, algorithms[digest->algorithm].prefix, prefix);
	(void)hex_encode(digest->bytes, algorithms[digest->algorithm].bytes, text + prefix);
	return text;
}

void hasher_init_as(struct hasher *hasher, enum digest_algorithm algorithm)
{
	hasher->algorithm = (uint8_t)algorithm;
	hasher->md = EVP_MD_CTX_new();
	if (!hasher->md || EVP_DigestInit_ex(hasher->md, algorithms[algorithm].type(), NULL) != 1)
		abort();
}

void hasher_init(struct hasher *hasher)
{
	hasher_init_as(hasher, DIGEST_SHA256);
}

void hasher_add(struct hasher *hasher, struct str bytes)
{
	(void)EVP_DigestUpdate(hasher->md, bytes.ptr, bytes.len);
}

void hasher_final(struct hasher *hasher, struct digest *out)
{
	*out = (struct digest){.algorithm = hasher->algorithm};
	(void)EVP_DigestFinal_ex(hasher->md, out->bytes, NULL);
	if (EVP_DigestInit_ex(hasher->md, NULL, NULL) != 1)
		abort();
}

void hasher_peek(const struct hasher *hasher, struct digest *out)
{
	AUTO(md) EVP_MD_CTX *copy = EVP_MD_CTX_new();

	*out = (struct digest){.algorithm = hasher->algorithm};
	if (!copy || EVP_MD_CTX_copy_ex(copy, hasher->md) != 1)
		abort();
	(void)EVP_DigestFinal_ex(copy, out->bytes, NULL);
}

void hasher_done(struct hasher *hasher)
{
	EVP_MD_CTX_free(hasher->md);
	hasher->md = NULL;
}

/* EVP looks its algorithm up each time, which takes longer than a short text does. */
void digest_of(struct str bytes, struct digest *out)
{
	SHA256_CTX ctx;

	*out = (struct digest){.algorithm = DIGEST_SHA256};
	(void)SHA256_Init(&ctx);
	(void)SHA256_Update(&ctx, bytes.ptr, bytes.len);
	(void)SHA256_Final(out->bytes, &ctx);
}

bool digest_is_of(const struct digest *digest, struct str bytes)
{
	AUTO(hasher) struct hasher hasher = {0};
	struct digest found;

	if (digest->algorithm == DIGEST_SHA256) {
		digest_of(bytes, &found);
		return digest_equal(digest, &found);
	}
	hasher_init_as(&hasher, digest->algorithm);
	hasher_add(&hasher, bytes);
	hasher_final(&hasher, &found);
	return digest_equal(digest, &found);
}

const char *digest_hex(const struct digest *digest, char text[static DIGEST_HEX_MAX])
{
	char whole[DIGEST_TEXT_MAX];

	assert(digest->algorithm == DIGEST_SHA256);
	digest_format(digest, whole);
	memcpy(text, whole + strlen("sha256:"), DIGEST_HEX_MAX);
	return text;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
	return a->algorithm == b->algorithm && memcmp(a->bytes, b->bytes, DIGEST_BYTES_MAX) == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprint.c - GMAC, and where its key lies.
 *
 *	table    key            value
 *	store    "fingerprint"  key: hex
 */
#include "layers/fingerprint.h"

#include "layers/base/hex.h"
#include "layers/meta.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <sys/random.h>

#define STORE_TABLE "store"

DEFINE_AUTO(mac, EVP_MAC *, EVP_MAC_free);

void fingerprinter_init(struct fingerprinter *printer, const struct fingerprint_key *key)
{
	char cipher[] = "AES-128-GCM";
	unsigned char nonce[12] = {0};
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, cipher, 0),
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_IV, nonce, sizeof(nonce)),
		OSSL_PARAM_construct_end(),
	};
	AUTO(mac) EVP_MAC *gmac = EVP_MAC_fetch(NULL, "GMAC", NULL);

	printer->mac = gmac ? EVP_MAC_CTX_new(gmac) : NULL;
	if (!printer->mac ||
	    EVP_MAC_init(printer->mac, key->bytes, sizeof(key->bytes), params) != 1)
		abort();
}

void fingerprinter_add(struct fingerprinter *printer, struct str bytes)
{
	if (EVP_MAC_update(printer->mac, (const unsigned char *)bytes.ptr, bytes.len) != 1)
		abort();
}

void fingerprinter_final(struct fingerprinter *printer, struct fingerprint *out)
{
	size_t len = 0;

	if (EVP_MAC_final(printer->mac, out->bytes, &len, sizeof(out->bytes)) != 1 ||
	    len != sizeof(out->bytes))
		abort();
}

void fingerprinter_done(struct fingerprinter *printer)
{
	EVP_MAC_CTX_free(printer->mac);
	printer->mac = NULL;
}

void fingerprint_of(const struct fingerprint_key *key, struct str bytes, struct fingerprint *out)
{
	AUTO(fingerprinter) struct fingerprinter printer;

	fingerprinter_init(&printer, key);
	fingerprinter_add(&printer, bytes);
	fingerprinter_final(&printer, out);
}

/* 1 it was made before, 0 not yet, -1. */
static int fingerprint_find_key(struct meta *meta, struct fingerprint_key *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	struct str hex;
	int found = meta_get(meta, STORE_TABLE, STR("fingerprint"), &record, err);

	if (found <= 0)
		return found;
	if (json_need_string(record, "store.fingerprint", "key", &hex, err) < 0)
		return -1;
	if (hex.len != 2 * sizeof(out->bytes) || !hex_decode(hex, out->bytes))
		return err_set(err, ERR_CORRUPT, "the store's fingerprint key is damaged");
	return 1;
}

static int fingerprint_make_key(struct store *store, struct fingerprint_key *out, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	AUTO(meta) struct meta *meta = NULL;
	char hex[2 * sizeof(out->bytes) + 1];
	int found;

	if (meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	found = fingerprint_find_key(meta, out, err); /* somebody else may have been first */
	if (found != 0)
		return found < 0 ? -1 : 0;
	if (getrandom(out->bytes, sizeof(out->bytes), 0) != sizeof(out->bytes))
		return err_os(err, errno, "get random bytes");
	record = json_pack("{s:i, s:s}", "v", 1, "key",
			   hex_encode(out->bytes, sizeof(out->bytes), hex));
	if (meta_put(meta, STORE_TABLE, STR("fingerprint"), record, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

int fingerprint_key(struct store *store, struct fingerprint_key *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = fingerprint_find_key(meta, out, err);
	if (found != 0)
		return found < 0 ? -1 : 0;
	meta_abort(steal_ptr(&meta));
	return fingerprint_make_key(store, out, err);
}

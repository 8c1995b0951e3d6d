/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access_token.h"

#include "layers/base64.h"
#include "layers/mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>

#define ACCESS_TOKEN_DOMAIN STR("access token")
#define ACCESS_TOKEN_MAC ((size_t)32)
#define ACCESS_TOKEN_BYTES_MAX (ACCESS_TOKEN_MAC + ACCESS_TOKEN_CLAIM_MAX)
#define ACCESS_TOKEN_CODED(bytes) (((bytes) + 2) / 3 * 4)

/* The claim's text, which fits. */
static char *access_token_claim(const struct access_token *token)
{
	AUTO(json) json_t *scopes = json_copy(token->scopes);
	AUTO(json)
	json_t *claim = json_pack("{s:s, s:I, s:O}", "of", token->of, "until",
				  (json_int_t)token->until_ms, "scopes", scopes);
	char *text = json_dumps(claim, JSON_COMPACT);

	while (text && strlen(text) > ACCESS_TOKEN_CLAIM_MAX) {
		free(text);
		(void)json_array_remove(scopes, json_array_size(scopes) - 1);
		text = json_dumps(claim, JSON_COMPACT);
	}
	if (!text)
		abort();
	return text;
}

int access_token_make(struct store *store, const struct access_token *token, struct buf *out,
		      struct err *err)
{
	unsigned char coded[ACCESS_TOKEN_CODED(ACCESS_TOKEN_BYTES_MAX) + 1];
	unsigned char bytes[ACCESS_TOKEN_BYTES_MAX];
	auto_free char *text = access_token_claim(token);
	struct str claim = str_of(text);
	struct digest mac;

	if (mac_of(store, ACCESS_TOKEN_DOMAIN, claim, &mac, err) < 0)
		return -1;
	memcpy(bytes, mac.bytes, ACCESS_TOKEN_MAC);
	memcpy(bytes + ACCESS_TOKEN_MAC, claim.ptr, claim.len);
	(void)EVP_EncodeBlock(coded, bytes, (int)(ACCESS_TOKEN_MAC + claim.len));
	return buf_addf(out, err, ACCESS_TOKEN_PREFIX "%s", (const char *)coded);
}

bool access_token_is(struct str text)
{
	return str_starts(text, STR(ACCESS_TOKEN_PREFIX));
}

static int access_token_read(struct str claim, struct access_token *out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	struct str of = {0};

	if (json_parse(claim, ACCESS_TOKEN_CLAIM_MAX, &document, err) < 0 ||
	    json_need_string(document, "", "of", &of, err) < 0 ||
	    json_need_int(document, "", "until", &out->until_ms, err) < 0)
		return -1;
	(void)snprintf(out->of, sizeof(out->of), STR_FMT, STR_ARG(of));
	out->scopes = json_incref(json_object_get(document, "scopes"));
	return 1;
}

int access_token_open(struct store *store, struct str text, struct access_token *out,
		      struct err *err)
{
	char bytes[BASE64_ROOM(ACCESS_TOKEN_CODED(ACCESS_TOKEN_BYTES_MAX))];
	struct digest mac;
	struct str claim;
	size_t len;

	if (!access_token_is(text))
		return 0;
	text = str_skip(text, sizeof(ACCESS_TOKEN_PREFIX) - 1);
	if (text.len > ACCESS_TOKEN_CODED(ACCESS_TOKEN_BYTES_MAX) ||
	    !base64_decode(text, bytes, &len) || len <= ACCESS_TOKEN_MAC)
		return 0;
	claim = (struct str){bytes + ACCESS_TOKEN_MAC, len - ACCESS_TOKEN_MAC};
	if (mac_of(store, ACCESS_TOKEN_DOMAIN, claim, &mac, err) < 0)
		return -1;
	if (CRYPTO_memcmp(mac.bytes, bytes, ACCESS_TOKEN_MAC) != 0)
		return 0;
	return access_token_read(claim, out, err);
}

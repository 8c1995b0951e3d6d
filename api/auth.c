/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"

#include "layers/base/lock.h"
#include "layers/digest.h"

#include <openssl/crypto.h>
#include <strings.h>

#define AUTH_REMEMBERED 64 /* tokens in use at one time; others are looked up */

struct memory {
	struct lock lock;
	/* guarded by lock: */
	struct digest hash;
	uint64_t generation; /* of the store; 0 for nothing */
	struct identity identity;
};

struct auth {
	struct store *store;
	struct memory memories[AUTH_REMEMBERED]; /* by the first byte of the hash */
};

struct auth *auth_new(struct store *store)
{
	struct auth *auth = calloc(1, sizeof(*auth));

	if (!auth)
		abort();
	auth->store = store;
	for (size_t i = 0; i < AUTH_REMEMBERED; i++)
		auth->memories[i].lock = (struct lock)LOCK_INIT;
	return auth;
}

void auth_free(struct auth *auth)
{
	free(auth);
}

bool auth_parse(struct str field, struct str *out_token)
{
	const struct str scheme = STR("Bearer");

	if (field.len <= scheme.len || strncasecmp(field.ptr, scheme.ptr, scheme.len) != 0 ||
	    field.ptr[scheme.len] != ' ')
		return false;
	field = str_skip(field, scheme.len);
	while (field.len > 0 && *field.ptr == ' ')
		field = str_skip(field, 1);
	while (field.len > 0 && field.ptr[field.len - 1] == ' ')
		field.len--;
	*out_token = field;
	return field.len > 0;
}

static bool auth_remembers(struct memory *memory, const struct digest *hash, uint64_t generation,
			   struct identity *out)
{
	bool hit;

	lock_take(&memory->lock);
	hit = memory->generation == generation &&
	      CRYPTO_memcmp(memory->hash.bytes, hash->bytes, 32) == 0;
	if (hit)
		*out = memory->identity;
	lock_drop(&memory->lock);
	return hit;
}

static void auth_remember(struct memory *memory, const struct digest *hash, uint64_t generation,
			  const struct identity *identity)
{
	lock_take(&memory->lock);
	memory->hash = *hash;
	memory->generation = generation;
	memory->identity = *identity;
	lock_drop(&memory->lock);
}

static int auth_look_up(struct auth *auth, struct str secret, struct identity *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_token struct token token = TOKEN_INIT;
	int found;

	if (meta_begin(auth->store, META_READ, &meta, err) < 0)
		return -1;
	found = token_find(meta, secret, &token, err);
	if (found == 0)
		return err_set(err, ERR_UNAUTHORIZED, "the token is unknown, or was revoked");
	if (found < 0)
		return -1;
	memcpy(out->token_id, token.id, sizeof(out->token_id));
	out->level = token.level;
	return 0;
}

int auth_check(struct auth *auth, const char *authorization, struct identity *out, struct err *err)
{
	uint64_t generation = meta_generation(auth->store);
	struct memory *memory;
	struct digest hash;
	struct str secret;

	if (!authorization || !auth_parse(str_of(authorization), &secret))
		return err_set(err, ERR_UNAUTHORIZED,
			       "a token is needed, as in Authorization: Bearer hth_...");
	digest_of(secret, &hash);
	memory = &auth->memories[hash.bytes[0] % AUTH_REMEMBERED];
	if (auth_remembers(memory, &hash, generation, out))
		return 0;
	if (auth_look_up(auth, secret, out, err) < 0)
		return -1;
	auth_remember(memory, &hash, generation, out);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"

#include "api/access_token.h"
#include "layers/base/clock.h"
#include "layers/base/lock.h"
#include "layers/base64.h"
#include "layers/digest.h"

#include <openssl/crypto.h>
#include <strings.h>

#define AUTH_REMEMBERED 64 /* tokens in use at one time; others are looked up */

struct memory {
	struct lock lock;
	/* guarded by lock: */
	struct digest hash;
	uint64_t generation; /* of the store; 0 for nothing */
	struct visitor visitor;
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
	for (size_t i = 0; auth && i < AUTH_REMEMBERED; i++)
		auto_visitor_release(&auth->memories[i].visitor);
	free(auth);
}

static bool auth_parse_scheme(struct str field, struct str scheme, struct str *out_token)
{
	if (field.len <= scheme.len || strncasecmp(field.ptr, scheme.ptr, scheme.len) != 0 ||
	    field.ptr[scheme.len] != ' ')
		return false;
	*out_token = str_trim(str_skip(field, scheme.len));
	return out_token->len > 0;
}

bool auth_parse(struct str field, struct str *out_token)
{
	return auth_parse_scheme(field, STR("Bearer"), out_token);
}

static void auth_copy(const struct visitor *from, struct visitor *out)
{
	*out = *from;
	(void)scopes_ref(out->scopes);
	(void)scopes_ref(out->asked);
}

static void auth_swap(struct visitor *a, struct visitor *b)
{
	const struct visitor c = *a;

	*a = *b;
	*b = c;
}

static bool auth_remembers(struct memory *memory, const struct digest *hash, uint64_t generation,
			   struct visitor *out)
{
	bool hit;

	lock_take(&memory->lock);
	hit = memory->generation == generation &&
	      CRYPTO_memcmp(memory->hash.bytes, hash->bytes, 32) == 0;
	if (hit)
		auth_copy(&memory->visitor, out);
	lock_drop(&memory->lock);
	return hit;
}

static void auth_remember(struct memory *memory, const struct digest *hash, uint64_t generation,
			  const struct visitor *visitor)
{
	auto_visitor struct visitor other; /* what was remembered before */

	auth_copy(visitor, &other);
	lock_take(&memory->lock);
	memory->hash = *hash;
	memory->generation = generation;
	auth_swap(&memory->visitor, &other);
	lock_drop(&memory->lock);
}

static int auth_look_up(struct auth *auth, struct str key, struct visitor *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_token struct token token = TOKEN_INIT;
	int found;

	if (meta_begin(auth->store, META_READ, &meta, err) < 0)
		return -1;
	found = token_find_key(meta, key, &token, err);
	if (found == 0)
		return err_set(err, ERR_UNAUTHORIZED, "the token is unknown, or was revoked");
	if (found < 0)
		return -1;
	out->who.level = token.level;
	out->scopes = scopes_new(json_object_get(token.record, "scopes"));
	memcpy(out->who.token_id, token.id, sizeof(out->who.token_id));
	return 0;
}

/* What its parent allows, and what it was asked for. */
static int auth_open_access(struct auth *auth, struct str secret, struct visitor *out,
			    struct err *err)
{
	auto_access_token struct access_token token = ACCESS_TOKEN_INIT;
	int found = access_token_open(auth->store, secret, &token, err);

	if (found == 0)
		return err_set(err, ERR_UNAUTHORIZED, "the token is none of this registry");
	if (found < 0 || (token.of[0] && auth_look_up(auth, str_of(token.of), out, err) < 0))
		return -1;
	out->narrowed = true;
	out->asked = scopes_new(token.scopes);
	out->until_ms = token.until_ms;
	return 0;
}

static int auth_open(struct auth *auth, struct str secret, struct visitor *out, struct err *err)
{
	char key[DIGEST_HEX_MAX];

	if (access_token_is(secret))
		return auth_open_access(auth, secret, out, err);
	if (!token_is_secret(secret))
		return err_set(err, ERR_UNAUTHORIZED, "the token is unknown, or was revoked");
	token_make_key(secret, key);
	return auth_look_up(auth, str_of(key), out, err);
}

static int auth_check_time(const struct visitor *visitor, struct err *err)
{
	if (!visitor->narrowed || clock_now_ms() < visitor->until_ms)
		return 0;
	return err_set(err, ERR_UNAUTHORIZED, "the token's time is over");
}

static int auth_find(struct auth *auth, struct str secret, struct visitor *out, struct err *err)
{
	uint64_t generation = meta_generation(auth->store);
	struct memory *memory;
	struct digest hash;

	digest_of(secret, &hash);
	memory = &auth->memories[hash.bytes[0] % AUTH_REMEMBERED];
	if (!auth_remembers(memory, &hash, generation, out)) {
		if (auth_open(auth, secret, out, err) < 0)
			return -1;
		auth_remember(memory, &hash, generation, out);
	}
	return auth_check_time(out, err);
}

int auth_check(struct auth *auth, const char *authorization, struct identity *out, struct err *err)
{
	auto_visitor struct visitor visitor = {0};
	struct str secret;

	if (!authorization || !auth_parse(str_of(authorization), &secret) ||
	    access_token_is(secret))
		return err_set(err, ERR_UNAUTHORIZED,
			       "a token is needed, as in Authorization: Bearer hth_...");
	if (auth_find(auth, secret, &visitor, err) < 0)
		return -1;
	*out = visitor.who;
	return 0;
}

/* "USER:PASSWORD" out of base64; it lies in `text`. */
static bool auth_decode(struct str coded, char text[static AUTH_BASIC_MAX], struct str *out)
{
	size_t len;

	if (coded.len > AUTH_BASIC_MAX || !base64_decode(coded, text, &len))
		return false;
	*out = (struct str){text, len};
	return len > 0;
}

/* The password; it lies in `text`. 0: it and the name are empty. */
static int auth_read_basic(struct str coded, char text[static AUTH_BASIC_MAX], struct str *out,
			   struct err *err)
{
	struct str user;

	if (!auth_decode(coded, text, out) || !str_cut(out, ':', &user) || !out->ptr)
		return err_set(err, ERR_UNAUTHORIZED,
			       "expected a user's name and a token as the password");
	return user.len + out->len > 0;
}

/* The token that a field shows: 1, 0 there is none, -1. */
static int auth_read(const char *authorization, char text[static AUTH_BASIC_MAX], struct str *out,
		     struct err *err)
{
	struct str coded;

	if (!authorization)
		return 0;
	if (auth_parse(str_of(authorization), out))
		return 1;
	if (auth_parse_scheme(str_of(authorization), STR("Basic"), &coded))
		return auth_read_basic(coded, text, out, err);
	return err_set(err, ERR_UNAUTHORIZED,
		       "a token is needed, as in Authorization: Bearer hth_..., or as the password "
		       "of any user");
}

int auth_check_visitor(struct auth *auth, const char *authorization, struct visitor *out,
		       struct err *err)
{
	char text[AUTH_BASIC_MAX];
	struct str secret;
	int found = auth_read(authorization, text, &secret, err);

	*out = (struct visitor){.until_ms = 0};
	if (found == 1)
		found = auth_find(auth, secret, out, err);
	OPENSSL_cleanse(text, sizeof(text));
	if (found < 0)
		auto_visitor_release(out);
	return found;
}

int auth_check_key(struct auth *auth, struct str secret, char out[static DIGEST_HEX_MAX],
		   struct err *err)
{
	auto_visitor struct visitor visitor = {.until_ms = 0};

	if (access_token_is(secret))
		return err_set(err, ERR_UNAUTHORIZED, "this takes a token that was made by hand");
	if (auth_find(auth, secret, &visitor, err) < 0)
		return -1;
	token_make_key(secret, out);
	return 0;
}

int auth_find_key(struct auth *auth, const char *authorization, char out[static DIGEST_HEX_MAX],
		  struct err *err)
{
	char text[AUTH_BASIC_MAX];
	struct str secret;
	int found = auth_read(authorization, text, &secret, err);

	out[0] = '\0';
	if (found == 1)
		found = auth_check_key(auth, secret, out, err);
	OPENSSL_cleanse(text, sizeof(text));
	return found;
}

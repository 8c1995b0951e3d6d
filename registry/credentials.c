/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/credentials.h"

#include "layers/base64.h"
#include "registry/hub.h"

#include <openssl/evp.h>
#include <string.h>

/* A key's host, and the path that it is for: "" for all. */
static struct str credentials_key_host(struct str key, struct str *out_path)
{
	const char *scheme = memmem(key.ptr, key.len, "://", 3);
	struct str host;
	struct str path;

	if (scheme) {
		key.len -= (size_t)(scheme + 3 - key.ptr);
		key.ptr = scheme + 3;
	}
	path = key;
	if (!str_cut(&path, '/', &host))
		return key;
	while (path.len > 0 && path.ptr[path.len - 1] == '/')
		path.len--;
	/* The protocol's versions are no repositories. */
	if (str_equal(path, STR("v1")) || str_equal(path, STR("v2")))
		path = STR("");
	*out_path = path;
	return host;
}

/* Which repository is asked about. */
struct credentials_place {
	struct str host;
	struct str path;
};

static bool credentials_fits(const struct credentials_place *place, struct str host,
			     struct str path)
{
	if (!str_equal(host, place->host) && !(hub_is_host(host) && hub_is_host(place->host)))
		return false;
	return path.len == 0 || (str_starts(place->path, path) &&
				 (place->path.len == path.len || place->path.ptr[path.len] == '/'));
}

/* Whether an entry says anything; a helper's name or what auths holds. */
static bool credentials_says(const json_t *entry)
{
	return json_string_length(entry) > 0 ||
	       json_string_length(json_object_get(entry, "auth")) > 0 ||
	       json_string_length(json_object_get(entry, "identitytoken")) > 0 ||
	       json_string_length(json_object_get(entry, "registrytoken")) > 0 ||
	       json_string_length(json_object_get(entry, "password")) > 0;
}

/* The entry of the longest path, of those that say something; else any that fits, or NULL. */
static const json_t *credentials_entry(const json_t *entries, const struct credentials_place *place)
{
	const json_t *best = NULL;
	size_t best_len = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)drop_const(entries), key, value)
	{
		struct str path = STR("");
		struct str host = credentials_key_host(str_of(key), &path);
		bool better = !best || (credentials_says(value) &&
					(!credentials_says(best) || path.len >= best_len));

		if (!credentials_fits(place, host, path) || !better)
			continue;
		best = value;
		best_len = path.len;
	}
	return best;
}

/* The bytes of base64, ended by a NUL; false for what is none. */
static bool credentials_decode(struct str text, char out[static CREDENTIALS_MAX])
{
	size_t len;

	if (BASE64_ROOM(text.len) >= CREDENTIALS_MAX || !base64_decode(text, out, &len))
		return false;
	out[len] = '\0';
	return true;
}

/* "dXNlcjpwYXNz" is "user:pass". */
static int credentials_split(struct str auth, struct credentials *out, struct err *err)
{
	char plain[CREDENTIALS_MAX];
	char *colon = credentials_decode(auth, plain) ? strchr(plain, ':') : NULL;
	int result;

	if (colon) {
		*colon = '\0';
		(void)snprintf(out->user, sizeof(out->user), "%s", plain);
		result = secret_put(&out->password, str_of(colon + 1), err);
	} else {
		result = err_set(err, ERR_INVALID, "auth: not base64 of user:password");
	}
	explicit_bzero(plain, sizeof(plain));
	return result;
}

/* A name that becomes part of a program's: letters, digits, and no way out of a directory. */
static int credentials_note_helper(const json_t *name, struct credentials *out, struct err *err)
{
	struct str text = json_str(name);

	for (size_t i = 0; i < text.len; i++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    text.ptr[i]) ||
		    text.ptr[i] == '\0')
			return err_set(err, ERR_INVALID, "the name of a helper has odd characters");
	}
	if (text.len >= sizeof(out->helper))
		return err_set(err, ERR_INVALID, "the name of a helper is too long");
	memcpy(out->helper, text.ptr, text.len);
	out->helper[text.len] = '\0';
	return 1;
}

static int credentials_take_token(const char *user, struct str token, struct credentials *out,
				  struct err *err)
{
	(void)snprintf(out->user, sizeof(out->user), "%s", user);
	return secret_put(&out->password, token, err) < 0 ? -1 : 1;
}

/* {"username", "password"}, as clusters write it. */
static int credentials_take_plain(const json_t *entry, struct credentials *out, struct err *err)
{
	struct str user;
	struct str password;

	if (json_need_string(entry, "auths", "username", &user, err) < 0 ||
	    json_need_string(entry, "auths", "password", &password, err) < 0)
		return -1;
	if (user.len >= sizeof(out->user) || memchr(user.ptr, '\0', user.len))
		return err_set(err, ERR_INVALID, "username: too long, or no text");
	(void)snprintf(out->user, sizeof(out->user), STR_FMT, STR_ARG(user));
	return secret_put(&out->password, password, err) < 0 ? -1 : 1;
}

static int credentials_take(const json_t *entry, struct credentials *out, struct err *err)
{
	struct str auth = {0};
	struct str identity = {0};
	struct str bearer = {0};

	if (json_get_string(entry, "auths", "auth", &auth, err) < 0 ||
	    json_get_string(entry, "auths", "identitytoken", &identity, err) < 0 ||
	    json_get_string(entry, "auths", "registrytoken", &bearer, err) < 0)
		return -1;
	if (bearer.len > 0)
		return credentials_take_token(CREDENTIALS_BEARER, bearer, out, err);
	if (identity.len > 0)
		return credentials_take_token(CREDENTIALS_IDENTITY, identity, out, err);
	if (auth.len == 0)
		return credentials_take_plain(entry, out, err);
	return credentials_split(auth, out, err) < 0 ? -1 : 1;
}

/* The parser's message quotes where it failed, which may be a password. */
static int credentials_load(struct str text, json_t **out, struct err *err)
{
	AUTO(json) json_t *document = NULL;

	if (json_parse(text, CREDENTIALS_FILE_MAX, &document, err) < 0)
		return err->kind == ERR_INVALID ? err_set(err, ERR_INVALID, "it is not JSON") : -1;
	if (!json_is_object(document))
		return err_set(err, ERR_INVALID, "it is not a JSON object");
	*out = steal_ptr(&document);
	return 0;
}

int credentials_find(struct str text, struct str host, struct str path, struct credentials *out,
		     struct err *err)
{
	const struct credentials_place place = {host, path};
	AUTO(json) json_t *document = NULL;
	json_t *auths = NULL;
	const json_t *entry;
	const json_t *helper;

	if (credentials_load(text, &document, err) < 0 ||
	    json_get_object(document, "", "auths", &auths, err) < 0)
		return -1;
	helper = credentials_entry(json_object_get(document, "credHelpers"), &place);
	if (json_string_length(helper) > 0) /* it goes before auths, which need not list the host */
		return credentials_note_helper(helper, out, err);
	entry = auths ? credentials_entry(auths, &place) : NULL;
	if (entry && credentials_says(entry))
		return credentials_take(entry, out, err);
	helper = json_object_get(document, "credsStore");
	if (json_string_length(helper) == 0)
		return 0;
	out->guessed = !entry; /* most leave an empty entry for each host, a cloud's does not */
	return credentials_note_helper(helper, out, err);
}

int credentials_keeper(struct str text, struct str host, char out[static CREDENTIALS_HELPER_MAX],
		       struct err *err)
{
	const struct credentials_place place = {host, STR("")};
	struct credentials found = {0};
	AUTO(json) json_t *document = NULL;
	const json_t *helper;

	if (text.len == 0)
		return 0;
	if (credentials_load(text, &document, err) < 0)
		return -1;
	helper = credentials_entry(json_object_get(document, "credHelpers"), &place);
	if (json_string_length(helper) == 0)
		helper = json_object_get(document, "credsStore");
	if (json_string_length(helper) == 0)
		return 0;
	if (credentials_note_helper(helper, &found, err) < 0)
		return -1;
	memcpy(out, found.helper, sizeof(found.helper));
	return 1;
}

/* Forget a host in all its spellings, but not what is for a path of it: how many there were. */
static size_t credentials_forget(json_t *auths, struct str host)
{
	size_t count = 0;
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(auths, next, key, value)
	{
		const struct credentials_place place = {host, STR("")};
		struct str path = STR("");
		struct str its = credentials_key_host(str_of(key), &path);

		if (path.len > 0 || !credentials_fits(&place, its, path))
			continue;
		(void)json_object_del(auths, key);
		count++;
	}
	return count;
}

/* {"auth": "dXNlcjpwYXNz"} */
static int credentials_entry_new(struct str user, const struct secret *password, json_t **out,
				 struct err *err)
{
	auto_buf struct buf plain = BUF_WIPED(CREDENTIALS_MAX - 1); /* what can be read again */
	char text[2 * CREDENTIALS_MAX];
	int n;

	*out = json_object();
	if (secret_is_empty(password))
		return 0;
	if (buf_add(&plain, user, err) < 0 || buf_add(&plain, STR(":"), err) < 0 ||
	    buf_add(&plain, secret_bytes(password), err) < 0)
		return err_ctx(err, "user and password");
	n = EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)plain.ptr,
			    (int)plain.len);
	(void)json_object_set_new(*out, "auth", json_stringn(text, (size_t)n));
	explicit_bzero(text, sizeof(text));
	return 0;
}

/* In the order in which it was written. */
static int credentials_format(const json_t *document, struct buf *out, struct err *err)
{
	char *text = json_dumps(document, JSON_INDENT(4));
	int result;

	if (!text)
		abort();
	buf_clear(out);
	result = buf_addf(out, err, "%s\n", text);
	explicit_bzero(text, strlen(text));
	free(text);
	return result;
}

int credentials_put(struct str text, struct str host, struct str user,
		    const struct secret *password, struct buf *out, struct err *err)
{
	AUTO(json) json_t *document = text.len == 0 ? json_object() : NULL;
	AUTO(json) json_t *entry = NULL;
	struct str key = hub_login_key(host);
	json_t *auths = NULL;
	int found;

	if (!document && credentials_load(text, &document, err) < 0)
		return -1;
	found = json_get_object(document, "", "auths", &auths, err);
	if (found < 0)
		return -1;
	if (memchr(user.ptr, ':', user.len) || memchr(user.ptr, '\0', user.len))
		return err_set(err, ERR_INVALID, "a user's name has no colon");
	if (credentials_entry_new(user, password, &entry, err) < 0)
		return -1;
	if (found == 0) {
		auths = json_object();
		json_set(document, "auths", auths);
	}
	(void)credentials_forget(auths, host);
	if (json_object_setn(auths, key.ptr, key.len, entry) < 0)
		abort();
	return credentials_format(document, out, err);
}

int credentials_del(struct str text, struct str host, struct buf *out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	json_t *auths = NULL;

	if (text.len == 0)
		return 0;
	if (credentials_load(text, &document, err) < 0 ||
	    json_get_object(document, "", "auths", &auths, err) < 0)
		return -1;
	if (credentials_forget(auths, host) == 0)
		return 0;
	return credentials_format(document, out, err) < 0 ? -1 : 1;
}

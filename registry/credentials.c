/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/credentials.h"

#include <openssl/evp.h>
#include <string.h>

static bool credentials_is_hub(struct str host)
{
	return str_equal(host, STR("docker.io")) || str_equal(host, STR("index.docker.io")) ||
	       str_equal(host, STR("registry-1.docker.io"));
}

/* The host part of a key. */
static struct str credentials_key_host(struct str key)
{
	const char *scheme = memmem(key.ptr, key.len, "://", 3);
	const char *slash;

	if (scheme) {
		key.len -= (size_t)(scheme + 3 - key.ptr);
		key.ptr = scheme + 3;
	}
	slash = memchr(key.ptr, '/', key.len);
	if (slash)
		key.len = (size_t)(slash - key.ptr);
	return key;
}

static const json_t *credentials_entry(const json_t *auths, struct str host)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)drop_const(auths), key, value)
	{
		struct str key_host = credentials_key_host(str_of(key));

		if (str_equal(key_host, host) ||
		    (credentials_is_hub(key_host) && credentials_is_hub(host)))
			return value;
	}
	return NULL;
}

/* The bytes of base64, ended by a NUL; false for what is none. */
static bool credentials_decode(struct str text, char out[static CREDENTIALS_MAX])
{
	int n;

	if (text.len == 0 || text.len % 4 != 0 || text.len / 4 * 3 >= CREDENTIALS_MAX)
		return false;
	n = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)text.ptr, (int)text.len);
	if (n < 0)
		return false;
	for (size_t i = text.len; i > 0 && text.ptr[i - 1] == '='; i--)
		n--;
	out[n] = '\0';
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

static int credentials_refuse_helper(struct str host, const json_t *helper, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED,
		       "credentials for " STR_FMT " are with the helper %s, which is not "
		       "asked yet: docker login without a helper stores them in the file",
		       STR_ARG(host), json_string_value(helper));
}

int credentials_find(struct str text, struct str host, struct credentials *out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	json_t *auths = NULL;
	const json_t *entry;
	const json_t *helper;
	struct str auth = {0};
	int found;

	/* The parser's own words cite what it stumbled over, which may be a password. */
	if (json_parse(text, CREDENTIALS_FILE_MAX, &document, err) < 0)
		return err->kind == ERR_INVALID ? err_set(err, ERR_INVALID, "it is not JSON") : -1;
	if (json_get_object(document, "", "auths", &auths, err) < 0)
		return -1;
	helper = credentials_entry(json_object_get(document, "credHelpers"), host);
	if (json_string_length(helper) > 0) /* it goes before auths, which need not list the host */
		return credentials_refuse_helper(host, helper, err);
	entry = auths ? credentials_entry(auths, host) : NULL;
	found = entry ? json_get_string(entry, "auths", "auth", &auth, err) : 0;
	if (found < 0)
		return -1;
	if (found == 1 && auth.len > 0)
		return credentials_split(auth, out, err) < 0 ? -1 : 1;
	helper = json_object_get(document, "credsStore");
	if (entry && json_string_length(helper) > 0) /* it leaves an empty entry for each host */
		return credentials_refuse_helper(host, helper, err);
	return 0;
}

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

/* "dXNlcjpwYXNz" is "user:pass". */
static int credentials_decode(struct str auth, struct credentials *out, struct err *err)
{
	char plain[CREDENTIALS_MAX];
	char *colon;
	int n;

	if (auth.len == 0 || auth.len % 4 != 0 || auth.len / 4 * 3 >= sizeof(plain))
		return err_set(err, ERR_INVALID, "auth: not base64 of user:password");
	n = EVP_DecodeBlock((unsigned char *)plain, (const unsigned char *)auth.ptr, (int)auth.len);
	if (n < 0)
		return err_set(err, ERR_INVALID, "auth: not base64 of user:password");
	for (size_t i = auth.len; i > 0 && auth.ptr[i - 1] == '='; i--)
		n--;
	plain[n] = '\0';
	colon = strchr(plain, ':');
	if (!colon)
		return err_set(err, ERR_INVALID, "auth: not base64 of user:password");
	*colon = '\0';
	(void)snprintf(out->user, sizeof(out->user), "%s", plain);
	(void)snprintf(out->password, sizeof(out->password), "%s", colon + 1);
	return 0;
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

	if (json_parse(text, CREDENTIALS_FILE_MAX, &document, err) < 0 ||
	    json_get_object(document, "", "auths", &auths, err) < 0)
		return -1;
	helper = credentials_entry(json_object_get(document, "credHelpers"), host);
	if (json_string_length(helper) > 0) /* it goes before auths, which need not list the host */
		return credentials_refuse_helper(host, helper, err);
	entry = auths ? credentials_entry(auths, host) : NULL;
	found = entry ? json_get_string(entry, "auths", "auth", &auth, err) : 0;
	if (found < 0)
		return -1;
	if (found == 1 && auth.len > 0)
		return credentials_decode(auth, out, err) < 0 ? -1 : 1;
	helper = json_object_get(document, "credsStore");
	if (entry && json_string_length(helper) > 0) /* it leaves an empty entry for each host */
		return credentials_refuse_helper(host, helper, err);
	return 0;
}

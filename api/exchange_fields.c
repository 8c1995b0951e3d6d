/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_fields.c - what a request says beside its body. */
#include "api/exchange_priv.h"

#include <netinet/in.h>

/* Of IPv6 the first half, of which everybody may have the other as he likes. */
uint64_t exchange_read_origin(struct MHD_Connection *connection)
{
	const struct sockaddr *from =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
			->client_addr;
	const struct sockaddr_in *four = (const void *)from;
	const struct sockaddr_in6 *six = (const void *)from;
	const uint8_t *bytes = six->sin6_addr.s6_addr;

	if (from->sa_family == AF_INET)
		return http_topic((struct str){(const char *)&four->sin_addr, 4});
	if (from->sa_family != AF_INET6)
		return 0;
	if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		return http_topic((struct str){(const char *)bytes + 12, 4});
	return http_topic((struct str){(const char *)bytes, 8});
}

char *exchange_copy_path(const char *url)
{
	char *path = str_dup(str_of(url));
	size_t len = strlen(path);

	(void)http_unescape_path(path, &len); /* else it stays as it came, and names nothing */
	path[len] = '\0';
	return path;
}

struct fields_copy {
	struct http_field *fields; /* NULL while they are measured */
	char *text;
	size_t count;
	size_t bytes;
};

static struct str fields_add(struct fields_copy *copy, struct str bytes)
{
	char *at = copy->text + copy->bytes;

	copy->bytes += bytes.len + 1;
	if (!copy->fields)
		return bytes;
	if (bytes.len > 0)
		memcpy(at, bytes.ptr, bytes.len);
	at[bytes.len] = '\0';
	return (struct str){at, bytes.len};
}

static enum MHD_Result fields_take(void *cls, enum MHD_ValueKind kind, const char *key,
				   size_t key_size, const char *value, size_t value_size)
{
	struct fields_copy *copy = cls;
	struct http_field field = {
		.name = fields_add(copy, (struct str){key, key_size}),
		.value = fields_add(copy, (struct str){value, value ? value_size : 0}),
	};

	(void)kind;
	if (copy->fields)
		copy->fields[copy->count] = field;
	copy->count++;
	return MHD_YES;
}

struct http_field *exchange_copy_fields(struct MHD_Connection *connection, enum MHD_ValueKind kind,
					size_t *out_count)
{
	struct fields_copy copy = {0};

	(void)MHD_get_connection_values_n(connection, kind, fields_take, &copy);
	*out_count = copy.count;
	if (copy.count == 0)
		return NULL;
	copy.fields = malloc(copy.count * sizeof(*copy.fields) + copy.bytes);
	if (!copy.fields)
		abort();
	copy.text = (char *)(copy.fields + copy.count);
	copy.count = copy.bytes = 0;
	(void)MHD_get_connection_values_n(connection, kind, fields_take, &copy);
	return copy.fields;
}

static bool fields_unescape(struct str *text)
{
	char *at = drop_const(text->ptr);
	bool sound = http_unescape(at, &text->len, false);

	at[text->len] = '\0';
	return sound;
}

bool exchange_unescape_fields(struct http_field *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!fields_unescape(&fields[i].name) || !fields_unescape(&fields[i].value))
			return false;
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The image's passwd and group, and the user that is looked up: three parts cut at NULs. */
#include "sandbox/user.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str next_part(struct str *rest)
{
	const char *end = rest->len ? memchr(rest->ptr, '\0', rest->len) : NULL;
	struct str part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
	size_t skip = part.len + (end ? 1 : 0);

	rest->ptr += skip;
	rest->len -= skip;
	return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size};
	struct str text = next_part(&rest);
	struct str passwd = next_part(&rest);
	struct user user;
	struct err err;

	if (user_find(passwd, rest, text, &user, &err) < 0)
		return 0;
	assert(user.uid < 65536 && user.gid < 65536);
	assert(user.group_count <= USER_GROUPS_MAX);
	assert(user.home[0] == '/' && strlen(user.home) < sizeof(user.home));
	for (size_t i = 0; i < user.group_count; i++)
		assert(user.groups[i] < 65536);
	return 0;
}

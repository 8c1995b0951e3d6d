/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/secret.h"

#include <assert.h>

int secret_put(struct secret *secret, struct str bytes, struct err *err)
{
	struct buf copy = BUF_WIPED(SECRET_MAX);

	if (buf_add(&copy, bytes, err) < 0)
		return -1;
	secret_done(secret);
	secret->hidden = copy;
	return 0;
}

int secret_copy(struct secret *secret, const struct secret *from, struct err *err)
{
	return secret_put(secret, from ? buf_str(&from->hidden) : STR(""), err);
}

void secret_take(struct secret *secret, struct buf *bytes)
{
	assert(bytes->wiped);
	secret_done(secret);
	secret->hidden = *bytes;
	*bytes = BUF_WIPED(bytes->max);
}

bool secret_is_empty(const struct secret *secret)
{
	return !secret || secret->hidden.len == 0;
}

struct str secret_bytes(const struct secret *secret)
{
	return secret ? buf_str(&secret->hidden) : STR("");
}

const char *secret_reveal(const struct secret *secret)
{
	return secret_bytes(secret).ptr;
}

void secret_done(struct secret *secret)
{
	buf_done(&secret->hidden);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Property: every call takes something off the field, and values lie in the challenge. */
#include "registry/challenge_priv.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const struct challenge *challenge, struct str value)
{
	if (value.len > 0 && (value.ptr < challenge->storage ||
			      value.ptr + value.len > challenge->storage + CHALLENGE_TEXT_MAX))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str field = {(const char *)data, size};
	struct challenge challenge;
	size_t before = field.len + 1;

	while (challenge_next(&field, &challenge)) {
		if (field.len >= before)
			abort();
		before = field.len;
		check_inside(&challenge, challenge.realm);
		check_inside(&challenge, challenge.service);
		check_inside(&challenge, challenge.scope);
		check_inside(&challenge, challenge.error);
	}
	return 0;
}

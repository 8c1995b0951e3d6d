/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/ulid.h"

#include "layers/base/clock.h"

#include <assert.h>
#include <sys/random.h>

#define ULID_LEN (ULID_TEXT_MAX - 1)
#define ULID_TIME_LEN ((size_t)10)

static const char ulid_digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

static void ulid_make(int64_t now_ms, char text[static ULID_TEXT_MAX])
{
	uint64_t when = (uint64_t)now_ms;
	uint8_t random[ULID_LEN - ULID_TIME_LEN];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		abort();
	for (size_t i = ULID_TIME_LEN; i-- > 0; when >>= 5)
		text[i] = ulid_digits[when & 31];
	for (size_t i = 0; i < sizeof(random); i++)
		text[ULID_TIME_LEN + i] = ulid_digits[random[i] & 31];
	text[ULID_LEN] = '\0';
}

const char *ulid_new(char text[static ULID_TEXT_MAX])
{
	ulid_make(clock_now_ms(), text);
	return text;
}

static int ulid_value(char digit)
{
	const char *at = digit ? strchr(ulid_digits, digit) : NULL;

	return at ? (int)(at - ulid_digits) : -1;
}

bool ulid_is_valid(struct str text)
{
	if (text.len != ULID_LEN || text.ptr[0] > '7') /* 130 bits hold 128 */
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (ulid_value(text.ptr[i]) < 0)
			return false;
	}
	return true;
}

const char *ulid_after(struct str last, int64_t now_ms, char text[static ULID_TEXT_MAX])
{
	size_t at = ULID_LEN;

	ulid_make(now_ms, text);
	if (last.len == 0 || memcmp(text, last.ptr, ULID_TIME_LEN) > 0)
		return text;
	assert(ulid_is_valid(last));
	memcpy(text, last.ptr, ULID_LEN);
	while (at > 0 && text[at - 1] == 'z')
		text[--at] = '0';
	assert(at > 0); /* no clock of ours comes near the last one */
	text[at - 1] = ulid_digits[ulid_value(text[at - 1]) + 1];
	return text;
}

bool ulid_is_id(struct str prefix, struct str text)
{
	return str_starts(text, prefix) && ulid_is_valid(str_skip(text, prefix.len));
}

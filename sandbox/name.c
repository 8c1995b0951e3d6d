/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/name_priv.h"

#define NAME_LABEL_MAX ((size_t)63) /* RFC 1035, 2.3.4 */

/* The lower-case form of a byte that a name may hold; 0 for any other. */
static char name_fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
		return c;
	return '\0';
}

/* Whether inet_aton() would read this last label as a number. */
static bool name_is_number(const char *label)
{
	if (label[0] == '0' && label[1] == 'x')
		return label[2 + strspn(label + 2, "0123456789abcdef")] == '\0';
	return label[strspn(label, "0123456789")] == '\0';
}

bool name_normalise(struct str text, char out[static NAME_TEXT_MAX])
{
	char name[NAME_TEXT_MAX];
	size_t start = 0; /* of the label at hand */

	if (text.len > 0 && text.ptr[text.len - 1] == '.')
		text.len--;
	if (text.len == 0 || text.len > NETWORK_NAME_MAX)
		return false;
	for (size_t i = 0; i <= text.len; i++) {
		bool is_end = i == text.len || text.ptr[i] == '.';

		if (is_end && (i == start || i - start > NAME_LABEL_MAX))
			return false;
		name[i] = '.';
		if (!is_end)
			name[i] = name_fold(text.ptr[i]);
		if (name[i] == '\0')
			return false;
		if (is_end && i < text.len)
			start = i + 1;
	}
	name[text.len] = '\0';
	if (name_is_number(name + start))
		return false;
	memcpy(out, name, text.len + 1);
	return true;
}

bool name_is_below(const char *name, const char *suffix)
{
	size_t len = strlen(name);
	size_t tail = strlen(suffix);

	return len >= tail && strcmp(name + len - tail, suffix) == 0 &&
	       (len == tail || name[len - tail - 1] == '.');
}

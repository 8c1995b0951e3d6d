/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/mode_priv.h"

int mode_parse(struct str text, mode_t *out, struct err *err)
{
	mode_t mode = 0;

	if (text.len > 0 && (text.ptr[0] < '0' || text.ptr[0] > '9'))
		return err_set(err, ERR_REFUSED,
			       "--chmod=" STR_FMT ": symbolic modes are not supported yet; write "
			       "octal, like 0755",
			       STR_ARG(text));
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '7' || mode > 0777)
			mode = 010000;
		else
			mode = mode << 3 | (mode_t)(text.ptr[i] - '0');
	}
	if (text.len == 0 || mode > 07777)
		return err_set(err, ERR_REFUSED, "--chmod=" STR_FMT ": expected octal, 0 to 07777",
			       STR_ARG(text));
	*out = mode;
	return 0;
}

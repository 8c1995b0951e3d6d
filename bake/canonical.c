/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/canonical.h"

int canonical_digest(const json_t *spec, size_t max, struct digest *out, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(max);

	if (json_format(spec, &text, err) < 0)
		return -1;
	digest_of(buf_str(&text), out);
	return 0;
}

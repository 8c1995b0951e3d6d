/* SPDX-License-Identifier: Apache-2.0 */
/* Property: an accepted spec has a base, steps that are views of it, and a bounded time. */
#include "bake/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_spec struct spec spec = {0};
	struct err err;

	if (spec_parse((struct str){(const char *)data, size}, &spec, &err) < 0)
		return 0;
	if (spec.base.len == 0 || spec.step_count > SPEC_STEPS_MAX || spec.timeout_ms < 1)
		abort();
	for (size_t i = 0; i < spec.step_count; i++) {
		if (!spec.steps[i].ptr || memchr(spec.steps[i].ptr, '\0', spec.steps[i].len))
			abort();
	}
	return 0;
}

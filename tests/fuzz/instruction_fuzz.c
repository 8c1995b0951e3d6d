/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what instruction_parse() accepts is canonical: its text parses to the same. */
#include "bake/instruction.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = {(const char *)data, size};
	auto_instruction struct instruction first = {0};
	auto_instruction struct instruction second = {0};
	struct err err;

	if (instruction_parse(input, &first, &err) < 0)
		return 0;
	if (strchr("\\`", first.text.ptr[first.text.len - 1]))
		return 0; /* would continue */
	if (instruction_parse(buf_str(&first.text), &second, &err) < 0 ||
	    !str_equal(buf_str(&first.text), buf_str(&second.text)) || first.kind != second.kind ||
	    first.exec_form != second.exec_form || first.network_none != second.network_none ||
	    first.link != second.link || first.parents != second.parents ||
	    first.excludes.count != second.excludes.count || !same_text(first.from, second.from) ||
	    first.args.count != second.args.count || !same_text(first.command, second.command) ||
	    !same_text(first.chown, second.chown) || !same_text(first.chmod, second.chmod))
		abort();
	for (size_t i = 0; i < first.args.count; i++) {
		if (!same_text(first.args.at[i], second.args.at[i]))
			abort();
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h - tables of cases that tests in C and in JavaScript share: groups of rows, as JSON. */
#pragma once

#include "layers/base/json.h"
#include "tests/check.h"

static inline json_t *cases_load(const char *path)
{
	json_error_t error;
	json_t *table = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

	if (!table || json_object_size(table) == 0)
		fail_msg("%s: %s", path, table ? "no cases" : error.text);
	return table;
}

static inline const char *case_text(const json_t *row, size_t column)
{
	const char *text = json_string_value(json_array_get(row, column));

	assert_non_null(text);
	return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/warnings_priv.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

struct heard {
	struct buf text; /* a line each */
	size_t count;
};

static void hear(void *ctx, struct str text)
{
	struct heard *heard = ctx;
	struct err err = {0};

	heard->count++;
	check_ok(buf_addf(&heard->text, &err, STR_FMT "\n", STR_ARG(text)), &err);
}

static void answer(struct warnings *warnings, const char *headers)
{
	auto_http_reply struct http_reply reply = {.headers = BUF_INIT((size_t)10000)};
	struct err err = {0};

	check_ok(buf_add(&reply.headers, str_of(headers), &err), &err);
	warnings_hear(warnings, &reply);
}

static void fields_are_read_as_the_specification_writes_them(void **state)
{
	static const struct {
		const char *headers;
		const char *lines;
	} cases[] = {
		{"Warning: 299 - \"This will stop.\"\n", "This will stop.\n"},
		{"warning: 299 - \"one\", 299 - \"two, and \\\"three\\\"\"\nWARNING:299 - "
		 "\"four\"\n",
		 "one\ntwo, and \"three\"\nfour\n"},
		{"Warning: 299 - \"dated\" \"Mon, 30 Nov 2026 00:00:00 GMT\"\n", "dated\n"},
		{"Warning: 299 - \"\033[2Jclear\x7f\"\n", " [2Jclear \n"},
		{"Warning: 299 - \"without an end\n", "without an end\n"},
		/* Of a cache, of nobody, of nothing. */
		{"Warning: 110 proxy \"stale\"\nWarning: \"bare\"\nWarning: 299 -\nWarning: 299 - "
		 "\"\"\n",
		 ""},
		{"X-Warning: 299 - \"no\"\n", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct heard heard = {.text = BUF_INIT((size_t)10000)};
		struct warnings warnings = {.fn = hear, .ctx = &heard, .lock = LOCK_INIT};

		answer(&warnings, cases[i].headers);
		assert_string_equal(buf_str(&heard.text).ptr, cases[i].lines);
		buf_done(&heard.text);
	}
}

static void each_is_told_once(void **state)
{
	struct heard heard = {.text = BUF_INIT((size_t)10000)};
	struct warnings warnings = {.fn = hear, .ctx = &heard, .lock = LOCK_INIT};

	(void)state;
	answer(&warnings, "Warning: 299 - \"a\", 299 - \"a\"\n");
	answer(&warnings, "Warning: 299 - \"b\"\nWarning: 299 - \"a\"\n");
	assert_string_equal(heard.text.ptr, "a\nb\n");
	buf_done(&heard.text);
}

static void there_are_not_more_than_anybody_reads(void **state)
{
	struct heard heard = {.text = BUF_INIT((size_t)100000)};
	struct warnings warnings = {.fn = hear, .ctx = &heard, .lock = LOCK_INIT};
	char text[6000];

	(void)state;
	(void)snprintf(text, sizeof(text), "Warning: 299 - \"%05000d\"\nWarning: 299 - \"x\"\n", 0);
	answer(&warnings, text);
	assert_int_equal(heard.count, 1);
	assert_int_equal(heard.text.len, WARNINGS_BYTES_MAX - strlen("299 - \"") + 1);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(text, sizeof(text), "Warning: 299 - \"%d\"\n", i);
		answer(&warnings, text);
	}
	assert_int_equal(heard.count, WARNINGS_TOLD_MAX);
	buf_done(&heard.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_read_as_the_specification_writes_them),
		cmocka_unit_test(each_is_told_once),
		cmocka_unit_test(there_are_not_more_than_anybody_reads),
	};

	return cmocka_run_group_tests_name("registry/warnings", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/await.h"
#include "tests/check.h"

static json_t *status_of(const char *text)
{
	struct err err = {0};
	json_t *status = NULL;

	check_ok(json_parse(str_of(text), 4096, &status, &err), &err);
	return status;
}

static void a_status_is_one_line(void **state)
{
	static const struct {
		const char *status;
		const char *line;
	} cases[] = {
		{"{\"slug\":\"a\",\"version\":1,\"status\":\"none\"}", "a version 1: none"},
		{"{\"slug\":\"a\",\"version\":2,\"status\":\"baking\",\"phase\":\"pulling\"}",
		 "a version 2: baking, pulling"},
		{"{\"slug\":\"a\",\"version\":2,\"status\":\"baking\",\"phase\":\"running\","
		 "\"step\":{\"n\":2,\"of\":5,\"text\":\"RUN make\",\"cached\":false}}",
		 "a version 2: baking, [2/5] RUN make"},
		{"{\"slug\":\"a\",\"version\":2,\"status\":\"baking\",\"phase\":\"running\","
		 "\"step\":{\"n\":1,\"of\":1,\"text\":\"ENV A=1\",\"cached\":true}}",
		 "a version 2: baking, [1/1] CACHED ENV A=1"},
		{"{\"slug\":\"a\",\"version\":2,\"status\":\"baking\",\"phase\":\"waiting\","
		 "\"retryAt\":\"T\",\"error\":{\"message\":\"no route\"}}",
		 "a version 2: baking, no route (it is tried again at T)"},
		{"{\"slug\":\"a\",\"version\":2,\"status\":\"ready\","
		 "\"rebake\":{\"status\":\"baking\",\"phase\":\"exporting\"}}",
		 "a version 2: ready, rebake: exporting"},
		{"{\"slug\":\"a\",\"version\":2,\"status\":\"ready\","
		 "\"rebake\":{\"status\":\"baking\"}}",
		 "a version 2: ready, rebake: queued"},
		{"{\"slug\":\"a\",\"version\":2,\"status\":\"ready\","
		 "\"rebake\":{\"status\":\"failed\"}}",
		 "a version 2: ready"},
		{"{}", " version 0: "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(json) json_t *status = status_of(cases[i].status);
		auto_free char *line = await_line(status);

		assert_string_equal(line, cases[i].line);
	}
}

static void what_a_step_is_called_steers_no_terminal(void **state)
{
	AUTO(json)
	json_t *status = status_of("{\"slug\":\"a\",\"version\":1,\"status\":\"baking\",\"step\":"
				   "{\"n\":1,\"of\":1,\"text\":\"RUN \\u001b[2J\\nrm\"}}");
	auto_free char *line = await_line(status);

	(void)state;
	assert_string_equal(line, "a version 1: baking, [1/1] RUN rm");
}

static void a_status_ends_with_the_kind_of_what_failed(void **state)
{
	static const struct {
		const char *status;
		enum err_kind kind;
	} cases[] = {
		{"{\"status\":\"baking\"}", ERR_NOT_READY},
		{"{\"status\":\"failed\",\"error\":{\"code\":\"StepFailed\"}}", ERR_STEP},
		{"{\"status\":\"failed\",\"error\":{\"code\":\"StepRefused\"}}", ERR_REFUSED},
		{"{\"status\":\"failed\",\"error\":{\"code\":\"UpstreamFailed\"}}", ERR_REMOTE},
		{"{\"status\":\"failed\",\"error\":{\"code\":\"NeverHeardOf\"}}", ERR_OS},
	};
	AUTO(json) json_t *ready = status_of("{\"status\":\"ready\"}");
	AUTO(json) json_t *none = status_of("{\"status\":\"none\"}");
	struct err err = {0};

	(void)state;
	check_ok(await_check(ready, &err), &err);
	check_ok(await_check(none, &err), &err);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(json) json_t *status = status_of(cases[i].status);

		check_err(await_check(status, &err), &err, cases[i].kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_is_one_line),
		cmocka_unit_test(what_a_step_is_called_steers_no_terminal),
		cmocka_unit_test(a_status_ends_with_the_kind_of_what_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

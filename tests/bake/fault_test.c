/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/fault.h"
#include "tests/check.h"

static const char *tail_of(json_t *value)
{
	return json_string_value(json_object_get(value, "logTail"));
}

static void a_fault_says_what_a_client_acts_on(void **state)
{
	struct fault fault = {.kind = ERR_STEP,
			      .message = STR("step 2: exit code 3"),
			      .step = 2,
			      .exit_code = 3,
			      .log_tail = STR("no such file\n"),
			      .terminal = true};
	AUTO(json) json_t *value = fault_format(&fault);
	AUTO(json)
	json_t *expected = json_pack("{s:s, s:s, s:i, s:i, s:s, s:b}", "code", "StepFailed",
				     "message", "step 2: exit code 3", "step", 2, "exitCode", 3,
				     "logTail", "no such file\n", "terminal", 1);

	(void)state;
	assert_true(json_equal(value, expected));
}

static void a_refused_step_has_a_line(void **state)
{
	struct fault fault = {.kind = ERR_REFUSED,
			      .message = STR("step 2: line 3"),
			      .step = 2,
			      .line = 3,
			      .log_tail = STR("")};
	AUTO(json) json_t *value = fault_format(&fault);

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(value, "line")), 3);
	assert_null(json_object_get(value, "exitCode"));
}

static void what_is_no_steps_has_no_step(void **state)
{
	struct fault fault = {.kind = ERR_REMOTE, .message = STR("503"), .log_tail = STR("")};
	AUTO(json) json_t *value = fault_format(&fault);

	(void)state;
	assert_null(json_object_get(value, "step"));
	assert_null(json_object_get(value, "line"));
	assert_null(json_object_get(value, "exitCode"));
	assert_true(json_is_false(json_object_get(value, "terminal")));
	assert_string_equal(tail_of(value), "");
}

static void of_a_long_log_the_end_is_kept(void **state)
{
	char log[2 * FAULT_TAIL_MAX];
	struct fault fault = {.kind = ERR_STEP, .message = STR(""), .log_tail = {log, sizeof(log)}};
	AUTO(json) json_t *value = NULL;

	(void)state;
	memset(log, 'a', sizeof(log));
	log[sizeof(log) - 1] = 'z';
	value = fault_format(&fault);
	assert_int_equal(strlen(tail_of(value)), FAULT_TAIL_MAX);
	assert_int_equal(tail_of(value)[FAULT_TAIL_MAX - 1], 'z');
}

static void no_character_is_cut(void **state)
{
	char log[FAULT_TAIL_MAX + 1];
	struct fault fault = {.kind = ERR_STEP, .message = STR(""), .log_tail = {log, sizeof(log)}};
	AUTO(json) json_t *value = NULL;

	(void)state;
	memset(log, 'a', sizeof(log));
	log[0] = '\xe2'; /* a euro sign, whose first byte is out */
	log[1] = '\x82';
	log[2] = '\xac';
	value = fault_format(&fault);
	assert_int_equal(strlen(tail_of(value)), FAULT_TAIL_MAX - 2);
	assert_int_equal(tail_of(value)[0], 'a');
}

static void what_is_no_text_becomes_text_within_the_ceiling(void **state)
{
	char log[FAULT_TAIL_MAX];
	struct fault fault = {.kind = ERR_STEP, .message = STR(""), .log_tail = {log, sizeof(log)}};
	AUTO(json) json_t *value = NULL;

	(void)state;
	memset(log, 0xff, sizeof(log));
	value = fault_format(&fault);
	assert_true(strlen(tail_of(value)) <= FAULT_TAIL_MAX);
	assert_memory_equal(tail_of(value), "\xef\xbf\xbd\xef\xbf\xbd", 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_says_what_a_client_acts_on),
		cmocka_unit_test(a_refused_step_has_a_line),
		cmocka_unit_test(what_is_no_steps_has_no_step),
		cmocka_unit_test(of_a_long_log_the_end_is_kept),
		cmocka_unit_test(no_character_is_cut),
		cmocka_unit_test(what_is_no_text_becomes_text_within_the_ceiling),
	};

	return cmocka_run_group_tests_name("bake/fault", tests, NULL, NULL);
}

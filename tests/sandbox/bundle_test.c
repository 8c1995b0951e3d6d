/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/json.h"
#include "sandbox/bundle_priv.h"
#include "tests/check.h"

#include <sys/resource.h>

/* linux.resources.cpu of a machine with this limit. The caller owns *document. */
static json_t *cpu_of(uint64_t millis, json_t **document)
{
	static const char *const none[] = {NULL};
	const struct user user = {0};
	const struct machine_limits limits = {.cpu_millis = millis};
	const struct machine_command command = {.argv = (const char **)drop_const(none),
						.envp = (const char **)drop_const(none),
						.hostname = "h"};
	const struct bundle bundle = {.id = "id",
				      .root = "/root",
				      .agent = "/agent",
				      .sysfs = "/sysfs",
				      .netns = "/netns",
				      .cwd = "/",
				      .user = &user,
				      .first_id = 100000,
				      .limits = &limits,
				      .command = &command};
	auto_buf struct buf text = BUF_INIT(BUNDLE_MAX);
	struct err err = {0};

	check_ok(bundle_format(&bundle, &text, &err), &err);
	check_ok(json_parse(buf_str(&text), BUNDLE_MAX, document, &err), &err);
	return json_object_get(json_object_get(json_object_get(*document, "linux"), "resources"),
			       "cpu");
}

static void every_part_of_a_core_is_one_that_the_kernel_takes(void **state)
{
	static const struct {
		uint64_t millis;
		json_int_t period;
		json_int_t quota;
	} cases[] = {
		{1, 1000000, 1000},     {2, 1000000, 2000},           {9, 1000000, 9000},
		{10, 100000, 1000},     {11, 100000, 1100},           {500, 100000, 50000},
		{1000, 100000, 100000}, {4096000, 100000, 409600000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(json) json_t *document = NULL;
		const json_t *cpu = cpu_of(cases[i].millis, &document);

		assert_int_equal(json_integer_value(json_object_get(cpu, "period")),
				 cases[i].period);
		assert_int_equal(json_integer_value(json_object_get(cpu, "quota")), cases[i].quota);
	}
}

static void without_a_limit_there_is_no_quota(void **state)
{
	AUTO(json) json_t *document = NULL;

	(void)state;
	assert_null(json_object_get(cpu_of(0, &document), "quota"));
}

/* The last test: it stays nice. */
static void a_machine_weighs_what_its_maker_does(void **state)
{
	AUTO(json) json_t *before = NULL;
	AUTO(json) json_t *after = NULL;
	int nice = getpriority(PRIO_PROCESS, 0);
	json_int_t shares;

	(void)state;
	shares = json_integer_value(json_object_get(cpu_of(0, &before), "shares"));
	assert_true(nice > 0 ? shares > 0 && shares < 1024 : shares == 0);
	if (nice < 10)
		assert_int_equal(setpriority(PRIO_PROCESS, 0, 10), 0);
	shares = json_integer_value(json_object_get(cpu_of(0, &after), "shares"));
	assert_in_range(shares, 2, 120);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_of_a_core_is_one_that_the_kernel_takes),
		cmocka_unit_test(without_a_limit_there_is_no_quota),
		cmocka_unit_test(a_machine_weighs_what_its_maker_does),
	};

	return cmocka_run_group_tests_name("sandbox/bundle", tests, NULL, NULL);
}

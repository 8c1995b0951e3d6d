/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/platform.h"
#include "tests/check.h"

static struct platform platform_of(const char *text)
{
	struct platform platform;
	struct err err = {0};

	check_ok(platform_parse(str_of(text), &platform, &err), &err);
	return platform;
}

static void parse_and_format_agree(void **state)
{
	static const char *const same[] = {"linux/amd64", "linux/arm64/v8", "linux/arm/v6",
					   "linux/386", "windows/amd64"};
	char text[PLATFORM_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		struct platform platform = platform_of(same[i]);

		assert_string_equal(platform_format(&platform, text), same[i]);
	}
}

static void names_of_the_kernel_become_those_of_images(void **state)
{
	static const char *const names[][2] = {
		{"linux/x86_64", "linux/amd64"},    {"linux/aarch64", "linux/arm64"},
		{"linux/armv7l", "linux/arm/v7"},   {"linux/armhf", "linux/arm/v7"},
		{"linux/armel/v5", "linux/arm/v5"}, {"linux/i686", "linux/386"},
	};
	char text[PLATFORM_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct platform platform = platform_of(names[i][0]);

		assert_string_equal(platform_format(&platform, text), names[i][1]);
	}
}

static void parse_refuses_what_is_no_platform(void **state)
{
	static const char *const wrong[] = {
		"",
		"linux",
		"linux/",
		"/amd64",
		"linux/amd64/",
		"linux/arm/v7/x",
		"linux/am d64",
		"linux//v7",
		"linux/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct platform platform = {.os = "untouched"};
		struct err err = {0};

		check_err(platform_parse(str_of(wrong[i]), &platform, &err), &err, ERR_INVALID);
		assert_string_equal(platform.os, "untouched");
	}
}

static void an_older_variant_runs_and_a_newer_does_not(void **state)
{
	static const struct {
		const char *wanted;
		const char *offered;
		bool matches;
	} cases[] = {
		{"linux/amd64", "linux/amd64", true},
		{"linux/amd64", "linux/amd64/v1", true},
		{"linux/amd64", "linux/amd64/v3", false},
		{"linux/amd64/v3", "linux/amd64", true},
		{"linux/amd64/v3", "linux/amd64/v2", true},
		{"linux/arm64", "linux/arm64/v8", true},
		{"linux/arm64/v8", "linux/arm64", true},
		{"linux/arm", "linux/arm/v7", true},
		{"linux/arm/v7", "linux/arm/v6", true},
		{"linux/arm/v6", "linux/arm/v7", false},
		{"linux/arm/v6", "linux/arm", false},
		{"linux/arm64", "linux/arm/v7", false},
		{"linux/amd64", "windows/amd64", false},
		{"linux/386", "linux/386", true},
		{"linux/mips64/hardfloat", "linux/mips64/softfloat", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct platform wanted = platform_of(cases[i].wanted);
		struct platform offered = platform_of(cases[i].offered);

		if (platform_matches(&wanted, &offered) != cases[i].matches)
			fail_msg("%s on %s", cases[i].offered, cases[i].wanted);
	}
}

static void the_newest_variant_that_runs_fits_best_but_for_the_very_one(void **state)
{
	static const char *const worse_first[] = {"linux/arm64", "linux/arm/v5", "linux/arm/v6",
						  "linux/arm", "linux/arm/v7"};
	struct platform wanted = platform_of("linux/arm/v7");
	int last = -1;

	(void)state;
	for (size_t i = 0; i < sizeof(worse_first) / sizeof(worse_first[0]); i++) {
		struct platform offered = platform_of(worse_first[i]);
		int rank = platform_rank(&wanted, &offered);

		assert_true(rank > last);
		assert_int_equal(rank > 0, platform_matches(&wanted, &offered));
		last = rank;
	}
}

static void the_host_is_a_platform(void **state)
{
	char text[PLATFORM_TEXT_MAX];
	struct platform host;
	struct platform again;

	(void)state;
	platform_host(&host);
	again = platform_of(platform_format(&host, text));
	assert_true(platform_matches(&host, &again));
	assert_string_equal(host.os, "linux");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_and_format_agree),
		cmocka_unit_test(names_of_the_kernel_become_those_of_images),
		cmocka_unit_test(parse_refuses_what_is_no_platform),
		cmocka_unit_test(an_older_variant_runs_and_a_newer_does_not),
		cmocka_unit_test(the_newest_variant_that_runs_fits_best_but_for_the_very_one),
		cmocka_unit_test(the_host_is_a_platform),
	};

	return cmocka_run_group_tests_name("registry/platform", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/image_config.h"
#include "tests/check.h"

#include <string.h>

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void parse_reads_platform_and_layers(void **state)
{
	auto_image_config struct image_config config = {0};
	char text[DIGEST_TEXT_MAX];
	struct err err = {0};

	(void)state;
	check_ok(image_config_parse(
			 STR("{\"os\":\"linux\",\"architecture\":\"arm\",\"variant\":\"v6\","
			     "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:" HEX_A
			     "\",\"sha256:" HEX_B "\"]}}"),
			 &config, &err),
		 &err);
	assert_string_equal(config.platform.variant, "v6");
	assert_int_equal(config.diff_id_count, 2);
	assert_string_equal(digest_format(&config.diff_ids[1], text), "sha256:" HEX_B);
}

static void parse_takes_what_images_in_the_wild_have(void **state)
{
	static const char *const fine[] = {
		"{}",
		"{\"rootfs\":null,\"config\":null}",
		"{\"config\":{\"Env\":[\"NO_EQUALS_SIGN\",\"\",\"=x\"]}}",
		"{\"config\":{\"Env\":null},\"history\":null}",
		("{\"config\":{\"Shell\":null,\"Cmd\":null,\"Entrypoint\":null,\"User\":null,"
		 "\"WorkingDir\":null}}"),
		"{\"config\":{\"Shell\":[\"/bin/sh\",\"-c\"],\"Cmd\":[],\"User\":\"\"}}",
		"{\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{\"diff_ids\":[]}}",
		"{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":null}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		auto_image_config struct image_config config = {0};
		struct err err = {0};

		check_ok(image_config_parse(str_of(fine[i]), &config, &err), &err);
		assert_int_equal(config.diff_id_count, 0);
	}
}

static void parse_refuses_what_is_no_config(void **state)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{",
		"{\"config\":[]}",
		"{\"config\":{\"Env\":{}}}",
		"{\"config\":{\"Env\":[1]}}",
		"{\"config\":{\"Env\":[\"A=b\",null]}}",
		"{\"config\":{\"Shell\":[1]}}",
		"{\"config\":{\"Shell\":\"/bin/sh\"}}",
		"{\"config\":{\"Entrypoint\":[[]]}}",
		"{\"config\":{\"Cmd\":\"sh\"}}",
		"{\"config\":{\"User\":0}}",
		"{\"config\":{\"WorkingDir\":[]}}",
		"{\"os\":1}",
		"{\"os\":\"linux\",\"architecture\":\"a/b\"}",
		"{\"os\":\"linux\"}",
		"{\"rootfs\":{\"diff_ids\":{}}}",
		"{\"rootfs\":{\"diff_ids\":[1]}}",
		"{\"rootfs\":{\"diff_ids\":[\"sha256:12\"]}}",
		("{\"rootfs\":{\"diff_ids\":[\"sha512:" HEX_A "\"]}}"),
		"{\"os\":\"a\",\"os\":\"b\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct image_config config = {0};
		struct err err = {0};

		check_err(image_config_parse(str_of(wrong[i]), &config, &err), &err, ERR_CORRUPT);
		assert_null(config.document);
	}
}

/* By hand: printf 'sha256:a..a sha256:b..b' | sha256sum */
static void chain_ids_follow_the_specification(void **state)
{
	char text[DIGEST_TEXT_MAX];
	struct digest lower;
	struct digest upper;
	struct digest chain;
	struct err err = {0};

	(void)state;
	check_ok(digest_parse(STR("sha256:" HEX_A), &lower, &err), &err);
	check_ok(digest_parse(STR("sha256:" HEX_B), &upper, &err), &err);
	image_config_chain_id(NULL, &lower, &chain);
	assert_true(digest_equal(&chain, &lower));
	image_config_chain_id(&chain, &upper, &chain);
	assert_string_equal(
		digest_format(&chain, text),
		"sha256:ccd722928bd92476ba1745586fed6e45a102504185ad88cd89e01ff116fd146c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_reads_platform_and_layers),
		cmocka_unit_test(parse_takes_what_images_in_the_wild_have),
		cmocka_unit_test(parse_refuses_what_is_no_config),
		cmocka_unit_test(chain_ids_follow_the_specification),
	};

	return cmocka_run_group_tests_name("registry/image_config", tests, NULL, NULL);
}

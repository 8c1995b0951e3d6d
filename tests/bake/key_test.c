/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/key_priv.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const struct platform amd64 = {"linux", "amd64", ""};

static struct digest key_of(const struct key_parts *parts)
{
	struct digest key;

	key_make(parts, &key);
	return key;
}

static struct digest make_key(struct state *state, const char *instruction,
			      const struct digest *content, bool network_none)
{
	return key_of(&(struct key_parts){state, str_of(instruction), content, network_none});
}

static void check_all_differ(const struct digest *keys, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < i; j++)
			assert_false(digest_equal(&keys[i], &keys[j]));
	}
}

static void the_platform_counts(void **unused)
{
	static const struct platform platforms[] = {
		{"linux", "amd64", ""},
		{"linux", "arm64", ""},
		{"linux", "arm64", "v8"},
		{"linu", "xarm64", ""},
	};
	struct digest keys[4];

	(void)unused;
	for (size_t i = 0; i < 4; i++) {
		auto_state struct state state = {0};
		struct err err = {0};

		check_ok(state_from_scratch(&platforms[i], &state, &err), &err);
		keys[i] = make_key(&state, "RUN a", NULL, false);
	}
	check_all_differ(keys, 4);
}

static void every_other_part_counts(void **unused)
{
	auto_state struct state state = {0};
	struct state_layer layer = {.media_type = MEDIA_OCI_LAYER_ZSTD};
	const int64_t clamps[] = {0, 1700000000};
	struct digest keys[12];
	struct digest content;
	size_t count = 0;
	struct err err = {0};

	(void)unused;
	digest_of(STR("x"), &content);
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	keys[count++] = make_key(&state, "RUN a", NULL, false);
	keys[count++] = make_key(&state, "RUN b", NULL, false);
	keys[count++] = make_key(&state, "RUN a", NULL, true);
	keys[count++] = make_key(&state, "RUN a", &content, false);
	keys[count++] = make_key(&state, "", &content, false);
	check_ok(state_set_env(&state, STR("a"), STR("b"), &err), &err);
	keys[count++] = make_key(&state, "RUN a", NULL, false);
	check_ok(state_set_workdir(&state, STR("/x"), &err), &err);
	keys[count++] = make_key(&state, "RUN a", NULL, false);
	check_ok(state_add_step(&state, STR("x"), 5, &layer, &err), &err);
	keys[count++] = make_key(&state, "RUN a", NULL, false);
	for (size_t i = 0; i < 2; i++)
		keys[count++] = key_of(&(struct key_parts){
			.state = &state, .instruction = STR("RUN a"), .clamp = &clamps[i]});
	keys[count++] = key_of(&(struct key_parts){
		.state = &state, .instruction = STR("RUN a"), .secrets = &content});
	check_all_differ(keys, count);
}

static void a_layer_of_its_own_has_no_parent(void **unused)
{
	struct digest keys[2];
	struct digest attached[2];

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		auto_state struct state state = {0};
		struct state_layer layer = {.media_type = MEDIA_OCI_LAYER_ZSTD};
		struct key_parts parts = {.state = &state, .instruction = STR("COPY a")};
		struct err err = {0};

		check_ok(state_from_scratch(&amd64, &state, &err), &err);
		digest_of(i ? STR("one") : STR("another"), &layer.diff_id);
		check_ok(state_add_step(&state, STR("x"), 5, &layer, &err), &err);
		attached[i] = key_of(&parts);
		parts.detached = true;
		keys[i] = key_of(&parts);
	}
	assert_true(digest_equal(&keys[0], &keys[1]));
	assert_false(digest_equal(&attached[0], &attached[1]));
	assert_false(digest_equal(&attached[0], &keys[0]));
}

static void make_keys_of_all_sights(struct state *state, struct digest keys[static 3])
{
	for (int sight = KEY_SEES_ALL; sight <= KEY_SEES_NOTHING; sight++)
		keys[sight] = key_of(&(struct key_parts){
			.state = state, .instruction = STR("x"), .sight = (enum key_sight)sight});
}

static void a_step_is_named_by_what_it_sees(void **unused)
{
	auto_state struct state state = {0};
	struct digest first[3];
	struct digest with_variable[3];
	struct digest elsewhere[3];
	struct err err = {0};

	(void)unused;
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	make_keys_of_all_sights(&state, first);
	check_all_differ(first, 3);
	check_ok(state_set_env(&state, STR("A"), STR("1"), &err), &err);
	make_keys_of_all_sights(&state, with_variable);
	check_ok(state_set_workdir(&state, STR("/x"), &err), &err);
	make_keys_of_all_sights(&state, elsewhere);
	for (int sight = KEY_SEES_ALL; sight <= KEY_SEES_NOTHING; sight++) {
		assert_int_equal(digest_equal(&first[sight], &with_variable[sight]),
				 sight != KEY_SEES_ALL);
		assert_int_equal(digest_equal(&with_variable[sight], &elsewhere[sight]),
				 sight == KEY_SEES_NOTHING);
	}
}

static void history_and_times_do_not_count(void **unused)
{
	auto_state struct state state = {0};
	struct digest before;
	struct digest after;
	struct err err = {0};

	(void)unused;
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	before = make_key(&state, "RUN a", NULL, false);
	check_ok(state_add_step(&state, STR("RUN true"), 12345, NULL, &err), &err);
	after = make_key(&state, "RUN a", NULL, false);
	assert_true(digest_equal(&before, &after));
}

/* kaniko's A=x-B=z,B=y against A=x,B=z-B=y, and its kin. */
static void bytes_that_move_between_fields_change_the_key(void **unused)
{
	static const char *const pairs[][4] = {
		{"A", "x-B=z", "B", "y"},     {"A", "x", "B", "z-B=y"},
		{"A", "x\",\"B=z", "B", "y"}, {"A", "x", "B", "z\",\"B=y"},
		{"AB", "", "C", ""},          {"A", "B", "C", ""},
	};
	struct digest keys[sizeof(pairs) / sizeof(pairs[0])];

	(void)unused;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		auto_state struct state state = {0};
		struct err err = {0};

		check_ok(state_from_scratch(&amd64, &state, &err), &err);
		for (size_t j = 0; j < 4; j += 2)
			check_ok(state_set_env(&state, str_of(pairs[i][j]), str_of(pairs[i][j + 1]),
					       &err),
				 &err);
		keys[i] = make_key(&state, "RUN x", NULL, false);
		for (size_t j = 0; j < i; j++)
			assert_false(digest_equal(&keys[i], &keys[j]));
	}
}

static uint64_t read_length(const char *bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
	return value;
}

/* The field with this tag, by reading the bytes as the format's table says. */
static bool find_field(struct str bytes, char tag, struct str *out)
{
	while (bytes.len > 0) {
		uint64_t n;

		assert_true(bytes.len >= 9);
		n = read_length(bytes.ptr + 1);
		assert_true(n <= bytes.len - 9);
		*out = (struct str){bytes.ptr + 9, (size_t)n};
		if (bytes.ptr[0] == tag)
			return true;
		bytes = (struct str){bytes.ptr + 9 + n, bytes.len - 9 - (size_t)n};
	}
	return false;
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/* What can be decoded is injective. */
static void the_encoding_can_be_decoded(void **unused)
{
	uint32_t seed = 20240501;
	auto_state struct state state = {0};
	struct err err = {0};

	(void)unused;
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	printf("seed %u\n", seed);
	for (int round = 0; round < 2000; round++) {
		auto_buf struct buf bytes = BUF_INIT(KEY_BYTES_MAX);
		char text[64];
		size_t n = next_random(&seed) % sizeof(text);
		struct digest content;
		bool has_content = next_random(&seed) % 2;
		bool none = next_random(&seed) % 2;
		struct key_parts parts = {&state, {text, n}, has_content ? &content : NULL, none};
		struct str field;

		for (size_t i = 0; i < n; i++)
			text[i] = (char)"VPSICOARN\0\1\11x"[next_random(&seed) % 13];
		digest_of(parts.instruction, &content);
		check_ok(key_encode(&parts, &bytes, &err), &err);
		assert_true(find_field(buf_str(&bytes), 'I', &field));
		assert_true(str_equal(field, parts.instruction));
		assert_int_equal(find_field(buf_str(&bytes), 'C', &field), has_content);
		assert_true(!has_content || memcmp(field.ptr, content.bytes, 32) == 0);
		assert_true(find_field(buf_str(&bytes), 'N', &field));
		assert_true(str_equal(field, none ? STR("none") : STR("open")));
		assert_false(find_field(buf_str(&bytes), 'P', &field));
	}
}

static void keys_never_change_by_accident(void **unused)
{
	auto_state struct state state = {0};
	struct digest content;
	struct digest key;
	char text[DIGEST_TEXT_MAX];
	struct err err = {0};

	(void)unused;
	digest_of(STR("content"), &content);
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	check_ok(state_set_env(&state, STR("A"), STR("1"), &err), &err);
	key = make_key(&state, "RUN true", &content, false);
	assert_string_equal(
		digest_format(&key, text),
		"sha256:38b647e26f59a87eb328c3c89e7460da7f164c14f2c659a251102b5f4f394778");
}

static void components_name_every_part(void **unused)
{
	auto_state struct state state = {0};
	AUTO(json) json_t *components = NULL;
	auto_buf struct buf text = BUF_INIT(8192);
	struct err err = {0};

	(void)unused;
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	components = key_components(&(struct key_parts){&state, STR("RUN true"), NULL, true});
	check_ok(state_set_env(&state, STR("LATER"), STR("1"), &err), &err);
	check_ok(json_format(components, &text, &err), &err);
	assert_string_equal(text.ptr, "{\"env\":[\"PATH=" STATE_PATH_DEFAULT
				      "\"],\"epoch\":1,\"instruction\":\"RUN true\",\"network\":"
				      "\"none\",\"platform\":\"linux/amd64\",\"user\":\"\","
				      "\"version\":1,\"workdir\":\"/\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_platform_counts),
		cmocka_unit_test(every_other_part_counts),
		cmocka_unit_test(a_layer_of_its_own_has_no_parent),
		cmocka_unit_test(a_step_is_named_by_what_it_sees),
		cmocka_unit_test(history_and_times_do_not_count),
		cmocka_unit_test(bytes_that_move_between_fields_change_the_key),
		cmocka_unit_test(the_encoding_can_be_decoded),
		cmocka_unit_test(keys_never_change_by_accident),
		cmocka_unit_test(components_name_every_part),
	};

	return cmocka_run_group_tests_name("bake/key", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/state.h"
#include "tests/check.h"

#include <string.h>

#define HEX_A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEX_C "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static const struct platform amd64 = {"linux", "amd64", ""};

/* A base of one layer whose config has these members besides the needed ones. */
static int make_base(const char *members, const char *layer_type, struct state *out,
		     struct err *err)
{
	auto_manifest struct manifest manifest = {0};
	auto_image_config struct image_config config = {0};
	auto_buf struct buf text = BUF_INIT(IMAGE_CONFIG_MAX);
	auto_buf struct buf manifest_text = BUF_INIT(8192);

	check_ok(buf_addf(&text, err,
			  "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"type\":"
			  "\"layers\",\"diff_ids\":[\"" HEX_A "\"]}%s}",
			  members),
		 err);
	check_ok(buf_addf(&manifest_text, err,
			  "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST "\","
			  "\"config\":{\"mediaType\":\"" MEDIA_OCI_CONFIG "\",\"digest\":\"" HEX_C
			  "\",\"size\":10},\"layers\":[{\"mediaType\":\"%s\",\"digest\":\"" HEX_B
			  "\",\"size\":99}]}",
			  layer_type),
		 err);
	check_ok(image_config_parse(buf_str(&text), &config, err), err);
	check_ok(manifest_parse(buf_str(&manifest_text), &manifest, err), err);
	return state_from_base(&manifest, &config, out, err);
}

static void check_env(const struct state *state, const char *name, const char *value)
{
	struct str got;

	assert_true(state_env_get(state, str_of(name), &got));
	assert_true(str_equal(got, str_of(value)));
}

static void check_config(const struct state *state, const char *expected)
{
	auto_buf struct buf text = BUF_INIT(65536);
	struct err err = {0};

	check_ok(state_write_config(state, &text, &err), &err);
	assert_string_equal(text.ptr, expected);
}

static void scratch_has_a_path_and_nothing_else(void **unused)
{
	static const struct platform arm = {"linux", "arm64", "v8"};
	auto_state struct state state = {0};
	struct err err = {0};

	(void)unused;
	check_ok(state_from_scratch(&arm, &state, &err), &err);
	check_env(&state, "PATH", STATE_PATH_DEFAULT);
	assert_true(str_equal(state_workdir(&state), STR("/")));
	assert_int_equal(state_user(&state).len, 0);
	assert_null(state_shell(&state));
	check_config(&state,
		     "{\"architecture\":\"arm64\",\"config\":{\"Env\":[\"PATH=" STATE_PATH_DEFAULT
		     "\"]},\"history\":[],\"os\":\"linux\",\"rootfs\":{\"diff_ids\":[],"
		     "\"type\":\"layers\"},\"variant\":\"v8\"}");
}

static void a_base_is_kept_whole(void **unused)
{
	auto_state struct state state = {0};
	struct err err = {0};

	(void)unused;
	check_ok(make_base(",\"x\":{\"y\":1},\"created\":\"2020-01-02T03:04:05Z\",\"config\":{"
			   "\"Env\":[\"A=1\",\"PATH=/bin\"],\"Cmd\":[\"sh\"],\"User\":\"1000\","
			   "\"Shell\":[\"/bin/bash\",\"-c\"],\"WorkingDir\":\"/w\"},"
			   "\"history\":[{\"created_by\":\"theirs\"}]",
			   MEDIA_OCI_LAYER_GZIP, &state, &err),
		 &err);
	assert_true(str_equal(state_workdir(&state), STR("/w")));
	assert_true(str_equal(state_user(&state), STR("1000")));
	assert_int_equal(json_array_size(state_shell(&state)), 2);
	check_config(
		&state,
		"{\"architecture\":\"amd64\",\"config\":{\"Cmd\":[\"sh\"],\"Env\":[\"A=1\","
		"\"PATH=/bin\"],\"Shell\":[\"/bin/bash\",\"-c\"],\"User\":\"1000\","
		"\"WorkingDir\":\"/w\"},\"created\":\"2020-01-02T03:04:05Z\",\"history\":[{"
		"\"created_by\":\"theirs\"}],\"os\":\"linux\",\"rootfs\":{\"diff_ids\":[\"" HEX_A
		"\"],\"type\":\"layers\"},\"x\":{\"y\":1}}");
}

static void odd_bases_are_tolerated(void **unused)
{
	static const struct {
		const char *members;
		const char *workdir;
	} cases[] = {
		{"", "/"},
		{",\"config\":null", "/"},
		{",\"config\":{\"Env\":null,\"WorkingDir\":null}", "/"},
		{",\"config\":{\"Env\":[\"NOEQUALS\",\"\",\"=x\"]}", "/"},
		{",\"config\":{\"WorkingDir\":\"app/../srv/\"}", "/srv"},
		{",\"config\":{\"WorkingDir\":\"\"}", "/"},
		{",\"history\":null", "/"},
		{",\"history\":[1,{\"empty_layer\":true}]", "/"},
		{",\"history\":[{},{},{}]", "/"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_state struct state state = {0};
		struct err err = {0};
		struct str value;

		check_ok(make_base(cases[i].members, MEDIA_OCI_LAYER_GZIP, &state, &err), &err);
		assert_true(str_equal(state_workdir(&state), str_of(cases[i].workdir)));
		check_env(&state, "PATH", STATE_PATH_DEFAULT);
		assert_false(state_env_get(&state, STR("NOEQUALS"), &value));
		check_ok(state_set_env(&state, STR("NOEQUALS"), STR("now"), &err), &err);
		check_env(&state, "NOEQUALS", "now");
	}
}

static void history_has_an_entry_for_each_layer(void **unused)
{
	auto_state struct state state = {0};
	struct err err = {0};

	(void)unused;
	check_ok(make_base("", MEDIA_OCI_LAYER_GZIP, &state, &err), &err);
	assert_int_equal(json_array_size(json_object_get(state.config, "history")), 1);
}

static void docker_types_become_ours(void **unused)
{
	auto_state struct state state = {0};
	auto_buf struct buf text = BUF_INIT(8192);
	struct digest digest;
	struct state none = {0};
	struct err err = {0};

	(void)unused;
	check_ok(make_base("", MEDIA_DOCKER_LAYER_GZIP, &state, &err), &err);
	check_ok(digest_parse(STR(HEX_C), &digest, &err), &err);
	check_ok(state_write_manifest(&state, &digest, 1234, &text, &err), &err);
	assert_string_equal(text.ptr, "{\"config\":{\"digest\":\"" HEX_C
				      "\",\"mediaType\":\"" MEDIA_OCI_CONFIG
				      "\",\"size\":1234},\"layers\":[{\"digest\":\"" HEX_B
				      "\",\"mediaType\":\"" MEDIA_OCI_LAYER_GZIP
				      "\",\"size\":99}],\"mediaType\":\"" MEDIA_OCI_MANIFEST
				      "\",\"schemaVersion\":2}");
	check_err(make_base("", "application/x-other", &none, &err), &err, ERR_UNSUPPORTED);
}

static void the_environment_keeps_its_order(void **unused)
{
	auto_state struct state state = {0};
	auto_buf struct buf text = BUF_INIT(8192);
	struct err err = {0};

	(void)unused;
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	check_ok(state_set_env(&state, STR("B"), STR("1"), &err), &err);
	check_ok(state_set_env(&state, STR("A"), STR("2"), &err), &err);
	check_ok(state_set_env(&state, STR("B"), STR("x=y"), &err), &err);
	check_ok(state_set_env(&state, STR("BB"), STR(""), &err), &err);
	check_env(&state, "B", "x=y");
	check_env(&state, "BB", "");
	check_ok(json_format(state_env(&state), &text, &err), &err);
	assert_string_equal(text.ptr,
			    "[\"PATH=" STATE_PATH_DEFAULT "\",\"B=x=y\",\"A=2\",\"BB=\"]");
}

/* Of two entries of one name a process sees the last. */
static void a_variable_that_a_base_has_twice_is_set_once(void **unused)
{
	auto_buf struct buf text = BUF_INIT(4096);
	auto_state struct state state = {0};
	struct str got;
	struct err err = {0};

	(void)unused;
	check_ok(make_base(",\"config\":{\"Env\":[\"A=1\",\"PATH=/bin\",\"A=2\",\"AB=3\",\"A\"]}",
			   MEDIA_OCI_LAYER_TAR, &state, &err),
		 &err);
	assert_false(state_env_get(&state, STR("A"), &got)); /* as putenv("A") has it */
	check_ok(state_set_env(&state, STR("A"), STR("b"), &err), &err);
	check_env(&state, "A", "b");
	check_ok(json_format(state_env(&state), &text, &err), &err);
	assert_string_equal(text.ptr, "[\"PATH=/bin\",\"AB=3\",\"A=b\"]");
}

static void names_and_sizes_of_variables_are_judged(void **unused)
{
	auto_free char *big = calloc(1, STATE_ENV_ENTRY_MAX + 1);
	auto_state struct state state = {0};
	struct err err = {0};

	(void)unused;
	assert_non_null(big);
	memset(big, 'x', STATE_ENV_ENTRY_MAX + 1);
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	check_err(state_set_env(&state, STR(""), STR("1"), &err), &err, ERR_REFUSED);
	check_err(state_set_env(&state, STR("a=b"), STR("1"), &err), &err, ERR_REFUSED);
	check_err(state_set_env(&state, STR("a"), (struct str){big, STATE_ENV_ENTRY_MAX - 1}, &err),
		  &err, ERR_LIMIT);
	for (size_t i = 0; i < 7; i++)
		check_ok(state_set_env(&state, (struct str){&"abcdefg"[i], 1},
				       (struct str){big, STATE_ENV_ENTRY_MAX - 2}, &err),
			 &err);
	check_ok(state_set_env(&state, STR("h"), (struct str){big, 1000}, &err), &err);
	check_err(state_set_env(&state, STR("i"), (struct str){big, STATE_ENV_ENTRY_MAX - 2}, &err),
		  &err, ERR_LIMIT);
}

/* A base with `count` variables of `len` bytes each. */
static int make_base_with_env(size_t count, size_t len, struct err *err)
{
	auto_free char *entry = calloc(1, len + 1);
	auto_buf struct buf members = BUF_INIT(IMAGE_CONFIG_MAX);
	auto_state struct state state = {0};

	assert_non_null(entry);
	memset(entry, 'x', len);
	check_ok(buf_add(&members, STR(",\"config\":{\"Env\":[\"\""), err), err);
	for (size_t i = 0; i < count; i++)
		check_ok(buf_addf(&members, err, ",\"%s\"", entry), err);
	check_ok(buf_add(&members, STR("]}"), err), err);
	return make_base(members.ptr, MEDIA_OCI_LAYER_TAR, &state, err);
}

static void a_base_with_which_no_program_starts_is_refused(void **unused)
{
	auto_free char *members = NULL;
	auto_state struct state state = {0};
	struct err err = {0};

	(void)unused;
	check_ok(make_base_with_env(STATE_ENV_COUNT_MAX - 2, 20, &err), &err);
	check_err(make_base_with_env(STATE_ENV_COUNT_MAX, 20, &err), &err, ERR_LIMIT);
	check_ok(make_base_with_env(1, STATE_ENV_ENTRY_MAX, &err), &err);
	check_err(make_base_with_env(1, STATE_ENV_ENTRY_MAX + 1, &err), &err, ERR_LIMIT);
	check_ok(make_base_with_env(1024, 1024, &err), &err);
	check_err(make_base_with_env(1025, 1024, &err), &err, ERR_LIMIT);
	assert_true(asprintf(&members, ",\"config\":{\"User\":\"%0*d\"}", (int)STATE_USER_MAX + 1,
			     1) > 0);
	check_err(make_base(members, MEDIA_OCI_LAYER_TAR, &state, &err), &err, ERR_LIMIT);
}

static void working_directories_join_as_text(void **unused)
{
	static const struct {
		const char *path;
		const char *then;
	} cases[] = {
		{"/a", "/a"},           {"b", "/a/b"}, {"c/", "/a/b/c"},
		{"..", "/a/b"},         {".", "/a/b"}, {"../../../..", "/"},
		{"x//y/./z", "/x/y/z"}, {"/", "/"},    {"a b", "/a b"},
	};
	auto_state struct state state = {0};
	struct err err = {0};

	(void)unused;
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_ok(state_set_workdir(&state, str_of(cases[i].path), &err), &err);
		assert_true(str_equal(state_workdir(&state), str_of(cases[i].then)));
	}
}

static void steps_add_history_and_layers(void **unused)
{
	auto_state struct state state = {0};
	struct state_layer layer = {.size = 5, .media_type = MEDIA_OCI_LAYER_ZSTD};
	struct digest first;
	struct err err = {0};

	(void)unused;
	check_ok(digest_parse(STR(HEX_A), &layer.diff_id, &err), &err);
	check_ok(digest_parse(STR(HEX_B), &layer.blob, &err), &err);
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	check_ok(state_add_step(&state, STR("ENV a=b"), 0, NULL, &err), &err);
	check_ok(state_add_step(&state, STR("RUN x"), 1500, &layer, &err), &err);
	assert_true(digest_equal(&state.chain_id, &layer.diff_id));
	first = state.chain_id;
	check_config(
		&state,
		"{\"architecture\":\"amd64\",\"config\":{\"Env\":[\"PATH=" STATE_PATH_DEFAULT
		"\"]},\"created\":\"1970-01-01T00:00:01.500Z\",\"history\":[{\"created\":"
		"\"1970-01-01T00:00:00.000Z\",\"created_by\":\"ENV a=b\",\"empty_layer\":true},{"
		"\"created\":\"1970-01-01T00:00:01.500Z\",\"created_by\":\"RUN x\"}],\"os\":"
		"\"linux\",\"rootfs\":{\"diff_ids\":[\"" HEX_A "\"],\"type\":\"layers\"}}");
	check_ok(state_add_step(&state, STR("RUN y"), 2000, &layer, &err), &err);
	assert_false(digest_equal(&state.chain_id, &first));
}

static void layers_have_a_ceiling(void **unused)
{
	auto_state struct state state = {0};
	struct state_layer layer = {.size = 5, .media_type = MEDIA_OCI_LAYER_ZSTD};
	struct err err = {0};

	(void)unused;
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	while (state.layer_count < IMAGE_LAYERS_MAX)
		check_ok(state_add_step(&state, STR("RUN y"), 2000, &layer, &err), &err);
	check_err(state_add_step(&state, STR("RUN y"), 2000, &layer, &err), &err, ERR_LIMIT);
}

static void only_what_is_visible_changes_the_visible_digest(void **unused)
{
	auto_state struct state state = {0};
	struct digest before;
	struct err err = {0};

	(void)unused;
	check_ok(state_from_scratch(&amd64, &state, &err), &err);
	before = *state_visible_digest(&state);
	check_ok(state_add_step(&state, STR("RUN x"), 1, NULL, &err), &err);
	assert_true(digest_equal(&before, state_visible_digest(&state)));
	check_ok(state_set_env(&state, STR("a"), STR("b"), &err), &err);
	assert_false(digest_equal(&before, state_visible_digest(&state)));
	before = *state_visible_digest(&state);
	check_ok(state_set_workdir(&state, STR("/x"), &err), &err);
	assert_false(digest_equal(&before, state_visible_digest(&state)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scratch_has_a_path_and_nothing_else),
		cmocka_unit_test(a_base_is_kept_whole),
		cmocka_unit_test(odd_bases_are_tolerated),
		cmocka_unit_test(history_has_an_entry_for_each_layer),
		cmocka_unit_test(docker_types_become_ours),
		cmocka_unit_test(the_environment_keeps_its_order),
		cmocka_unit_test(a_variable_that_a_base_has_twice_is_set_once),
		cmocka_unit_test(names_and_sizes_of_variables_are_judged),
		cmocka_unit_test(a_base_with_which_no_program_starts_is_refused),
		cmocka_unit_test(working_directories_join_as_text),
		cmocka_unit_test(steps_add_history_and_layers),
		cmocka_unit_test(layers_have_a_ceiling),
		cmocka_unit_test(only_what_is_visible_changes_the_visible_digest),
	};

	return cmocka_run_group_tests_name("bake/state", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/instruction.h"
#include "bake/state.h"
#include "tests/check.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* On scratch, in /work, with A, DIR and NAME. */
static void state_make(struct state *state)
{
	struct platform platform;
	struct err err = {0};

	platform_host(&platform);
	check_ok(state_from_scratch(&platform, state, &err), &err);
	check_ok(state_set_workdir(state, STR("/work"), &err), &err);
	check_ok(state_set_env(state, STR("A"), STR("a"), &err), &err);
	check_ok(state_set_env(state, STR("DIR"), STR("/d/e"), &err), &err);
	check_ok(state_set_env(state, STR("NAME"), STR("n"), &err), &err);
}

/* One mount of a RUN, as the plan sees it. */
static void parse(const char *text, struct mount *out)
{
	auto_state struct state state = {0};
	struct err err = {0};

	state_make(&state);
	if (mount_parse(str_of(text), &state, out, &err) < 0)
		fail_msg("%s: %s", text, err.text);
}

static const char *or_none(const char *text)
{
	return text ? text : "-";
}

static void each_type_has_its_defaults(void **state)
{
	static const struct {
		const char *text;
		enum mount_type type;
		const char *target;
		const char *source;
		const char *id;
		const char *env;
		bool read_only;
		mode_t mode;
	} cases[] = {
		{"target=/m", MOUNT_BIND, "/m", "/", "-", "-", true, 0755},
		{"type=bind,source=a/b,target=/m", MOUNT_BIND, "/m", "a/b", "-", "-", true, 0755},
		{"TYPE=Bind,SRC=a,Dst=/m,RW", MOUNT_BIND, "/m", "a", "-", "-", false, 0755},
		{"target=/m,readwrite=true", MOUNT_BIND, "/m", "/", "-", "-", false, 0755},
		{"target=/m,ro=false", MOUNT_BIND, "/m", "/", "-", "-", false, 0755},
		{"target=/m,rw=0", MOUNT_BIND, "/m", "/", "-", "-", true, 0755},
		{"type=cache,target=/c", MOUNT_CACHE, "/c", "-", "/c", "-", false, 0755},
		{"type=cache,target=/c/../d/", MOUNT_CACHE, "/d", "-", "/d", "-", false, 0755},
		{"type=cache,target=c,ro", MOUNT_CACHE, "/work/c", "-", "/work/c", "-", true, 0755},
		{"type=cache,destination=/c,id=k,mode=1777", MOUNT_CACHE, "/c", "-", "k", "-",
		 false, 01777},
		{"type=cache,target=/c,from=tools:1,source=s", MOUNT_CACHE, "/c", "s", "/c", "-",
		 false, 0755},
		{"type=tmpfs,target=/t", MOUNT_TMPFS, "/t", "-", "-", "-", false, 0755},
		{"type=secret,id=s", MOUNT_SECRET, "/run/secrets/s", "-", "s", "-", true, 0400},
		{"type=secret,id=dir/s", MOUNT_SECRET, "/run/secrets/s", "-", "dir/s", "-", true,
		 0400},
		{"type=secret,source=s", MOUNT_SECRET, "/run/secrets/s", "-", "s", "-", true, 0400},
		{"type=secret,target=/root/.npmrc", MOUNT_SECRET, "/root/.npmrc", "-", ".npmrc",
		 "-", true, 0400},
		{"type=secret,id=s,target=x,mode=0440", MOUNT_SECRET, "/work/x", "-", "s", "-",
		 true, 0440},
		{"type=secret,id=s,env=TOKEN", MOUNT_SECRET, "-", "-", "s", "TOKEN", true, 0400},
		{"type=secret,id=s,env=TOKEN,target=/t", MOUNT_SECRET, "/t", "-", "s", "TOKEN",
		 true, 0400},
		/* variables */
		{"type=cache,target=$DIR/${NAME},id=x$A", MOUNT_CACHE, "/d/e/n", "-", "xa", "-",
		 false, 0755},
		/* quotes */
		{"\"target=/a,b\",source=c", MOUNT_BIND, "/a,b", "c", "-", "-", true, 0755},
		{"\"target=/a \"\"b\"\"\"", MOUNT_BIND, "/a b", "/", "-", "-", true, 0755},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_mount struct mount made = {0};

		parse(cases[i].text, &made);
		assert_int_equal(made.type, cases[i].type);
		assert_string_equal(or_none(made.target), cases[i].target);
		assert_string_equal(or_none(made.source), cases[i].source);
		assert_string_equal(or_none(made.id), cases[i].id);
		assert_string_equal(or_none(made.env), cases[i].env);
		assert_int_equal(made.read_only, cases[i].read_only);
		assert_int_equal(made.mode, cases[i].mode);
	}
}

static void owners_sharing_and_sizes_are_read(void **state)
{
	auto_mount struct mount cache = {0};
	auto_mount struct mount alone = {0};
	auto_mount struct mount secret = {0};
	static const struct {
		const char *text;
		uint64_t size;
	} sizes[] = {
		{"type=tmpfs,target=/t,size=4096", 4096},
		{"type=tmpfs,target=/t,size=8b", 8},
		{"type=tmpfs,target=/t,size=1k", 1024},
		{"type=tmpfs,target=/t,size=64M", (uint64_t)64 << 20},
		{"type=tmpfs,target=/t,size=2gb", (uint64_t)2 << 30},
		{"type=tmpfs,target=/t,size=1GiB", (uint64_t)1 << 30},
		{"type=tmpfs,target=/t,size=1t", (uint64_t)1 << 40},
	};

	(void)state;
	parse("type=cache,target=/c,sharing=locked,uid=1000,gid=50,mode=700", &cache);
	assert_int_equal(cache.sharing, CACHE_LOCKED);
	assert_int_equal(cache.uid, 1000);
	assert_int_equal(cache.gid, 50);
	assert_int_equal(cache.mode, 0700);
	assert_false(cache.by_value);
	parse("type=secret,id=s,cache=Value", &secret);
	assert_true(secret.by_value);
	parse("type=cache,target=/c,sharing=Private", &alone);
	assert_int_equal(alone.sharing, CACHE_PRIVATE);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		auto_mount struct mount made = {0};

		parse(sizes[i].text, &made);
		assert_int_equal(made.size, sizes[i].size);
	}
}

static void what_is_wrong_is_refused_in_words(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{"type=bind", "a bind mount needs a target"},
		{"type=cache", "a cache mount needs a target"},
		{"type=tmpfs", "a tmpfs mount needs a target"},
		{"type=secret", "a secret mount needs an id or a target"},
		{"type=volume,target=/x", "type=volume: expected bind, cache, secret or tmpfs"},
		{"type=cach,target=/x", "did you mean cache?"},
		{"type=ssh", "type=ssh is refused: a step never reaches an agent of the host"},
		{"type=SSH,id=default", "--mount=type=secret,id=key GIT_SSH_COMMAND='ssh -i"},
		{"target=/", "nothing is mounted on the root"},
		{"target=/x/..", "nothing is mounted on the root"},
		{"target=..", "nothing is mounted on the root"},
		{"target=", "target= is empty"},
		{"target=$UNSET", "target= is empty"},
		{"target=/x,targt=/y", "unknown key targt; did you mean target?"},
		{"target=/x,", "an empty field"},
		{"", "an empty field"},
		{"target=/x,dst=/y", "dst is given twice"},
		{"target=/x,ro,rw", "both ro and rw"},
		{"target=/x,ro=maybe", "ro=maybe: expected true or false"},
		{"target", "target needs a value: target="},
		{"target=/x,from=NO::NAME", "is no image's name"},
		{"target=/x,from=$IMAGE", "variables are not expanded in from"},
		{"target=/x,mode=0755", "a bind mount has no mode"},
		{"target=/x,uid=1", "a bind mount has no uid"},
		{"target=/x,gid=1", "a bind mount has no gid"},
		{"target=/x,size=1m", "a bind mount has no size"},
		{"target=/x,required", "a bind mount has no required"},
		{"target=/x,sharing=shared", "a bind mount has no sharing"},
		{"target=/x,env=E", "a bind mount has no env"},
		{"type=tmpfs,target=/x,mode=0755", "a tmpfs mount has no mode"},
		{"type=tmpfs,target=/x,source=y", "a tmpfs mount has no source"},
		{"type=tmpfs,target=/x,from=y", "a tmpfs mount has no from"},
		{"type=tmpfs,target=/x,size=big", "size=big: expected a size such as 64m"},
		{"type=tmpfs,target=/x,size=0", "size=0: expected a size"},
		{"type=tmpfs,target=/x,size=1kk", "size=1kk: expected a size"},
		{"type=tmpfs,target=/x,size=99999999999999999999", "expected a size"},
		{"type=tmpfs,target=/x,size=99999999p", "expected a size"},
		{"type=cache,target=/x,sharing=some", "expected shared, private or locked"},
		{"type=cache,target=/x,mode=0999", "mode=0999: expected octal, 0 to 7777"},
		{"type=cache,target=/x,mode=17777", "expected octal"},
		{"type=cache,target=/x,uid=65536", "uid=65536: expected 0 to 65535"},
		{"type=cache,target=/x,uid=-1", "uid=-1: expected 0 to 65535"},
		{"type=cache,target=/x,gid=app", "gid=app: expected 0 to 65535"},
		{"type=cache,target=/x,source=/s", "source without from"},
		{"type=cache,target=/x,from=alpine,uid=5", "both from and uid"},
		{"type=cache,target=/x,from=0", "there are no stages"},
		{"type=cache,target=/x,required", "a cache mount has no required"},
		{"type=secret,id=s,from=x", "a secret mount has no from"},
		{"type=secret,id=s,sharing=locked", "a secret mount has no sharing"},
		{"type=secret,id=s,source=t", "both source and id"},
		{"type=secret,id=s,rw", "a secret mount has no rw"},
		{"type=secret,id=..", "id=.. is no file's name"},
		{"type=secret,id=s,cache=none", "cache=none: expected value"},
		{"type=cache,target=/x,cache=value", "a cache mount has no cache"},
		{"type=secret,id=s,env=A=B", "env=A=B: not the name of a variable"},
		{"type=secret,id=s,env=", "env= is empty"},
		{"target=/x\"y", "a quote in the middle of a field"},
		{"\"target=/x", "the quote \" is never closed"},
		{"\"target=/x\"y", "expected a comma behind the closing quote"},
		{"target='/x", "the quote ' is never closed"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_state struct state images = {0};
		struct mount made = {.size = 42};
		struct err err = {0};

		state_make(&images);
		if (mount_parse(str_of(cases[i].text), &images, &made, &err) == 0)
			fail_msg("%s was taken", cases[i].text);
		assert_int_equal(err.kind, ERR_REFUSED);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: no '%s' in: %s", cases[i].text, cases[i].says, err.text);
		assert_int_equal(made.size, 42);
	}
}

/* Before anything has run nobody knows what a variable says. */
static void a_form_is_judged_without_the_values_of_variables(void **state)
{
	static const char *const taken[] = {
		"type=$T,target=/x,mode=0755",
		"target=$X",
		"type=secret,id=$X",
		"type=cache,target=..",
		"type=tmpfs,target=/x,size=$S",
		"type=cache,target=/c,mode=$M,sharing=$H,uid=$U",
		"target=/x,ro=$R",
	};
	static const char *const refused[] = {"type=ssh", "target=/", "mode=1,target=/x",
					      "target=${X", "type=tmpfs"};

	(void)state;
	for (size_t i = 0; i < COUNT(taken); i++) {
		auto_mount struct mount form = {0};
		struct err err = {0};

		if (mount_parse(str_of(taken[i]), NULL, &form, &err) < 0)
			fail_msg("%s: %s", taken[i], err.text);
	}
	for (size_t i = 0; i < COUNT(refused); i++) {
		auto_mount struct mount form = {0};
		struct err err = {0};

		check_err(mount_parse(str_of(refused[i]), NULL, &form, &err), &err, ERR_REFUSED);
	}
}

static void a_run_has_its_mounts_parents_first(void **state)
{
	static const char *const order[] = {NULL, "/a", "/a", "/a/b", "/a/b/c", "/a-b"};
	char *texts[] = {
		(char[]){"type=tmpfs,target=/a/b/c"},    (char[]){"type=tmpfs,target=/a-b"},
		(char[]){"type=tmpfs,target=/a,size=1"}, (char[]){"target=/a/b"},
		(char[]){"type=secret,id=s,env=E"},      (char[]){"type=tmpfs,target=/a,size=2"}};
	const struct words words = {texts, COUNT(texts)};
	auto_state struct state images = {0};
	auto_mounts struct mounts mounts = {0};
	struct err err = {0};

	(void)state;
	state_make(&images);
	check_ok(mounts_parse(&words, &images, &mounts, &err), &err);
	assert_int_equal(mounts.count, COUNT(order));
	for (size_t i = 0; i < COUNT(order); i++)
		assert_string_equal(or_none(mounts.at[i].target), or_none(order[i]));
	assert_int_equal(mounts.at[1].size, 1);
	assert_int_equal(mounts.at[2].size, 2);
}

static void a_source_is_a_name_and_no_pattern(void **state)
{
	static const struct {
		const char *text;
		const char *word;
	} cases[] = {
		{"target=/x", "/"},
		{"source=a/b c,target=/x", "a/b c"},
		{"source=a*b,target=/x", "a[*]b"},
		{"source=[a]?,target=/x", "[[]a][?]"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_buf struct buf word = BUF_INIT(64);
		auto_mount struct mount made = {0};
		struct err err = {0};

		parse(cases[i].text, &made);
		check_ok(mount_source_word(&made, &word, &err), &err);
		assert_string_equal(word.ptr, cases[i].word);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_has_its_defaults),
		cmocka_unit_test(owners_sharing_and_sizes_are_read),
		cmocka_unit_test(what_is_wrong_is_refused_in_words),
		cmocka_unit_test(a_form_is_judged_without_the_values_of_variables),
		cmocka_unit_test(a_source_is_a_name_and_no_pattern),
		cmocka_unit_test(a_run_has_its_mounts_parents_first),
	};

	return cmocka_run_group_tests_name("bake/mount", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/ahead_priv.h"
#include "tests/bake/scene.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>

struct names {
	char text[AHEAD_NAMES][16];
	const char *at[AHEAD_NAMES];
};

static void make_names(const struct scene *scene, struct names *names)
{
	for (size_t i = 0; i < AHEAD_NAMES; i++) {
		char path[32];

		(void)snprintf(names->text[i], sizeof(names->text[i]), "n%zu", i);
		names->at[i] = names->text[i];
		(void)snprintf(path, sizeof(path), "context/n%zu", i);
		if (i % 5 == 1)
			scene_dir(scene, path, 0755);
		else if (i % 5 != 0)
			scene_file(scene, path, names->text[i], 0644);
	}
}

/* A file is what it is called; those that end in 7 cannot be told. */
static bool tell_name(void *ctx, int dirfd, const char *name, struct stat *st, struct digest *out)
{
	atomic_size_t *told = ctx;

	(void)dirfd;
	assert(S_ISREG(st->st_mode));
	atomic_fetch_add(told, 1);
	if (*told % 3 == 0)
		(void)sched_yield();
	digest_of(str_of(name), out);
	return name[strlen(name) - 1] != '7';
}

static void check_entry(const struct ahead_entry *entry, size_t i, const char *name)
{
	struct digest what;

	if (i % 5 == 0) {
		assert_int_equal(entry->os, ENOENT);
		assert_false(entry->known);
		return;
	}
	assert_int_equal(entry->os, 0);
	assert_int_equal(S_ISDIR(entry->st.st_mode), i % 5 == 1);
	assert_int_equal(entry->known, i % 5 != 1 && i % 10 != 7);
	digest_of(str_of(name), &what);
	if (entry->known)
		assert_true(digest_equal(&entry->what, &what));
}

static void each_name_is_looked_at_once(void **state)
{
	struct scene *scene = *state;
	atomic_size_t told = 0;
	AUTO(ahead) struct ahead *ahead = ahead_new(tell_name, &told);
	auto_free struct names *names = calloc(1, sizeof(*names));
	auto_free struct ahead_entry *entries = calloc(AHEAD_NAMES, sizeof(*entries));

	assert_true(names && entries);
	make_names(scene, names);
	for (size_t round = 0; round < 40; round++) {
		size_t count = round % 2 ? AHEAD_NAMES : 1 + round; /* alone, and shared */
		size_t files = 0;

		atomic_store(&told, 0);
		ahead_look(ahead, scene->contextfd, names->at, count, entries);
		for (size_t i = 0; i < count; i++) {
			check_entry(&entries[i], i, names->text[i]);
			files += i % 5 > 1;
		}
		assert_int_equal(told, files);
	}
}

static void without_anybody_to_tell_it_only_looks(void **state)
{
	struct scene *scene = *state;
	AUTO(ahead) struct ahead *ahead = ahead_new(NULL, NULL);
	const char *const names[] = {"f", "none"};
	struct ahead_entry entries[2];

	scene_file(scene, "context/f", "12345", 0644);
	ahead_look(ahead, scene->contextfd, names, 2, entries);
	assert_false(entries[0].known);
	assert_int_equal(entries[0].st.st_size, 5);
	assert_int_equal(entries[1].os, ENOENT);
	ahead_look(ahead, scene->contextfd, names, 0, entries);
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(each_name_is_looked_at_once),
		SCENE_TEST(without_anybody_to_tell_it_only_looks),
	};

	return cmocka_run_group_tests_name("bake/ahead", tests, NULL, NULL);
}

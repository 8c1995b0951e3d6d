/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/context.h"
#include "bake/copy.h"
#include "bake/shortcut_priv.h"
#include "bake/source_priv.h"
#include "tests/bake/stage.h"

#include <sys/xattr.h>

static struct digest digest_with(const struct stage *stage, struct store *store, const char *source)
{
	const struct context_sources sources = {
		.fd = stage->scene.contextfd,
		.paths = &source,
		.count = 1,
		.store = store,
	};
	struct digest digest;
	struct err err = {0};

	check_ok(context_digest(&sources, NULL, &digest, &err), &err);
	return digest;
}

/* With what is remembered, and by reading everything. */
static bool remembers_right(const struct stage *stage, const char *source)
{
	struct digest cached = digest_with(stage, stage->fixture->store, source);
	struct digest read = digest_with(stage, NULL, source);

	return digest_equal(&cached, &read);
}

/* Remember that a file is something else than it is: whoever reads it will know better. */
static void lie_about(const struct stage *stage, const char *path)
{
	AUTO(shortcut)
	struct shortcut *shortcut = shortcut_open(stage->fixture->store, stage->scene.contextfd);
	struct stat st = scene_stat(&stage->scene, path);
	struct digest lie;

	digest_of(STR("a lie"), &lie);
	shortcut_add(shortcut, &st, shortcut_now() + 3000000000, &lie);
	assert_true(shortcut_keep(shortcut));
}

static void a_file_that_is_what_it_was_is_not_read(void **state)
{
	struct stage *stage = *state;

	scene_dir(&stage->scene, "context/a", 0755);
	scene_file(&stage->scene, "context/a/f", "one", 0644);
	scene_file(&stage->scene, "context/a/g", "two", 0644);
	scene_file(&stage->scene, "context/top", "top", 0644);
	assert_true(remembers_right(stage, "a"));
	lie_about(stage, "context/a/f");
	assert_false(remembers_right(stage, "a"));
	assert_true(remembers_right(stage, "top"));
	lie_about(stage, "context/top");
	assert_false(remembers_right(stage, "top"));
}

/* T1 T2 T3 T4: what changed is read, whatever was done to hide it. */
static void a_file_that_changed_is_read(void **state)
{
	struct stage *stage = *state;
	struct scene *scene = &stage->scene;
	struct timespec times[2];
	char path[64];

	scene_dir(scene, "context/a", 0755);
	scene_file(scene, "context/a/f", "one", 0644);
	(void)snprintf(path, sizeof(path), "%s/context/a/f", scene->path);
	lie_about(stage, "context/a/f");
	times[0] = times[1] = scene_stat(scene, "context/a/f").st_mtim;
	scene_file(scene, "context/a/f", "two", 0644);
	assert_int_equal(utimensat(scene->fd, "context/a/f", times, 0), 0);
	assert_true(remembers_right(stage, "a"));

	lie_about(stage, "context/a/f");
	assert_int_equal(fchmodat(scene->fd, "context/a/f", 0600, 0), 0);
	assert_true(remembers_right(stage, "a"));

	lie_about(stage, "context/a/f");
	scene_file(scene, "context/a/new", "two", 0600);
	assert_int_equal(renameat(scene->fd, "context/a/new", scene->fd, "context/a/f"), 0);
	assert_true(remembers_right(stage, "a"));

	lie_about(stage, "context/a/f");
	if (setxattr(path, "user.a", "b", 1, 0) == 0)
		assert_true(remembers_right(stage, "a"));
}

/* T21: in another place nothing is remembered, and the key is the same. */
static void another_place_has_its_own_memory(void **state)
{
	struct stage *stage = *state;
	struct digest here;
	struct digest there;

	scene_dir(&stage->scene, "context/a", 0755);
	scene_file(&stage->scene, "context/a/f", "one", 0644);
	scene_dir(&stage->scene, "context/b", 0755);
	scene_file(&stage->scene, "context/b/f", "one", 0644);
	here = digest_with(stage, stage->fixture->store, "a");
	there = digest_with(stage, stage->fixture->store, "b");
	assert_true(digest_equal(&here, &there));
}

static void links_and_big_directories_are_remembered_right(void **state)
{
	struct stage *stage = *state;

	scene_dir(&stage->scene, "context/a", 0755);
	for (int i = 0; i < 600; i++) { /* two looks ahead */
		char path[64];

		(void)snprintf(path, sizeof(path), "context/a/file-%d", i);
		scene_file(&stage->scene, path, path, 0644);
	}
	scene_link(&stage->scene, "context/a/link", "file-1");
	assert_int_equal(
		linkat(stage->scene.fd, "context/a/file-7", stage->scene.fd, "context/a/hard", 0),
		0);
	assert_true(remembers_right(stage, "a"));
	assert_true(remembers_right(stage, "a"));
	lie_about(stage, "context/a/file-590");
	assert_false(remembers_right(stage, "a"));
}

static void the_copy_need_not_name_what_is_known(void **state)
{
	struct stage *stage = *state;
	const char *source = "f";
	struct digest content;
	struct copy_spec spec = {
		.sources = {.fd = stage->scene.contextfd, .paths = &source, .count = 1},
		.destination = "/f",
		.workdir = "/",
		.content = &content,
	};
	struct err err = {0};

	scene_file(&stage->scene, "context/f", "bytes", 0644);
	lie_about(stage, "context/f");
	content = digest_with(stage, stage->fixture->store, "f");
	check_err(copy_into(stage->scene.rootfd, &spec, &err), &err, ERR_UNAVAILABLE);
	spec.shortcut = shortcut_open(stage->fixture->store, stage->scene.contextfd);
	check_ok(copy_into(stage->scene.rootfd, &spec, &err), &err);
	scene_check_file(&stage->scene, "root/f", "bytes", 0644);
	scene_file(&stage->scene, "context/f", "other", 0644);
	check_err(copy_into(stage->scene.rootfd, &spec, &err), &err, ERR_UNAVAILABLE);
	shortcut_close(spec.shortcut);
}

static int no_start(void *ctx, const struct source_spec *source, const struct source_entry *entry,
		    struct err *err)
{
	(void)ctx;
	(void)source;
	(void)entry;
	(void)err;
	return 0;
}

static int no_visit(void *ctx, const struct source_entry *entry, struct err *err)
{
	(void)ctx;
	(void)entry;
	(void)err;
	return 0;
}

/* The first file that is visited takes the last one away. */
static int take_one_away(void *ctx, struct source_entry *entry, struct err *err)
{
	const struct scene *scene = ctx;

	(void)entry;
	(void)err;
	(void)unlinkat(scene->fd, "context/a/z", 0);
	return 0;
}

static void what_vanishes_meanwhile_has_changed(void **state)
{
	struct stage *stage = *state;
	struct source_spec source = {.fd = stage->scene.contextfd, .path = "/a", .name = "a"};
	const struct source_visitor visitor = {
		.start = no_start,
		.enter = no_visit,
		.file = take_one_away,
		.link = no_visit,
		.node = no_visit,
		.ctx = &stage->scene,
	};
	struct err err = {0};

	scene_dir(&stage->scene, "context/a", 0755);
	for (size_t i = 0; i < AHEAD_NAMES; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "context/a/f%zu", i);
		scene_file(&stage->scene, path, "", 0644);
	}
	scene_file(&stage->scene, "context/a/z", "", 0644);
	check_err(source_walk(&source, &visitor, &err), &err, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "z changed while it was read"));
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(a_file_that_is_what_it_was_is_not_read),
		STAGE_TEST(a_file_that_changed_is_read),
		STAGE_TEST(another_place_has_its_own_memory),
		STAGE_TEST(links_and_big_directories_are_remembered_right),
		STAGE_TEST(the_copy_need_not_name_what_is_known),
		STAGE_TEST(what_vanishes_meanwhile_has_changed),
	};

	return cmocka_run_group_tests_name("bake/context_cached", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* stack_repeats_test.c - a layer that comes again is stacked once, and seen as if it were not. */
#include "layers/unpack.h"
#include "tests/check.h"
#include "tests/layers/listing.h"
#include "tests/layers/tarball.h"
#include "tests/sandbox/stack_place.h"

#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>

#define REPEAT_KINDS 3
#define REPEAT_TREES 6
#define REPEAT_ROUNDS 20
#define REPEAT_DEPTH 3
#define REPEAT_PATH_MAX ((size_t)32)

static unsigned draw(uint32_t *seed, unsigned below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 16) % below;
}

static void add_name(struct tarball *tar, const char *dir, const char *name, char type,
		     uint32_t *seed)
{
	static const mode_t modes[] = {0700, 0755, 01777};
	char path[REPEAT_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s", dir, name);
	tarball_entry(tar, .name = path, .type = type, .mode = modes[draw(seed, 3)],
		      .data = type == '0' ? STR("hi") : STR(""));
}

/* Files, whiteouts, directories with and without an entry of their own, opaque ones. */
static void add_names(struct tarball *tar, const char *dir, uint32_t *seed, int depth)
{
	static const char *const names[] = {"a", "b", "c"};
	static const char *const whiteouts[] = {".wh.a", ".wh.b", ".wh.c"};
	char path[REPEAT_PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsigned kind = draw(seed, 7);

		(void)snprintf(path, sizeof(path), "%s%s/", dir, names[i]);
		if (kind == 0)
			add_name(tar, dir, names[i], '0', seed);
		if (kind == 1)
			add_name(tar, dir, whiteouts[i], '0', seed);
		if (kind == 2 || kind == 3)
			add_name(tar, path, "", '5', seed);
		if (kind == 3)
			add_name(tar, path, ".wh..wh..opq", '0', seed);
		if (kind >= 2 && kind <= 4 && depth < REPEAT_DEPTH)
			add_names(tar, path, seed, depth + 1);
	}
}

static void unpack_as(const struct place *place, const struct tarball *tar, const struct digest *id)
{
	struct memory_source source;
	char name[DIGEST_HEX_MAX];
	auto_close int fd = place_open_new(place->stack.treesfd, digest_hex(id, name));
	struct err err;

	memory_source_init(&source, buf_str(&tar->bytes), 0);
	check_ok(unpack_tar(fd, &source.source, NULL, &err), &err);
}

static struct digest name_tree(char kind, unsigned round, size_t i)
{
	struct digest id;
	char text[32];

	(void)snprintf(text, sizeof(text), "%c %u %zu", kind, round, i);
	digest_of(str_of(text), &id);
	return id;
}

/* What is seen of a stack, with corrections of its own. */
static void list_view(const struct place *place, struct digest *ids, size_t count, const char *name,
		      struct buf *out)
{
	struct stack stack = place->stack;
	auto_close int ownfd = place_open_new(place->stack.ownfd, name);
	auto_close int view = -1;
	struct err err;

	stack.ownfd = ownfd;
	stack.diff_ids = ids;
	stack.diff_id_count = stack_distinct(ids, count);
	check_ok(stack_correct(&stack, &err), &err);
	check_ok(stack_view(&stack, &view, &err), &err);
	listing_add(view, LISTING_NO_DIR_TIMES, out);
}

/* Layers come again; beside them the same, each time as a tree of its own. */
static void try_repeats(const struct place *place, unsigned round)
{
	auto_buf struct buf seen = BUF_INIT(LISTING_MAX);
	auto_buf struct buf expected = BUF_INIT(LISTING_MAX);
	struct digest repeated[REPEAT_TREES];
	struct digest copies[REPEAT_TREES];
	struct tarball tars[REPEAT_KINDS];
	uint32_t seed = round;
	char name[32];

	for (size_t i = 0; i < REPEAT_KINDS; i++) {
		struct digest id = name_tree('k', round, i);

		tarball_init(&tars[i]);
		if (draw(&seed, 4) == 0)
			add_name(&tars[i], "./", "", '5', &seed);
		if (draw(&seed, 10) == 0)
			add_name(&tars[i], "", ".wh..wh..opq", '0', &seed);
		add_names(&tars[i], "", &seed, 1);
		tarball_end(&tars[i]);
		unpack_as(place, &tars[i], &id);
	}
	for (size_t i = 0; i < REPEAT_TREES; i++) {
		unsigned kind = draw(&seed, REPEAT_KINDS);

		repeated[i] = name_tree('k', round, kind);
		copies[i] = name_tree('c', round, i);
		unpack_as(place, &tars[kind], &copies[i]);
	}
	(void)snprintf(name, sizeof(name), "repeated%u", round);
	list_view(place, repeated, REPEAT_TREES, name, &seen);
	(void)snprintf(name, sizeof(name), "copies%u", round);
	list_view(place, copies, REPEAT_TREES, name, &expected);
	if (!str_equal(buf_str(&seen), buf_str(&expected)))
		fail_msg("round %u:\n%s\ninstead of\n%s", round, buf_str(&seen).ptr,
			 buf_str(&expected).ptr);
	for (size_t i = 0; i < REPEAT_KINDS; i++)
		tarball_done(&tars[i]);
}

static void a_layer_that_comes_again_is_seen_as_if_it_were_another(void **state)
{
	for (unsigned round = 0; round < REPEAT_ROUNDS; round++)
		try_repeats(*state, round);
}

static void of_equal_trees_the_highest_stays(void **state)
{
	struct digest a = name_tree('t', 0, 0);
	struct digest b = name_tree('t', 0, 1);
	struct digest ids[] = {a, a, b, a, b};

	(void)state;
	assert_int_equal(stack_distinct(ids, 5), 2);
	assert_true(digest_equal(&ids[0], &a) && digest_equal(&ids[1], &b));
	assert_int_equal(stack_distinct(ids, 0), 0);
}

#define STACK_TEST(test) cmocka_unit_test_setup_teardown(test, place_make, place_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_equal_trees_the_highest_stays),
		STACK_TEST(a_layer_that_comes_again_is_seen_as_if_it_were_another),
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 125;
	return cmocka_run_group_tests_name("sandbox/stack_repeats", tests, NULL, NULL);
}

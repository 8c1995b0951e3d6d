/* SPDX-License-Identifier: Apache-2.0 */
/* A change through the store and back; and many random ones, without it. */
#include "layers/diff.h"

#include "layers/unpack.h"
#include "tests/layers/stacking.h"
#include "tests/layers/store_fixture.h"
#include "tests/layers/tarball.h"

#include <fcntl.h>

static int make_dir(const char *parent, const char *name)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", parent, name);
	assert_int_equal(mkdir(path, 0755), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void the_stored_layer_is_the_sealed_directory(void **state)
{
	struct store_fixture *fixture = *state;
	auto_close int up = make_dir(fixture->parent, "up");
	auto_close int tree = make_dir(fixture->parent, "tree");
	auto_buf struct buf tar = BUF_INIT((size_t)64 << 20);
	struct buf_sink sink = BUF_SINK(&tar);
	struct memory_source source;
	struct diff_result result;
	struct digest diff_id;
	char path[64];
	struct err err;

	(void)snprintf(path, sizeof(path), "%s/up", fixture->parent);
	run_script(path, "mkdir -p a/b; head -c 3000000 /dev/urandom >a/b/big; ln a/b/big a/link\n"
			 "for i in $(seq 300); do echo $i >a/$i; done; ln -s big a/b/s");
	check_ok(diff_seal(fixture->store, &(struct diff_spec){.upperfd = up, .lowerfd = -1},
			   &result, &err),
		 &err);
	assert_false(result.empty);
	check_ok(layer_read(fixture->store, &result.info.blob, tar.max, &sink.sink, &err), &err);
	assert_int_equal(tar.len, result.info.tar_size);
	digest_of(buf_str(&tar), &diff_id);
	assert_true(digest_equal(&diff_id, &result.info.diff_id));
	memory_source_init(&source, buf_str(&tar), 5000);
	check_ok(unpack_tar(tree, &source.source, NULL, &err), &err);
	listing_check_equal(tree, up, LISTING_MARKS);
}

static void what_differs_in_nothing_is_no_blob(void **state)
{
	struct store_fixture *fixture = *state;
	auto_close int up = make_dir(fixture->parent, "up");
	struct diff_result result;
	struct err err;

	check_ok(diff_seal(fixture->store, &(struct diff_spec){.upperfd = up, .lowerfd = -1},
			   &result, &err),
		 &err);
	assert_true(result.empty);
}

#define RANDOM_LAYERS 6
#define RANDOM_STEPS 40
#define RANDOM_SEED 20240501U

/* One of a few names, at most three deep, so that steps meet each other. */
static void random_path(unsigned *seed, struct buf *out)
{
	int depth = 1 + (int)(rand_r(seed) % 3);
	struct err err;

	for (int i = 0; i < depth; i++)
		check_ok(buf_addf(out, &err, "%s%c", i ? "/" : "", 'a' + (int)(rand_r(seed) % 4)),
			 &err);
}

static void random_step(unsigned *seed, struct buf *script)
{
	static const char *const commands[] = {
		"mkdir -p \"$x\"",
		"rm -rf \"$x\"",
		"[ -p \"$x\" ] || echo one >\"$x\"",
		"[ -p \"$x\" ] || echo two >\"$x\"; touch -d @9 \"$x\"",
		"mv -T \"$x\" \"$y\"",
		"rm -rf \"$y\"; cp -a \"$x\" \"$y\"",
		"ln -f \"$x\" \"$y\"",
		"rm -rf \"$x\"; ln -s \"$y\" \"$x\"",
		"chmod 700 \"$x\"",
		"chmod 755 \"$x\"",
		"chown -R 7:8 \"$x\"",
		"rm -rf \"$x\"; mkdir \"$x\"",
		"touch -d @5 \"$x\"",
		"setfattr -n user.a -v b \"$x\"",
		"mkfifo \"$x\"",
		"rm -rf \"$x\"; mknod \"$x\" c 1 3",
		"mv -T \"$x\" t; mv -T t \"$x\"",
		"chown -R 0:0 \"$x\"",
	};
	size_t which = (size_t)rand_r(seed) % (sizeof(commands) / sizeof(commands[0]));
	struct err err;

	check_ok(buf_addf(script, &err, "x="), &err);
	random_path(seed, script);
	check_ok(buf_addf(script, &err, "; y="), &err);
	random_path(seed, script);
	check_ok(buf_addf(script, &err, "\n{ %s; } 2>/dev/null || :\n", commands[which]), &err);
}

/* stack_step() checks each layer; the seed is said when one is wrong. */
static void random_changes_hold_on_every_stack(void **state)
{
	struct stacking *stacking = *state;
	unsigned seed = RANDOM_SEED;

	for (int i = 0; i < RANDOM_LAYERS; i++) {
		auto_buf struct buf script = BUF_INIT((size_t)64 * 1024);

		for (int step = 0; step < RANDOM_STEPS; step++)
			random_step(&seed, &script);
		print_message("seed %u, layer %d\n", RANDOM_SEED, i + 1);
		stack_step(stacking, script.ptr);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_stored_layer_is_the_sealed_directory,
						store_fixture_open, store_fixture_close),
		cmocka_unit_test_setup_teardown(what_differs_in_nothing_is_no_blob,
						store_fixture_open, store_fixture_close),
		stack_test(random_changes_hold_on_every_stack),
	};

	if (geteuid() != 0)
		return 125; /* overlays, owners and devices are root's to make */
	return cmocka_run_group_tests_name("layers/diff_seal", tests, NULL, NULL);
}

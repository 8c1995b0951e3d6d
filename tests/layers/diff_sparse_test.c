/* SPDX-License-Identifier: Apache-2.0 */
/* Files with holes through the tar and back: what they hold, and where. */
#include "tests/layers/stacking.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#define TAR_OF_HOLES ((size_t)64 * 1024) /* what entries without data come to */

static int run_in(struct stacking *stacking, const char *script)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/up", stacking->path);
	assert_int_equal(mkdirat(stacking->root, "up", 0755), 0);
	run_script(path, script);
	fd = openat(stacking->root, "up", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void check_data(int a, int b, off_t at, off_t end)
{
	static char x[64 * 1024];
	static char y[64 * 1024];

	while (at < end) {
		size_t n = end - at < (off_t)sizeof(x) ? (size_t)(end - at) : sizeof(x);

		assert_int_equal(pread(a, x, n, at), n);
		assert_int_equal(pread(b, y, n, at), n);
		assert_memory_equal(x, y, n);
		at += (off_t)n;
	}
}

/* What ext4 itself needs to list the pieces of a file differs with where they lie. */
#define BLOCKS_OF_EXTENTS 64

/* The same bytes, the same holes, and as many blocks. */
static void check_twins(int up, int tree, const char *name)
{
	auto_close int a = openat(up, name, O_RDONLY | O_CLOEXEC);
	auto_close int b = openat(tree, name, O_RDONLY | O_CLOEXEC);
	struct stat was;
	struct stat is;
	off_t at = 0;

	assert_true(a >= 0 && b >= 0);
	assert_int_equal(fsync(a) | fsync(b), 0);
	assert_int_equal(fstat(a, &was) | fstat(b, &is), 0);
	assert_int_equal(is.st_size, was.st_size);
	assert_in_range(is.st_blocks - was.st_blocks + BLOCKS_OF_EXTENTS, 0, 2 * BLOCKS_OF_EXTENTS);
	while ((at = lseek(a, at, SEEK_DATA)) >= 0) {
		off_t end = lseek(a, at, SEEK_HOLE);

		assert_int_equal(lseek(b, at, SEEK_DATA), at);
		assert_int_equal(lseek(b, at, SEEK_HOLE), end);
		check_data(a, b, at, end);
		at = end;
	}
}

static void check_round(struct stacking *stacking, const char *script, size_t tar_max,
			const char *const *names)
{
	auto_close int up = run_in(stacking, script);
	auto_close int tree = -1;
	struct err err;

	check_ok(take_difference(stacking, up, -1, &err), &err);
	assert_true(stacking->tar.len <= tar_max);
	tree = stack_unpack(stacking, "un");
	for (; *names; names++)
		check_twins(up, tree, *names);
}

/* LMDB's file of 10 GB with some MB in it, and the lastlog of `useradd -u 1885580785`. */
static void huge_files_with_little_in_them_are_small_layers(void **state)
{
	static const char *const names[] = {"data.mdb", "lastlog", NULL};

	check_round(*state,
		    "truncate -s 10G data.mdb\n"
		    "for i in 0 1 7 300 2000 9999; do head -c 500001 /dev/urandom |\n"
		    "dd of=data.mdb bs=1M seek=$i conv=notrunc status=none; done\n"
		    "head -c 292 /dev/urandom | dd of=lastlog bs=292 seek=1885580785 status=none",
		    (size_t)6 * 655360 + TAR_OF_HOLES, names);
}

static void holes_are_kept_wherever_they_are(void **state)
{
	static const char *const names[] = {"front", "middle", "end", "all", "none", "mixed", NULL};

	check_round(
		*state,
		"printf x | dd of=front bs=1 seek=5000000 status=none\n"
		"head -c 70000 /dev/urandom >middle\n"
		"head -c 70000 /dev/urandom | dd of=middle bs=4096 seek=2000 status=none "
		"conv=notrunc\n"
		"head -c 70001 /dev/urandom >end; truncate -s 3000001 end\n"
		"truncate -s 3M all; : >none\n"
		"for i in 3 9 100 101 1000; do head -c 4096 /dev/urandom |\n"
		"dd of=mixed bs=4096 seek=$i conv=notrunc status=none; done; truncate -s 9M mixed",
		(size_t)16 * 65536 + TAR_OF_HOLES, names);
}

/* Whatever is outside of the extents is a hole. */
static void check_covers(int fd, const struct extents *extents, off_t size)
{
	off_t at = 0;

	for (size_t i = 0; i < extents->count; i++) {
		off_t data = lseek(fd, at, SEEK_DATA);

		assert_true(data < 0 || data >= extents->items[i].offset);
		assert_true(extents->items[i].offset >= at && extents->items[i].len > 0);
		at = extents->items[i].offset + extents->items[i].len;
	}
	assert_true(at <= size);
	assert_int_equal(lseek(fd, at, SEEK_DATA), -1);
}

/* More pieces than a map may have: fewer and larger ones. */
static void a_file_of_many_pieces_has_fewer_and_larger_ones(void **state)
{
	static struct extents extents;
	struct stacking *stacking = *state;
	auto_close int fd = openat(stacking->root, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	const off_t gap = 1 << 17;
	const off_t size = (off_t)1 << 41;
	struct stat stat;

	for (off_t i = 0; i < DIFF_EXTENTS_MAX; i++)
		assert_int_equal(pwrite(fd, "x", 1, i * gap), 1);
	assert_int_equal(ftruncate(fd, size) | fstat(fd, &stat), 0);
	diff_extents_read(&extents, fd, &stat, NULL);
	assert_int_equal(extents.count, DIFF_EXTENTS_MAX);
	check_covers(fd, &extents, size);
	assert_int_equal(pwrite(fd, "x", 1, size / 2), 1);
	diff_extents_read(&extents, fd, &stat, NULL);
	assert_int_equal(extents.count, 2);
	check_covers(fd, &extents, size);
}

/* Less than a MiB of holes, zeros that were written, and room that was reserved. */
static void ordinary_files_are_never_sparse(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking,
		   "truncate -s 1048575 small; head -c 2000000 /dev/zero >zeros\n"
		   "fallocate -l 2000000 reserved; echo hi >short; truncate -s 900000 short");
	assert_null(memmem(stacking->tar.ptr, stacking->tar.len, "GNU.sparse", 10));
	stack_step(stacking, "truncate -s 1048576 large");
	assert_non_null(memmem(stacking->tar.ptr, stacking->tar.len, "GNU.sparse.major=1", 18));
}

/* The same bytes on any file system, and whoever wrote them, are the same layer. */
static void a_clamped_layer_depends_on_the_bytes_alone(void **state)
{
	static const char *const scripts[] = {
		"truncate -s 4M f; printf x | dd of=f bs=1 seek=2M conv=notrunc status=none",
		"head -c 4M /dev/zero >f; printf x | dd of=f bs=1 seek=2M conv=notrunc status=none",
		"fallocate -l 4M f; printf x | dd of=f bs=1 seek=2M conv=notrunc status=none",
	};
	struct digest first;

	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct stacking *stacking = *state;
		struct digest digest;

		stacking->clamp = 0x7fffffffffff;
		stack_step(stacking, scripts[i]);
		stack_step(stacking, "touch -d @5 f");
		digest_of(buf_str(&stacking->tar), &digest);
		if (i == 0)
			first = digest;
		assert_true(digest_equal(&first, &digest));
		assert_true(stacking->tar.len < 100000);
		assert_int_equal(stacking_teardown(state) + stacking_setup(state), 0);
	}
}

/* ext4 has none, so this one lies in memory. */
static void a_file_larger_than_any_is_refused(void **state)
{
	struct stacking *stacking = *state;
	auto_close int up = -1;
	char path[128];
	struct err err;

	assert_int_equal(mkdirat(stacking->root, "up", 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/up", stacking->path);
	assert_int_equal(mount("tmpfs", path, "tmpfs", 0, "size=1m"), 0);
	run_script(path, "truncate -s 17592186044417 f");
	up = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check_err(take_difference(stacking, up, -1, &err), &err, ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "f: it has 17592186044417 bytes"));
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stack_test(huge_files_with_little_in_them_are_small_layers),
		stack_test(holes_are_kept_wherever_they_are),
		stack_test(a_file_of_many_pieces_has_fewer_and_larger_ones),
		stack_test(ordinary_files_are_never_sparse),
		stack_test(a_clamped_layer_depends_on_the_bytes_alone),
		stack_test(a_file_larger_than_any_is_refused),
	};

	if (geteuid() != 0)
		return 125; /* mounts are root's to make */
	return cmocka_run_group_tests_name("layers/diff_sparse", tests, NULL, NULL);
}

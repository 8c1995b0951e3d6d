/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tar of a change is the same bytes on every machine, and GNU tar makes the
 * same files of it. GOLDEN_DIR is tests/golden.
 */
#include "layers/base/fd.h"
#include "tests/layers/stacking.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* What overlayfs would have for the whiteouts that GNU tar extracts as files. */
static const char convert_whiteouts[] =
	"find . -name '.wh.*' -type f | while read -r f; do\n"
	"	d=${f%/*}; b=${f##*/}; rm \"$f\"; mknod -m 0 \"$d/${b#.wh.}\" c 0 0\n"
	"	touch -d @0 \"$d/${b#.wh.}\"; setfattr -n trusted.overlay.origin \"$d\"\n"
	"done";

static void read_golden(const char *name, const char *file, struct buf *out)
{
	char path[512];
	char chunk[4096];
	auto_close int fd = -1;
	struct err err;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s/%s", GOLDEN_DIR, name, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("no %s", path);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		check_ok(buf_add(out, (struct str){chunk, (size_t)n}, &err), &err);
}

static void check_by_gnu_tar(struct stacking *stacking)
{
	auto_close int file = openat(stacking->root, "tar", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	auto_close int judge = -1;
	auto_close int tree = -1;
	char path[128];
	struct err err;

	assert_true(file >= 0);
	check_ok(fd_write_all(file, stacking->tar.ptr, stacking->tar.len, &err), &err);
	assert_int_equal(mkdirat(stacking->root, "judge", 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/judge", stacking->path);
	run_script(path, "tar -x -p -f ../tar --numeric-owner --xattrs --xattrs-include='*' "
			 "--warning=no-unknown-keyword");
	run_script(path, convert_whiteouts);
	judge = openat(stacking->root, "judge", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree = openat(stacking->root, "2", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	listing_check_equal(judge, tree, LISTING_NO_DIR_TIMES | LISTING_NO_ROOT);
}

static void check_case(struct stacking *stacking, const char *name)
{
	auto_buf struct buf base = BUF_INIT((size_t)64 * 1024);
	auto_buf struct buf step = BUF_INIT((size_t)64 * 1024);
	auto_buf struct buf expected = BUF_INIT((size_t)64 * 1024);
	auto_buf struct buf actual = BUF_INIT((size_t)64 * 1024);
	char content[DIGEST_TEXT_MAX];
	char text[DIGEST_TEXT_MAX];
	struct digest diff_id;
	struct err err;

	read_golden(name, "base.sh", &base);
	read_golden(name, "step.sh", &step);
	read_golden(name, "digest.txt", &expected);
	stack_step(stacking, base.ptr);
	stack_step(stacking, step.ptr);
	digest_of(buf_str(&stacking->tar), &diff_id);
	if (stacking->result.empty)
		check_ok(buf_addf(&actual, &err, "empty\n"), &err);
	else
		check_ok(buf_addf(&actual, &err, "%s\n%s\n", digest_format(&diff_id, text),
				  digest_format(&stacking->result.content, content)),
			 &err);
	assert_string_equal(actual.ptr, buf_str(&expected).ptr);
	if (!stacking->result.empty)
		check_by_gnu_tar(stacking);
}

#define GOLDEN_CASE(name)                           \
	static void layer_##name(void **state)      \
	{                                           \
		check_case(*state, "layer-" #name); \
	}                                           \
	struct golden_##name##_is_defined

GOLDEN_CASE(files);
GOLDEN_CASE(whiteouts);
GOLDEN_CASE(names);
GOLDEN_CASE(links);
GOLDEN_CASE(xattrs);
GOLDEN_CASE(symlinks);
GOLDEN_CASE(sparse);
GOLDEN_CASE(nothing);

int main(void)
{
	const struct CMUnitTest tests[] = {
		stack_test(layer_files),  stack_test(layer_whiteouts), stack_test(layer_names),
		stack_test(layer_links),  stack_test(layer_xattrs),    stack_test(layer_symlinks),
		stack_test(layer_sparse), stack_test(layer_nothing),
	};

	if (geteuid() != 0)
		return 125; /* overlays, owners and devices are root's to make */
	return cmocka_run_group_tests_name("layers/golden", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/stacking.h"

#include "layers/base/proc.h"
#include "layers/unpack.h"
#include "tests/layers/tarball.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define TAR_MAX ((size_t)256 << 20)
#define VIEW LISTING_FILE_SECONDS /* the difference knows no others */

struct tar_sink {
	struct sink sink;
	struct buf *buf;
	struct buf *cuts;
};

static int tar_sink_write(struct sink *sink, struct str bytes, struct err *err)
{
	return buf_add(container_of(sink, struct tar_sink, sink)->buf, bytes, err);
}

static int tar_sink_cut(void *ctx, struct err *err)
{
	struct tar_sink *sink = ctx;

	return buf_addf(sink->cuts, err, "%zu\n", sink->buf->len);
}

int stacking_setup(void **state)
{
	struct stacking *stacking = calloc(1, sizeof(*stacking));

	assert_non_null(stacking);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	stacking->root = scratch_make(stacking->path);
	stacking->tar = BUF_INIT(TAR_MAX);
	stacking->cuts = BUF_INIT(LISTING_MAX);
	stacking->names = BUF_INIT(LISTING_MAX);
	assert_int_equal(mkdirat(stacking->root, "mnt", 0755), 0);
	*state = stacking;
	return 0;
}

static void unmount(struct stacking *stacking)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/mnt", stacking->path);
	(void)umount2(path, MNT_DETACH);
}

int stacking_teardown(void **state)
{
	struct stacking *stacking = *state;

	unmount(stacking);
	buf_done(&stacking->tar);
	buf_done(&stacking->cuts);
	buf_done(&stacking->names);
	(void)close(stacking->root);
	scratch_remove(stacking->path);
	free(stacking);
	return 0;
}

void run_script(const char *dir, const char *script)
{
	static const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
	auto_buf struct buf text = BUF_INIT((size_t)1 << 20);
	const char *argv[] = {"sh", "-ec", NULL, NULL};
	auto_proc struct proc proc = PROC_INIT;
	struct proc_spec spec = {
		.path = "/bin/sh", .argv = argv, .envp = envp, .fds = {-1, 1, 2}, .fd_count = 3};
	struct err err;
	int status;

	check_ok(buf_addf(&text, &err, "cd '%s'\numask 022\n%s", dir, script), &err);
	argv[2] = text.ptr;
	check_ok(proc_spawn(&spec, &proc, &err), &err);
	check_ok(proc_wait(&proc, -1, NULL, &status, &err), &err);
	if (status != 0)
		fail_msg("status %d of: %s", status, script);
}

static int open_dir(struct stacking *stacking, const char *name)
{
	int fd = openat(stacking->root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		fail_msg("no %s", name);
	return fd;
}

static int make_dir(struct stacking *stacking, const char *name)
{
	assert_int_equal(mkdirat(stacking->root, name, 0755), 0);
	return open_dir(stacking, name);
}

/* top:N-1:...:1, read-only; or with an upper directory above. */
static void mount_stack(struct stacking *stacking, const char *top, const char *upper)
{
	auto_buf struct buf options = BUF_INIT((size_t)4096);
	char mnt[128];
	struct err err;

	check_ok(buf_addf(&options, &err, "lowerdir="), &err);
	if (top)
		check_ok(buf_addf(&options, &err, "%s/%s", stacking->path, top), &err);
	for (int i = stacking->trees; i > 0; i--)
		check_ok(buf_addf(&options, &err, "%s%s/%d", top || i < stacking->trees ? ":" : "",
				  stacking->path, i),
			 &err);
	if (upper)
		check_ok(buf_addf(&options, &err, ",upperdir=%s/%s,workdir=%s/work", stacking->path,
				  upper, stacking->path),
			 &err);
	(void)snprintf(mnt, sizeof(mnt), "%s/mnt", stacking->path);
	if (mount("overlay", mnt, "overlay", 0, options.ptr) < 0)
		fail_msg("mount %s: %s", options.ptr, strerror(errno));
}

/* What is to be seen with a tree on top of those that are there. */
static void view(struct stacking *stacking, const char *top, struct buf *out)
{
	auto_close int fd = -1;

	if (stacking->trees == 0) {
		fd = open_dir(stacking, top);
		listing_add(fd, VIEW, out);
		return;
	}
	mount_stack(stacking, top, NULL);
	fd = open_dir(stacking, "mnt");
	listing_add(fd, VIEW, out);
	unmount(stacking);
}

static void read_names(struct stacking *stacking)
{
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	struct err err;

	buf_clear(&stacking->names);
	if (stacking->tar.len == 0) {
		archive_read_free(archive);
		return;
	}
	assert_int_equal(archive_read_support_format_tar(archive), ARCHIVE_OK);
	assert_int_equal(archive_read_open_memory(archive, stacking->tar.ptr, stacking->tar.len),
			 ARCHIVE_OK);
	while (archive_read_next_header(archive, &entry) != ARCHIVE_EOF)
		check_ok(buf_addf(&stacking->names, &err, "%s\n", archive_entry_pathname(entry)),
			 &err);
	archive_read_free(archive);
}

int take_difference(struct stacking *stacking, int upperfd, int lowerfd, struct err *err)
{
	struct tar_sink sink = {{tar_sink_write}, &stacking->tar, &stacking->cuts};
	const struct diff_out out = {&sink.sink, tar_sink_cut, &sink};
	const struct diff_spec spec = {.upperfd = upperfd,
				       .lowerfd = lowerfd,
				       .clamp = stacking->clamp ? &stacking->clamp : NULL,
				       .max_entries = stacking->max_entries};

	buf_clear(&stacking->tar);
	buf_clear(&stacking->cuts);
	if (diff_run(&spec, &out, &stacking->result, err) < 0)
		return -1;
	read_names(stacking);
	return 0;
}

/* The script's doing is in the directory "up"; lower is what it saw below. */
static int change(struct stacking *stacking, const char *script, struct buf *seen)
{
	auto_close int up = make_dir(stacking, "up");
	auto_close int work = -1;
	auto_close int fd = -1;
	char path[128];

	if (stacking->trees > 0) {
		work = make_dir(stacking, "work");
		assert_true(work >= 0);
		mount_stack(stacking, NULL, "up");
	}
	(void)snprintf(path, sizeof(path), "%s/%s", stacking->path, stacking->trees ? "mnt" : "up");
	run_script(path, script);
	fd = open_dir(stacking, stacking->trees ? "mnt" : "up");
	listing_add(fd, VIEW, seen);
	if (stacking->trees > 0) {
		unmount(stacking);
		(void)snprintf(path, sizeof(path), "%s/work", stacking->path);
		scratch_remove(path);
	}
	return steal_fd(&up);
}

static int open_lower(struct stacking *stacking)
{
	char name[16];

	if (stacking->trees == 0)
		return -1;
	if (stacking->trees > 1) {
		mount_stack(stacking, NULL, NULL);
		return open_dir(stacking, "mnt");
	}
	(void)snprintf(name, sizeof(name), "%d", stacking->trees);
	return open_dir(stacking, name);
}

int stack_unpack(struct stacking *stacking, const char *name)
{
	auto_close int fd = make_dir(stacking, name);
	struct memory_source source;
	struct err err;

	memory_source_init(&source, buf_str(&stacking->tar), 0);
	check_ok(unpack_tar(fd, &source.source, NULL, &err), &err);
	return steal_fd(&fd);
}

void stack_step(struct stacking *stacking, const char *script)
{
	auto_buf struct buf seen = BUF_INIT(LISTING_MAX);
	auto_buf struct buf sealed = BUF_INIT(LISTING_MAX);
	auto_buf struct buf unpacked = BUF_INIT(LISTING_MAX);
	auto_close int up = change(stacking, script, &seen);
	auto_close int lower = open_lower(stacking);
	auto_close int tree = -1;
	char name[16];
	struct err err;

	check_ok(take_difference(stacking, up, lower, &err), &err);
	unmount(stacking);
	tree = stack_unpack(stacking, "un");
	listing_check_equal(up, tree, LISTING_MARKS);
	view(stacking, "up", &sealed);
	view(stacking, "un", &unpacked);
	listing_check_text(buf_str(&sealed).ptr, buf_str(&seen).ptr);
	listing_check_text(buf_str(&unpacked).ptr, buf_str(&seen).ptr);
	(void)snprintf(name, sizeof(name), "%d", ++stacking->trees);
	assert_int_equal(renameat(stacking->root, "up", stacking->root, name), 0);
	(void)snprintf(name, sizeof(name), "un%d", stacking->trees);
	assert_int_equal(renameat(stacking->root, "un", stacking->root, name), 0);
}

void stack_refused(struct stacking *stacking, const char *script, enum err_kind kind,
		   const char *words)
{
	auto_buf struct buf seen = BUF_INIT(LISTING_MAX);
	auto_close int up = change(stacking, script, &seen);
	auto_close int lower = open_lower(stacking);
	struct err err = {0};

	check_err(take_difference(stacking, up, lower, &err), &err, kind);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
	unmount(stacking);
}

void check_names(struct stacking *stacking, const char *expected)
{
	assert_string_equal(buf_str(&stacking->names).ptr, expected);
}

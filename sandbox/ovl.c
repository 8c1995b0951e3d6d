/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/ovl_priv.h"

#include "layers/base/buf.h"

#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define OVL_SECBIT_NO_SETUID_FIXUP (1 << 2)
#define OVL_OPTIONS_MAX ((size_t)4096) /* mount(2) takes one page */

void ovl_layers_close(struct ovl_layers *layers)
{
	for (size_t i = 0; i < layers->count; i++)
		auto_close_release(&layers->fds[i]);
	auto_close_release(&layers->upperfd);
	auto_close_release(&layers->workfd);
}

/* What the kernel says about a mount that it refused, in its own words. */
static int ovl_refused(int fsfd, int os, const char *what, struct err *err)
{
	char words[256];
	ssize_t n = read(fsfd, words, sizeof(words) - 1);

	if (n <= 2)
		return err_os(err, os, "overlay: %s", what);
	words[n] = '\0';
	if (words[n - 1] == '\n')
		words[n - 1] = '\0';
	return err_os(err, os, "overlay: %s: %s", what, words + 2); /* behind "e " */
}

static int ovl_set_text(int fsfd, const char *key, const char *value, struct err *err)
{
	if (syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_STRING, key, value, 0) < 0)
		return ovl_refused(fsfd, errno, key, err);
	return 0;
}

static int ovl_set_layer(int fsfd, const char *key, int fd, struct err *err)
{
	if (syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_FD, key, NULL, fd) < 0)
		return ovl_refused(fsfd, errno, key, err);
	return 0;
}

/* What a mount is for. */
enum ovl_use {
	OVL_ROOT,  /* a machine writes to it */
	OVL_VIEW,  /* it has no upper directory */
	OVL_PROBE, /* only made to see whether it can be */
};

/*
 * Turn off all that could make an upper directory less than the whole
 * difference. A probe needs no `volatile`: unmounting a read-only mount syncs
 * nothing.
 */
static int ovl_set_options(int fsfd, enum ovl_use use, struct err *err)
{
	static const char *const flags[] = {[OVL_ROOT] = "volatile", [OVL_PROBE] = "ro"};

	if (ovl_set_text(fsfd, "redirect_dir", "nofollow", err) < 0 ||
	    ovl_set_text(fsfd, "metacopy", "off", err) < 0 ||
	    ovl_set_text(fsfd, "xino", "off", err) < 0 ||
	    ovl_set_text(fsfd, "uuid", "off", err) < 0 || /* or `up` is marked with one */
	    ovl_set_text(fsfd, "index", use == OVL_PROBE ? "on" : "off", err) < 0)
		return -1;
	if (use != OVL_VIEW &&
	    syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_FLAG, flags[use], NULL, 0) < 0)
		return ovl_refused(fsfd, errno, flags[use], err);
	return 0;
}

/* Where a kernel takes no descriptor, the link that /proc has to it. */
static int ovl_set_link(int fsfd, const char *key, int fd, struct err *err)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return ovl_set_text(fsfd, key, path, err);
}

static int ovl_set_layers(int fsfd, const struct ovl_layers *layers, struct err *err)
{
	for (size_t i = layers->count; i > 0; i--) {
		if (ovl_set_layer(fsfd, "lowerdir+", layers->fds[i - 1], err) < 0)
			return -1;
	}
	if (layers->upperfd < 0)
		return 0;
	if (ovl_set_layer(fsfd, "upperdir", layers->upperfd, err) < 0)
		return -1;
	return ovl_set_layer(fsfd, "workdir", layers->workfd, err);
}

/* A probe has one layer below, so that its names need not share a page. */
static int ovl_set_probe(int fsfd, const struct ovl_layers *layers, struct err *err)
{
	if (ovl_set_link(fsfd, "lowerdir", layers->fds[0], err) < 0 ||
	    ovl_set_link(fsfd, "upperdir", layers->upperfd, err) < 0)
		return -1;
	return ovl_set_link(fsfd, "workdir", layers->workfd, err);
}

typedef long ovl_call_fn(const void *ctx);

struct ovl_old {
	char target[64];
	unsigned long flags;
	const char *options;
};

static long ovl_create_now(const void *ctx)
{
	const int *fsfd = ctx;

	return syscall(SYS_fsconfig, *fsfd, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

/*
 * overlayfs writes with the credentials of whoever mounts it. Host root has no
 * id in the mapped upper directory (the mount would silently be read-only), so
 * the call is made as the machine's root, with our capabilities kept.
 */
static long ovl_as(uid_t id, ovl_call_fn *call, const void *ctx)
{
	int bits = prctl(PR_GET_SECUREBITS);
	long result;
	int saved;

	if (bits < 0 || prctl(PR_SET_SECUREBITS, bits | OVL_SECBIT_NO_SETUID_FIXUP) < 0)
		return -1;
	(void)setfsgid(id);
	(void)setfsuid(id);
	result = call(ctx);
	saved = errno;
	(void)setfsuid(0);
	(void)setfsgid(0);
	(void)prctl(PR_SET_SECUREBITS, bits);
	errno = saved;
	return result;
}

/* The mount, attached nowhere yet. */
static int ovl_create(const struct ovl_layers *layers, uid_t id, enum ovl_use use, struct err *err)
{
	unsigned attributes = MOUNT_ATTR_NODEV | (use == OVL_ROOT ? 0 : MOUNT_ATTR_RDONLY);
	auto_close int fsfd = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
	int fd;

	if (fsfd < 0)
		return err_os(err, errno, "overlay");
	if (use == OVL_PROBE ? ovl_set_probe(fsfd, layers, err) : ovl_set_layers(fsfd, layers, err))
		return -1;
	if (ovl_set_options(fsfd, use, err) < 0)
		return -1;
	if (ovl_as(id, ovl_create_now, &fsfd) < 0)
		return ovl_refused(fsfd, errno, "mount", err);
	fd = (int)syscall(SYS_fsmount, fsfd, FSMOUNT_CLOEXEC, attributes);
	return fd < 0 ? err_os(err, errno, "overlay: mount") : fd;
}

/*
 * Linux before 6.13 takes no layer by descriptor. There each is named by its
 * link in /proc, and all of them share one page of options.
 */
static int ovl_old_options(const struct ovl_layers *layers, struct buf *out, struct err *err)
{
	if (buf_addf(out, err, "redirect_dir=nofollow,metacopy=off,xino=off,uuid=off,index=off") <
	    0)
		return -1;
	if (layers->upperfd >= 0 &&
	    buf_addf(out, err, ",volatile,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d",
		     layers->upperfd, layers->workfd) < 0)
		return -1;
	for (size_t i = layers->count; i > 0; i--) {
		if (buf_addf(out, err, "%s/proc/self/fd/%d",
			     i == layers->count ? ",lowerdir=" : ":", layers->fds[i - 1]) < 0)
			return err_set(err, ERR_UNSUPPORTED,
				       "%zu layers, and this kernel takes about 200: Linux 6.13 "
				       "and later take %d",
				       layers->count, OVL_LAYERS_MAX);
	}
	return 0;
}

static long ovl_mount_old_now(const void *ctx)
{
	const struct ovl_old *old = ctx;

	return mount("overlay", old->target, "overlay", old->flags, old->options);
}

static int ovl_mount_old(const struct ovl_layers *layers, uid_t id, int targetfd, struct err *err)
{
	auto_buf struct buf options = BUF_INIT(OVL_OPTIONS_MAX);
	struct ovl_old old = {.flags = MS_NODEV | (layers->upperfd < 0 ? MS_RDONLY : 0)};

	if (ovl_old_options(layers, &options, err) < 0)
		return -1;
	old.options = options.ptr;
	(void)snprintf(old.target, sizeof(old.target), "/proc/self/fd/%d", targetfd);
	if (ovl_as(id, ovl_mount_old_now, &old) < 0)
		return err_os(err, errno, "overlay: mount %zu layers", layers->count);
	return 0;
}

static bool ovl_takes_descriptors(int dirfd)
{
	auto_close int fsfd = (int)syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);

	return fsfd >= 0 &&
	       syscall(SYS_fsconfig, fsfd, FSCONFIG_SET_FD, "lowerdir+", NULL, dirfd) == 0;
}

int ovl_mount(const struct ovl_layers *layers, uid_t id, int targetfd, bool by_name,
	      struct err *err)
{
	auto_close int fd = -1;

	if (by_name || !ovl_takes_descriptors(layers->fds[0]))
		return ovl_mount_old(layers, id, targetfd, err);
	fd = ovl_create(layers, id, layers->upperfd < 0 ? OVL_VIEW : OVL_ROOT, err);
	if (fd < 0)
		return -1;
	if (syscall(SYS_move_mount, fd, "", targetfd, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_os(err, errno, "overlay: attach");
	return 0;
}

int ovl_probe(const struct ovl_layers *layers, struct err *err)
{
	auto_close int fd = ovl_create(layers, 0, OVL_PROBE, err);

	if (fd >= 0)
		return 0;
	return err->os == EBUSY ? err_set(err, ERR_BUSY, "the machine's files are still in use")
				: -1;
}

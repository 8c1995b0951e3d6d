/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/xattrs_priv.h"

#include "layers/base/room.h"

#include <endian.h>
#include <linux/capability.h>
#include <linux/limits.h>
#include <linux/xattr.h>
#include <sys/xattr.h>

static bool xattrs_keeps(const char *name)
{
	struct str text = str_of(name);

	if (str_equal(text, STR("security.capability")))
		return true;
	return str_starts(text, STR("user.")) && !str_starts(text, STR("user.overlay."));
}

static int xattrs_compare(const void *a, const void *b)
{
	const struct xattr *left = a;
	const struct xattr *right = b;

	return strcmp(left->name, right->name);
}

static int xattrs_add(int fd, const char *name, struct xattrs *out, struct err *err)
{
	auto_free char *value = malloc(XATTR_SIZE_MAX);
	struct xattr *xattr;
	ssize_t n;

	if (!value)
		abort();
	n = fgetxattr(fd, name, value, XATTR_SIZE_MAX);
	if (n < 0)
		return err_os(err, errno, "read attribute %s", name);
	if (out->count == XATTRS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d attributes", XATTRS_MAX);
	if (!out->at)
		out->at = calloc(XATTRS_MAX, sizeof(*out->at));
	if (!out->at)
		abort();
	xattr = &out->at[out->count++];
	xattr->value = BUF_INIT((size_t)XATTR_SIZE_MAX);
	xattr->name = strdup(name);
	if (!xattr->name)
		abort();
	return buf_add(&xattr->value, (struct str){value, (size_t)n}, err);
}

static int xattrs_read_list(int fd, struct str list, struct xattrs *out, struct err *err)
{
	for (size_t at = 0; at < list.len; at += strlen(list.ptr + at) + 1) {
		if (xattrs_keeps(list.ptr + at) && xattrs_add(fd, list.ptr + at, out, err) < 0)
			return -1;
	}
	if (out->count > 1)
		qsort(out->at, out->count, sizeof(*out->at), xattrs_compare);
	return 0;
}

int xattrs_read(int fd, struct xattrs *out, struct err *err)
{
	auto_xattrs struct xattrs found = {0};
	auto_free char *big = NULL;
	char small[512];
	char *list = small;
	ssize_t n = flistxattr(fd, small, sizeof(small));

	if (n < 0 && errno == ERANGE) {
		list = big = malloc(XATTR_LIST_MAX);
		if (!big)
			abort();
		n = flistxattr(fd, big, XATTR_LIST_MAX);
	}
	if (n < 0 && errno != ENOTSUP)
		return err_os(err, errno, "list attributes");
	if (n > 0 && xattrs_read_list(fd, (struct str){list, (size_t)n}, &found, err) < 0)
		return -1;
	*out = found;
	found = (struct xattrs){0};
	return 0;
}

/* Version 2 names no root; version 3 does, and is else the same. */
static struct str xattrs_capability(struct str value, uint32_t first_id,
				    struct vfs_ns_cap_data *out)
{
	uint32_t magic;

	if (first_id == 0 || value.len != XATTR_CAPS_SZ_2)
		return value;
	memcpy(out, value.ptr, value.len);
	magic = le32toh(out->magic_etc);
	out->magic_etc = htole32(VFS_CAP_REVISION_3 | (magic & ~VFS_CAP_REVISION_MASK));
	out->rootid = htole32(first_id);
	return (struct str){(const char *)out, sizeof(*out)};
}

int xattrs_write(int dirfd, int fd, const struct xattrs *xattrs, uint32_t first_id,
		 xattrs_lost_fn *lost, void *ctx, struct err *err)
{
	for (size_t i = 0; i < xattrs->count; i++) {
		const char *name = xattrs->at[i].name;
		struct str value = buf_str(&xattrs->at[i].value);
		struct vfs_ns_cap_data capability;
		int os;

		if (str_equal(str_of(name), STR(XATTR_NAME_CAPS)))
			value = xattrs_capability(value, first_id, &capability);
		if (fsetxattr(fd, name, value.ptr, value.len, 0) == 0)
			continue;
		os = errno;
		if (room_xattr_failed(dirfd, os, name, value.len, err) < 0 && err->kind == ERR_FULL)
			return -1;
		lost(ctx, &xattrs->at[i], os);
	}
	return 0;
}

void xattrs_done(struct xattrs *xattrs)
{
	for (size_t i = 0; i < xattrs->count; i++) {
		free(xattrs->at[i].name);
		buf_done(&xattrs->at[i].value);
	}
	free(xattrs->at);
	*xattrs = (struct xattrs){0};
}

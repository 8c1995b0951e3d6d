/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/xattrs_priv.h"

#include <linux/limits.h>
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

int xattrs_write(int fd, const struct xattrs *xattrs, struct err *err)
{
	for (size_t i = 0; i < xattrs->count; i++) {
		struct str value = buf_str(&xattrs->at[i].value);

		if (fsetxattr(fd, xattrs->at[i].name, value.ptr, value.len, 0) < 0 &&
		    errno != ENOTSUP)
			return err_os(err, errno, "write attribute %s", xattrs->at[i].name);
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

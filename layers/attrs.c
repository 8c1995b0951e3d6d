/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/attrs_priv.h"

#include <limits.h>
#include <stdio.h>
#include <sys/xattr.h>

/* Calls on a name have no *at() form: the directory is reached through /proc. */
static void ref_path(const struct file_ref *file, char path[static PATH_MAX])
{
	(void)snprintf(path, PATH_MAX, "/proc/self/fd/%d/%s", file->dirfd, file->name);
}

static ssize_t ref_list(const struct file_ref *file, char *list, size_t size)
{
	char path[PATH_MAX];

	if (file->fd >= 0)
		return flistxattr(file->fd, list, size);
	ref_path(file, path);
	return llistxattr(path, list, size);
}

static ssize_t ref_get(const struct file_ref *file, const char *name, char *value, size_t size)
{
	char path[PATH_MAX];

	if (file->fd >= 0)
		return fgetxattr(file->fd, name, value, size);
	ref_path(file, path);
	return lgetxattr(path, name, value, size);
}

static int ref_remove(const struct file_ref *file, const char *name)
{
	char path[PATH_MAX];

	if (file->fd >= 0)
		return fremovexattr(file->fd, name);
	ref_path(file, path);
	return lremovexattr(path, name);
}

void attrs_init(struct attrs *attrs)
{
	attrs->count = 0;
	attrs->opaque = false;
	attrs->bytes = BUF_INIT(ATTRS_BYTES_MAX);
	attrs->strays = BUF_INIT(TREE_XATTR_MAX + 1);
}

void attrs_done(struct attrs *attrs)
{
	buf_done(&attrs->bytes);
	buf_done(&attrs->strays);
}

const char *attrs_name(const struct attrs *attrs, size_t i)
{
	return attrs->bytes.ptr + attrs->items[i].name;
}

struct str attrs_value(const struct attrs *attrs, size_t i)
{
	return (struct str){attrs->bytes.ptr + attrs->items[i].value, attrs->items[i].len};
}

/* libarchive escapes these, and other readers do not know its escapes. */
static bool attr_is_plain(const char *name)
{
	for (; *name; name++) {
		if (*name <= ' ' || *name > '~' || *name == '%' || *name == '=')
			return false;
	}
	return true;
}

static void attrs_insert(struct attrs *attrs, struct attr item)
{
	size_t at = attrs->count++;

	for (; at > 0 && strcmp(attrs_name(attrs, at - 1), attrs->bytes.ptr + item.name) > 0; at--)
		attrs->items[at] = attrs->items[at - 1];
	attrs->items[at] = item;
}

static int attrs_keep(struct attrs *attrs, const struct file_ref *file, const char *name,
		      struct err *err)
{
	char value[TREE_XATTR_MAX];
	char v2[CAPABILITY_V2_SIZE];
	ssize_t n = ref_get(file, name, value, sizeof(value));
	struct attr item = {.name = attrs->bytes.len};
	struct str bytes = {value, n > 0 ? (size_t)n : 0};

	if (n < 0)
		return err_os(err, errno, "read xattr %.100s", name);
	if (!attr_is_plain(name))
		return err_set(err, ERR_UNSUPPORTED,
			       "a layer cannot carry the name of one of its xattrs");
	if (attrs->count == ATTRS_MAX)
		return err_set(err, ERR_LIMIT, "it has more than %d xattrs", ATTRS_MAX);
	if (strcmp(name, "security.capability") == 0)
		bytes = overlay_capability(bytes, v2);
	if (buf_add(&attrs->bytes, (struct str){name, strlen(name) + 1}, err) < 0)
		return err_ctx(err, "xattrs");
	item.value = attrs->bytes.len;
	item.len = bytes.len;
	if (buf_add(&attrs->bytes, bytes, err) < 0)
		return err_ctx(err, "xattrs");
	attrs_insert(attrs, item);
	return 0;
}

static int attrs_note_stray(struct attrs *attrs, const struct file_ref *file, const char *name,
			    struct err *err)
{
	char value[8];

	if (strcmp(name, OVERLAY_REDIRECT) == 0 || strcmp(name, OVERLAY_METACOPY) == 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "it has %s, so the directory is not the whole difference", name);
	if (strcmp(name, OVERLAY_OPAQUE) == 0)
		attrs->opaque = ref_get(file, name, value, sizeof(value)) == 1 && value[0] == 'y';
	return buf_add(&attrs->strays, (struct str){name, strlen(name) + 1}, err);
}

int attrs_read(struct attrs *attrs, const struct file_ref *file, mode_t mode, struct err *err)
{
	ssize_t len = ref_list(file, attrs->list, sizeof(attrs->list));

	attrs->count = 0;
	attrs->opaque = false;
	buf_clear(&attrs->bytes);
	buf_clear(&attrs->strays);
	if (len < 0 && errno != ENOTSUP)
		return err_os(err, errno, "list xattrs");
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(attrs->list + at) + 1) {
		const char *name = attrs->list + at;
		int failed = overlay_keeps_xattr(name, mode & S_IFMT)
				     ? attrs_keep(attrs, file, name, err)
				     : attrs_note_stray(attrs, file, name, err);

		if (failed < 0)
			return -1;
	}
	return 0;
}

bool attrs_equal(const struct attrs *a, const struct attrs *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (strcmp(attrs_name(a, i), attrs_name(b, i)) != 0 ||
		    !str_equal(attrs_value(a, i), attrs_value(b, i)))
			return false;
	}
	return true;
}

/* A security module may hold on to its label; what overlayfs reads has to go. */
int attrs_strip(const struct attrs *attrs, const struct file_ref *file, struct err *err)
{
	const char *end = attrs->strays.ptr + attrs->strays.len;

	for (const char *name = attrs->strays.ptr; name < end; name += strlen(name) + 1) {
		if (ref_remove(file, name) < 0 && errno != ENODATA && overlay_owns_xattr(name))
			return err_os(err, errno, "remove xattr %.100s", name);
	}
	return 0;
}

int attrs_strip_all(const struct attrs *attrs, const struct file_ref *file, struct err *err)
{
	for (size_t i = 0; i < attrs->count; i++) {
		if (ref_remove(file, attrs_name(attrs, i)) < 0)
			return err_os(err, errno, "remove xattr %.100s", attrs_name(attrs, i));
	}
	return attrs_strip(attrs, file, err);
}

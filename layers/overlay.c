/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/overlay_priv.h"

#include "layers/implied.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define CAPABILITY_V3_SIZE (CAPABILITY_V2_SIZE + sizeof(uint32_t))

bool overlay_is_whiteout(const struct stat *stat)
{
	return S_ISCHR(stat->st_mode) && stat->st_rdev == makedev(0, 0);
}

bool overlay_owns_xattr(const char *name)
{
	return str_starts(str_of(name), STR("trusted.overlay.")) ||
	       str_starts(str_of(name), STR("user.overlay."));
}

bool overlay_keeps_xattr(const char *name, mode_t mode)
{
	struct str attr = str_of(name);

	if (overlay_owns_xattr(name))
		return false;
	if (str_starts(attr, STR("user.")))
		return S_ISREG(mode) || S_ISDIR(mode); /* the kernel has them on no other */
	if (str_equal(attr, STR("security.capability")))
		return S_ISREG(mode);
	if (str_equal(attr, STR("system.posix_acl_access")))
		return !S_ISLNK(mode);
	return S_ISDIR(mode) && str_equal(attr, STR("system.posix_acl_default"));
}

int overlay_make_whiteout(int dirfd, const char *name, struct err *err)
{
	if (mknodat(dirfd, name, S_IFCHR, makedev(0, 0)) < 0)
		return err_os(err, errno, "make a whiteout");
	return overlay_dress_whiteout(dirfd, name, err);
}

int overlay_dress_whiteout(int dirfd, const char *name, struct err *err)
{
	const struct timespec times[2] = {{0}};

	if (fchownat(dirfd, name, 0, 0, AT_SYMLINK_NOFOLLOW) < 0 ||
	    utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_os(err, errno, "make a whiteout");
	return 0;
}

int overlay_mark_opaque(int fd, struct err *err)
{
	if (fsetxattr(fd, OVERLAY_OPAQUE, "y", 1, 0) < 0)
		return err_os(err, errno, "set %s", OVERLAY_OPAQUE);
	return 0;
}

int overlay_mark_origin(int fd, struct err *err)
{
	if (fsetxattr(fd, OVERLAY_ORIGIN, "", 0, 0) < 0)
		return err_os(err, errno, "set %s", OVERLAY_ORIGIN);
	return 0;
}

int overlay_mark_implied(int fd, struct err *err)
{
	if (fsetxattr(fd, IMPLIED_MARK, "", 0, 0) < 0)
		return err_os(err, errno, "set %s", IMPLIED_MARK);
	return 0;
}

int overlay_mark_implies(int fd, struct err *err)
{
	if (fsetxattr(fd, IMPLIED_BELOW, "", 0, 0) < 0)
		return err_os(err, errno, "set %s", IMPLIED_BELOW);
	return 0;
}

int overlay_unmark_implied(int fd, struct err *err)
{
	if (fremovexattr(fd, IMPLIED_MARK) < 0 && errno != ENODATA)
		return err_os(err, errno, "remove %s", IMPLIED_MARK);
	return 0;
}

struct str overlay_capability(struct str value, char v2[static CAPABILITY_V2_SIZE])
{
	uint32_t magic;
	uint32_t rootid;

	if (value.len != CAPABILITY_V3_SIZE)
		return value;
	memcpy(&magic, value.ptr, sizeof(magic));
	memcpy(&rootid, value.ptr + CAPABILITY_V2_SIZE, sizeof(rootid));
	magic = le32toh(magic);
	if ((magic & VFS_CAP_REVISION_MASK) != VFS_CAP_REVISION_3 || rootid != 0)
		return value;
	magic = htole32((magic & ~VFS_CAP_REVISION_MASK) | VFS_CAP_REVISION_2);
	memcpy(v2, value.ptr, CAPABILITY_V2_SIZE);
	memcpy(v2, &magic, sizeof(magic));
	return (struct str){v2, CAPABILITY_V2_SIZE};
}

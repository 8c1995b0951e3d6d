/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_name.c - a name as a tar has it: made normal, bounded, and told from a whiteout. */
#include "layers/base/path.h"
#include "layers/unpack_priv.h"

#include <limits.h>

static int tar_name_add(struct tar_name *name, struct str part, struct err *err)
{
	size_t max = NAME_MAX;

	if (str_equal(part, STR("..")))
		return err_set(err, ERR_CORRUPT, "a name with \"..\" in it");
	if (!name->plain && str_starts(part, STR(WHITEOUT_PREFIX)))
		max += strlen(WHITEOUT_PREFIX);
	if (part.len > max)
		return err_set(err, ERR_CORRUPT, "a name is longer than %d bytes", NAME_MAX);
	if (name->path.len > 0 && buf_add(&name->path, STR("/"), err) < 0)
		return -1;
	return buf_add(&name->path, part, err);
}

static int tar_name_split(struct tar_name *name, const char *raw, struct err *err)
{
	struct str rest = str_of(raw);
	size_t depth = 0;
	size_t base = 0;
	struct str part;

	buf_clear(&name->path);
	while (path_next(&rest, &part)) {
		base = name->path.len;
		if (depth++ == TREE_DEPTH_MAX)
			return err_set(err, ERR_LIMIT, "it is nested deeper than %zu directories",
				       TREE_DEPTH_MAX);
		if (tar_name_add(name, part, err) < 0)
			return -1;
	}
	name->dir = (struct str){buf_str(&name->path).ptr, base};
	name->base = base > 0 ? name->path.ptr + base + 1 : buf_str(&name->path).ptr;
	name->kind = name->path.len > 0 ? TAR_ENTRY : TAR_ROOT;
	return 0;
}

/* A directory on the way that is named like a whiteout. */
static int tar_name_judge_dir(struct tar_name *name, struct err *err)
{
	struct str rest = name->dir;
	struct str part;

	while (path_next(&rest, &part)) {
		if (str_starts(part, STR(WHITEOUT_META))) {
			name->kind = TAR_IGNORED;
			return 0;
		}
		if (str_starts(part, STR(WHITEOUT_PREFIX)))
			return err_set(err, ERR_CORRUPT, "it lies below a whiteout");
	}
	return 0;
}

static int tar_name_judge(struct tar_name *name, struct err *err)
{
	struct str base = str_of(name->base);

	if (tar_name_judge_dir(name, err) < 0)
		return -1;
	if (name->kind != TAR_ENTRY || !str_starts(base, STR(WHITEOUT_PREFIX)))
		return 0;
	if (str_equal(base, STR(WHITEOUT_OPAQUE))) {
		name->kind = TAR_OPAQUE;
	} else if (str_starts(base, STR(WHITEOUT_META))) {
		name->kind = TAR_IGNORED;
	} else {
		name->kind = TAR_WHITEOUT;
		name->base += strlen(WHITEOUT_PREFIX);
	}
	if (name->kind == TAR_WHITEOUT &&
	    (!*name->base || strcmp(name->base, ".") == 0 || strcmp(name->base, "..") == 0))
		return err_set(err, ERR_CORRUPT, "a whiteout of nothing");
	return 0;
}

int unpack_name_parse(struct tar_name *name, const char *raw, struct err *err)
{
	if (tar_name_split(name, raw, err) < 0)
		return -1;
	return name->plain ? 0 : tar_name_judge(name, err);
}

int unpack_name_parse_target(struct tar_name *name, const char *raw, struct err *err)
{
	return tar_name_split(name, raw, err);
}

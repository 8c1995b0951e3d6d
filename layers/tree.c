/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - the records of trees/.
 *
 *	table           key          members (v is 1)
 *	trees           diff id hex  atMs: when it was recorded; boot: this boot's
 *	                             id, until a syncfs has passed
 *	trees.unsynced  diff id hex  atMs, boot: as above; gone when `boot` is
 *
 * A tree's life:       directory               record           to tree_find()
 *	1 placed     trees/<hex>, held       none             a miss
 *	2 recorded   the same                with boot        a hit in this boot
 *	3 settled    the same, on the disk   without boot     a hit
 *
 * Whoever places a tree holds its directory (hold.h) from before 1 until 2 is
 * durable. So a directory that can be held, and then has no record, is nobody's:
 * a power cut may have taken its files' bytes, and no machine stands on it. It
 * is replaced by the next one who places a tree of that name, or swept.
 */
#include "layers/tree.h"

#include "layers/base/hold.h"
#include "layers/overlay_priv.h"
#include "layers/trash_priv.h"
#include "layers/tree_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define TREE_TABLE "trees"
#define TREE_UNSYNCED "trees.unsynced"

/* The hex digits of a diff id: name of the directory, key of the record. */
struct tree_name {
	char text[DIGEST_TEXT_MAX];
	const char *hex;
};

static void tree_name_make(const struct digest *diff_id, struct tree_name *out)
{
	out->hex = strchr(digest_format(diff_id, out->text), ':') + 1;
}

/* 1 there is a record that is good in this boot, 0 none or a stale one, -1. */
static int tree_is_recorded(struct store *store, struct meta *meta, const char *hex,
			    struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char boot[BOOT_ID_MAX];
	struct str unsynced;
	int found = meta_get(meta, TREE_TABLE, str_of(hex), &record, err);

	if (found <= 0)
		return found;
	found = json_get_string(record, hex, "boot", &unsynced, err);
	if (found <= 0)
		return found < 0 ? -1 : 1;
	if (store_boot(store, boot, err) < 0)
		return -1;
	return str_equal(unsynced, str_of(boot));
}

/* 1 there is such a record and the directory, 0 one of them is missing, -1. */
static int tree_find_in(struct store *store, struct meta *meta, const char *hex, struct err *err)
{
	int found = tree_is_recorded(store, meta, hex, err);

	if (found <= 0)
		return found;
	if (faccessat(store->dirs[STORE_TREES], hex, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ? 0 : err_os(err, errno, "look for the tree %s", hex);
}

int tree_find(struct store *store, const struct digest *diff_id, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct tree_name name;

	tree_name_make(diff_id, &name);
	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	return tree_find_in(store, meta, name.hex, err);
}

/* Whether there is any record of it, as of now. 1, 0 or -1. */
static int tree_has_record(struct store *store, const char *hex, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	return meta_has(meta, TREE_TABLE, str_of(hex), err);
}

static int tree_forget_in(struct meta *meta, const char *hex, struct err *err)
{
	if (meta_del(meta, TREE_TABLE, str_of(hex), err) < 0 ||
	    meta_del(meta, TREE_UNSYNCED, str_of(hex), err) < 0)
		return -1;
	return 0;
}

/*
 * A record without a good directory would vouch for the next directory of that
 * name. Look again in the write transaction: somebody else may have made it
 * good meanwhile.
 */
static int tree_forget_stale(struct store *store, const char *hex, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int found = tree_has_record(store, hex, err);

	if (found <= 0)
		return found;
	if (meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	found = tree_find_in(store, meta, hex, err);
	if (found != 0)
		return found < 0 ? -1 : 0;
	if (tree_forget_in(meta, hex, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/*
 * Another directory has the name. If somebody is about to record it, wait; a
 * recorded one stays, since a machine may stand on it, and ours is set aside;
 * else it was nobody's, and ours replaces it. 1 done, 0 it went away, -1.
 */
static int tree_contend(struct store *store, const struct tree_name *tree, int dirfd,
			const char *name, struct err *err)
{
	int treesfd = store->dirs[STORE_TREES];
	auto_close int theirs = -1;
	int found = hold_wait(treesfd, tree->hex, &theirs, err);

	if (found <= 0)
		return found;
	found = tree_has_record(store, tree->hex, err);
	if (found < 0)
		return -1;
	if (found == 0 && renameat2(dirfd, name, treesfd, tree->hex, RENAME_EXCHANGE) < 0)
		return err_os(err, errno, "replace the tree %s", tree->hex);
	return store_set_aside(store, dirfd, name, err) < 0 ? -1 : 1;
}

static int tree_give_name(struct store *store, const struct tree_name *tree, int dirfd,
			  const char *name, struct err *err)
{
	int treesfd = store->dirs[STORE_TREES];

	while (renameat2(dirfd, name, treesfd, tree->hex, RENAME_NOREPLACE) < 0) {
		int done;

		if (errno != EEXIST)
			return err_os(err, errno, "place the tree %s", tree->hex);
		done = tree_contend(store, tree, dirfd, name, err);
		if (done != 0)
			return done < 0 ? -1 : 0;
	}
	return 0;
}

int tree_place(struct store *store, const struct digest *diff_id, int dirfd, const char *name,
	       struct err *err)
{
	auto_close int hold = -1;
	struct tree_name tree;
	int found;

	tree_name_make(diff_id, &tree);
	found = hold_wait(dirfd, name, &hold, err);
	if (found < 0)
		return -1;
	if (hold < 0)
		return err_set(err, ERR_NOT_FOUND, "%s, to be a tree, is no directory", name);
	found = tree_find(store, diff_id, err);
	if (found < 0 || (found == 1 && store_set_aside(store, dirfd, name, err) < 0))
		return -1;
	if (found == 0 && (tree_forget_stale(store, tree.hex, err) < 0 ||
			   tree_give_name(store, &tree, dirfd, name, err) < 0))
		return -1;
	return steal_fd(&hold);
}

int tree_record(struct meta *meta, struct store *store, const struct digest *diff_id,
		struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char boot[BOOT_ID_MAX];
	struct tree_name name;
	int found;

	tree_name_make(diff_id, &name);
	found = tree_is_recorded(store, meta, name.hex, err);
	if (found != 0)
		return found < 0 ? -1 : 0;
	if (store_boot(store, boot, err) < 0)
		return -1;
	record = json_pack("{s:i, s:I, s:s}", "v", 1, "atMs", (json_int_t)clock_now_ms(), "boot",
			   boot);
	if (meta_put(meta, TREE_TABLE, str_of(name.hex), record, err) < 0)
		return -1;
	return meta_put(meta, TREE_UNSYNCED, str_of(name.hex), record, err);
}

/* Unsynced trees, by hex, of this boot or of all others. */
struct tree_list {
	const char *boot;
	bool ours;
	json_t *trees;
};

static int tree_list_one(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct tree_list *list = ctx;
	AUTO(json) json_t *copy = json_deep_copy(value);
	struct str boot;

	if (json_need_string(value, TREE_UNSYNCED, "boot", &boot, err) < 0)
		return -1;
	if (str_equal(boot, str_of(list->boot)) != list->ours)
		return 0;
	if (json_object_setn(list->trees, key.ptr, key.len, copy) < 0)
		return err_set(err, ERR_CORRUPT, "a tree's record has a damaged key");
	return 0;
}

static int tree_list_unsynced(struct store *store, bool ours, json_t **out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *trees = json_object();
	char boot[BOOT_ID_MAX];
	struct tree_list list = {boot, ours, trees};

	if (store_boot(store, boot, err) < 0 || meta_begin(store, META_READ, &meta, err) < 0 ||
	    meta_each(meta, TREE_UNSYNCED, STR(""), tree_list_one, &list, err) < 0)
		return -1;
	*out = steal_ptr(&trees);
	return 0;
}

/* Unless the tree was made again meanwhile, after the syncfs. */
static int tree_settle_one(struct meta *meta, const char *hex, const json_t *seen, struct err *err)
{
	AUTO(json) json_t *record = NULL;
	AUTO(json) json_t *now = NULL;
	int found = meta_get(meta, TREE_UNSYNCED, str_of(hex), &now, err);

	if (found <= 0 || !json_equal(now, seen))
		return found < 0 ? -1 : 0;
	found = meta_get(meta, TREE_TABLE, str_of(hex), &record, err);
	if (found < 0)
		return -1;
	if (found == 1) {
		(void)json_object_del(record, "boot"); /* absent is as good */
		if (meta_put(meta, TREE_TABLE, str_of(hex), record, err) < 0)
			return -1;
	}
	return meta_del(meta, TREE_UNSYNCED, str_of(hex), err) < 0 ? -1 : 0;
}

int tree_settle(struct store *store, struct err *err)
{
	AUTO(json) json_t *trees = NULL;
	AUTO(meta) struct meta *meta = NULL;
	const char *hex;
	json_t *seen;

	if (tree_list_unsynced(store, true, &trees, err) < 0)
		return -1;
	if (json_object_size(trees) == 0)
		return 0;
	if (syncfs(store->dirs[STORE_TREES]) < 0)
		return err_os(err, errno, "sync the file system of %s", store->path);
	if (meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	json_object_foreach(trees, hex, seen)
	{
		if (tree_settle_one(meta, hex, seen, err) < 0)
			return -1;
	}
	return meta_commit(steal_ptr(&meta), err);
}

/*
 * As long as the stale record is there nobody has placed a new tree of that
 * name, since tree_place() deletes it first; so the directory is the old one.
 */
static int tree_sweep_one(struct store *store, struct meta *meta, const char *hex,
			  const json_t *seen, struct err *err)
{
	AUTO(json) json_t *now = NULL;
	int found = meta_get(meta, TREE_UNSYNCED, str_of(hex), &now, err);

	if (found <= 0 || !json_equal(now, seen))
		return found < 0 ? -1 : 0;
	if (trash_take(store, store->dirs[STORE_TREES], hex, err) < 0)
		return -1;
	return tree_forget_in(meta, hex, err);
}

static int tree_sweep_unsynced(struct store *store, struct err *err)
{
	AUTO(json) json_t *trees = NULL;
	AUTO(meta) struct meta *meta = NULL;
	const char *hex;
	json_t *seen;

	if (tree_list_unsynced(store, false, &trees, err) < 0)
		return -1;
	if (json_object_size(trees) == 0)
		return 0;
	if (meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	json_object_foreach(trees, hex, seen)
	{
		if (tree_sweep_one(store, meta, hex, seen, err) < 0)
			return -1;
	}
	return meta_commit(steal_ptr(&meta), err);
}

/* A directory without a record, unless somebody is about to write it. */
static int tree_sweep_orphan(struct store *store, const char *hex, struct err *err)
{
	auto_close int hold = -1;
	int found = tree_has_record(store, hex, err);

	if (found != 0)
		return found < 0 ? -1 : 0;
	found = hold_try(store->dirs[STORE_TREES], hex, &hold, err);
	if (found <= 0)
		return found;
	found = tree_has_record(store, hex, err); /* it may have been written before we held it */
	if (found != 0)
		return found < 0 ? -1 : 0;
	return trash_take(store, store->dirs[STORE_TREES], hex, err) < 0 ? -1 : 0;
}

static int tree_sweep_orphans(struct store *store, struct err *err)
{
	auto_dir DIR *dir = NULL;
	struct dirent *entry;

	if (fd_open_dir(store->dirs[STORE_TREES], ".", &dir, err) < 0)
		return err_ctx(err, "%s/trees", store->path);
	while ((entry = readdir(dir))) {
		if (!fd_is_dots(entry->d_name) && tree_sweep_orphan(store, entry->d_name, err) < 0)
			return err_ctx(err, "%s/trees", store->path);
	}
	return 0;
}

int tree_sweep(struct store *store, struct err *err)
{
	if (tree_sweep_unsynced(store, err) < 0)
		return -1;
	return tree_sweep_orphans(store, err);
}

struct tree_walk {
	tree_each_fn *fn;
	void *ctx;
};

static int tree_visit(void *ctx, struct str key, const json_t *value, struct err *err)
{
	const struct tree_walk *walk = ctx;
	char text[DIGEST_TEXT_MAX];
	struct digest diff_id;
	int64_t at_ms;

	/* sha256 is the only algorithm that names layers */
	(void)snprintf(text, sizeof(text), "sha256:" STR_FMT, STR_ARG(key));
	if (digest_parse(str_of(text), &diff_id, err) < 0 ||
	    json_need_int(value, TREE_TABLE, "atMs", &at_ms, err) < 0) {
		err->kind = ERR_CORRUPT;
		return err_ctx(err, "tree " STR_FMT, STR_ARG(key));
	}
	return walk->fn(walk->ctx, &diff_id, at_ms, err);
}

int tree_each(struct meta *meta, tree_each_fn *fn, void *ctx, struct err *err)
{
	struct tree_walk walk = {fn, ctx};

	return meta_each(meta, TREE_TABLE, STR(""), tree_visit, &walk, err);
}

int tree_remove(struct store *store, const struct digest *diff_id, struct err *err)
{
	auto_close int hold = -1;
	AUTO(meta) struct meta *meta = NULL;
	struct tree_name name;
	int held;
	int found;

	tree_name_make(diff_id, &name);
	held = hold_try(store->dirs[STORE_TREES], name.hex, &hold, err);
	if (held < 0 || meta_begin(store, META_WRITE, &meta, err) < 0)
		return -1;
	found = meta_has(meta, TREE_TABLE, str_of(name.hex), err);
	if (found <= 0 || (held == 0 && faccessat(store->dirs[STORE_TREES], name.hex, F_OK,
						  AT_SYMLINK_NOFOLLOW) == 0))
		return found < 0 ? -1 : 0;
	/* First: a record without its directory is a miss, the reverse is swept. */
	if (trash_take(store, store->dirs[STORE_TREES], name.hex, err) < 0 ||
	    tree_forget_in(meta, name.hex, err) < 0 || meta_commit(steal_ptr(&meta), err) < 0)
		return -1;
	return 1;
}

static int tree_count(int dirfd, int depth, const struct cancel *cancel, uint64_t *out,
		      struct err *err);

/* The blocks of a file are divided by the number of its links. */
static int tree_count_one(int dirfd, const char *name, int depth, const struct cancel *cancel,
			  uint64_t *out, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "look at a tree");
	*out += (uint64_t)st.st_blocks * 512 /
		(S_ISDIR(st.st_mode) || st.st_nlink == 0 ? 1 : (uint64_t)st.st_nlink);
	if (!S_ISDIR(st.st_mode) || depth == (int)TREE_DEPTH_MAX)
		return 0;
	fd = fd_open_entry(dirfd, name, O_RDONLY | O_DIRECTORY, err);
	if (fd < 0)
		return err->os == ENOENT ? 0 : -1;
	return tree_count(fd, depth + 1, cancel, out, err);
}

static int tree_count(int dirfd, int depth, const struct cancel *cancel, uint64_t *out,
		      struct err *err)
{
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;

	if (cancel_check(cancel, err) < 0 || fd_open_dir(dirfd, ".", &dir, err) < 0)
		return -1;
	while ((entry = readdir(dir))) {
		if (!fd_is_dots(entry->d_name) &&
		    tree_count_one(dirfd, entry->d_name, depth, cancel, out, err) < 0)
			return -1;
	}
	return 0;
}

int tree_blocks(struct store *store, const struct digest *diff_id, const struct cancel *cancel,
		uint64_t *out, struct err *err)
{
	struct tree_name name;

	tree_name_make(diff_id, &name);
	*out = 0;
	return tree_count_one(store->dirs[STORE_TREES], name.hex, 0, cancel, out, err);
}

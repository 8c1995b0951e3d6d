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
 *	1 placed     trees/<hex>             none             a miss
 *	2 recorded   the same                with boot        a hit in this boot
 *	3 settled    the same, on the disk   without boot     a hit
 *
 * What died at 1 is complete as long as the machine runs, since its pages are
 * in the cache, and the next one who places the same tree takes it over.
 */
#include "layers/tree.h"

#include "layers/trash_priv.h"
#include "layers/tree_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define TREE_TABLE "trees"
#define TREE_UNSYNCED "trees.unsynced"
#define TREE_RECORD_MS 3600000 /* nobody takes longer from placing to recording */

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

int tree_find(struct store *store, const struct digest *diff_id, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct tree_name name;
	int found;

	tree_name_make(diff_id, &name);
	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = tree_is_recorded(store, meta, name.hex, err);
	if (found <= 0)
		return found;
	if (faccessat(store->dirs[STORE_TREES], name.hex, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ? 0 : err_os(err, errno, "look for the tree %s", name.hex);
}

static int tree_forget_in(struct meta *meta, const char *hex, struct err *err)
{
	if (meta_del(meta, TREE_TABLE, str_of(hex), err) < 0 ||
	    meta_del(meta, TREE_UNSYNCED, str_of(hex), err) < 0)
		return -1;
	return 0;
}

/* A record without a good directory would vouch for the next one of its name. */
static int tree_forget_stale(struct store *store, const char *hex, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	int found;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = meta_has(meta, TREE_TABLE, str_of(hex), err);
	if (found <= 0)
		return found;
	meta_abort(steal_ptr(&meta));
	if (meta_begin(store, META_WRITE, &meta, err) < 0 || tree_forget_in(meta, hex, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/* When the directory got its name: its ctime. 1, 0 where it is gone, -1. */
static int tree_placed_ms(const struct store *store, const char *hex, int64_t *out, struct err *err)
{
	struct stat st;

	if (fstatat(store->dirs[STORE_TREES], hex, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		*out = (int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000;
		return 1;
	}
	return errno == ENOENT ? 0 : err_os(err, errno, "look at the tree %s", hex);
}

/*
 * Whether a directory without a good record is nobody's: placed before this
 * boot, so that a power cut may have taken its files' bytes, or so long ago
 * that nobody will record it any more.
 */
static bool tree_is_nobodys(int64_t placed_ms)
{
	int64_t now = clock_now_ms();
	struct timespec up;

	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	return placed_ms < now - (int64_t)up.tv_sec * 1000 || placed_ms < now - TREE_RECORD_MS;
}

/*
 * Another directory has the name, and no good record. Fresh, it is as good as
 * ours and may be in use at any moment. 1 done, 0 it vanished, -1.
 */
static int tree_replace(struct store *store, const char *hex, int dirfd, const char *name,
			struct err *err)
{
	int64_t placed = 0;
	int there = tree_placed_ms(store, hex, &placed, err);

	if (there <= 0)
		return there;
	if (tree_is_nobodys(placed) &&
	    renameat2(dirfd, name, store->dirs[STORE_TREES], hex, RENAME_EXCHANGE) < 0)
		return errno == ENOENT ? 0 : err_os(err, errno, "replace the tree %s", hex);
	return store_set_aside(store, dirfd, name, err) < 0 ? -1 : 1;
}

int tree_place(struct store *store, const struct digest *diff_id, int dirfd, const char *name,
	       struct err *err)
{
	struct tree_name tree;
	int found = tree_find(store, diff_id, err);

	if (found < 0)
		return -1;
	if (found == 1)
		return store_set_aside(store, dirfd, name, err);
	tree_name_make(diff_id, &tree);
	if (tree_forget_stale(store, tree.hex, err) < 0)
		return -1;
	while (renameat2(dirfd, name, store->dirs[STORE_TREES], tree.hex, RENAME_NOREPLACE) < 0) {
		if (errno != EEXIST)
			return err_os(err, errno, "place the tree %s", tree.hex);
		found = tree_replace(store, tree.hex, dirfd, name, err);
		if (found != 0)
			return found < 0 ? -1 : 0;
	}
	return 0;
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

int tree_adopt(struct store *store, const struct digest *diff_id, int dirfd, const char *name,
	       struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (tree_place(store, diff_id, dirfd, name, err) < 0 ||
	    meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    tree_record(meta, store, diff_id, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
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

/* Unless it was made anew meanwhile, which no syncfs has seen. */
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

/* A directory that nobody recorded, and nobody is about to. */
static int tree_sweep_orphan(struct store *store, struct meta *meta, const char *hex,
			     struct err *err)
{
	int64_t placed = 0;
	int found = meta_has(meta, TREE_TABLE, str_of(hex), err);

	if (found != 0)
		return found < 0 ? -1 : 0;
	found = tree_placed_ms(store, hex, &placed, err);
	if (found <= 0 || !tree_is_nobodys(placed))
		return found < 0 ? -1 : 0;
	return trash_take(store, store->dirs[STORE_TREES], hex, err) < 0 ? -1 : 0;
}

static int tree_sweep_orphans(struct store *store, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	auto_dir DIR *dir = NULL;
	struct dirent *entry;

	if (fd_open_dir(store->dirs[STORE_TREES], ".", &dir, err) < 0)
		return err_ctx(err, "%s/trees", store->path);
	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	while ((entry = readdir(dir))) {
		if (!fd_is_dots(entry->d_name) &&
		    tree_sweep_orphan(store, meta, entry->d_name, err) < 0)
			return -1;
	}
	return 0;
}

int tree_sweep(struct store *store, struct err *err)
{
	if (tree_sweep_unsynced(store, err) < 0)
		return -1;
	return tree_sweep_orphans(store, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_write.c - an image of the store as an OCI layout.
 *
 *	1 blobs/sha256/<hex>   (and sha512) written under a name of ours, synced, renamed
 *	2 index.json           the same, last: it alone makes the image exist
 *
 * One writer at a time holds a flock on the directory, so that two exports into
 * one layout keep each other's entries, and names of ours that are found there
 * were left by a dead one. Whoever fails before 2 removes what it made.
 */
#include "layers/base/fd.h"
#include "layers/base/ulid.h"
#include "layers/blob.h"
#include "registry/inventory.h"
#include "registry/layout_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LAYOUT_STAGED ".hearth-" /* and a ULID */
#define LAYOUT_STAGED_MAX (sizeof("blobs/sha256/" LAYOUT_STAGED) + ULID_TEXT_MAX)

#define LAYOUT_RETRY_MS 20 /* between looks at a lock: there is no wait for one and a cancel */

/* Where blobs lie, by the algorithm of their names; made when it is needed. */
static const char *const layout_dirs[] = {
	[DIGEST_SHA256] = "blobs/sha256",
	[DIGEST_SHA512] = "blobs/sha512",
};
#define LAYOUT_DIRS (sizeof(layout_dirs) / sizeof(layout_dirs[0]))

struct layout_blob {
	const struct inventory_item *is;
	bool made; /* by us, now */
};

struct layout_writer {
	struct store *store;
	const struct cancel *cancel;
	char path[REFERENCE_TEXT_MAX + 1];
	int fd;                    /* owned: the layout's directory, locked */
	bool made_dir;             /* or it was there */
	bool made_layout;          /* of an empty directory */
	struct layout_blob *blobs; /* owned: all of the image, and itself last */
	size_t blob_count;
	bool needs[LAYOUT_DIRS];
};

struct layout_sink {
	struct sink sink;
	int fd;
	const struct cancel *cancel;
};

static int layout_sink_write(struct sink *sink, struct str bytes, struct err *err)
{
	const struct layout_sink *to = container_of(sink, struct layout_sink, sink);

	if (cancel_check(to->cancel, err) < 0)
		return -1;
	return fd_write_all(to->fd, bytes.ptr, bytes.len, err);
}

/*
 * Go through a directory's names: what a writer that died left is removed, and
 * *out_other says whether there is anything else.
 */
static int layout_sweep(int layoutfd, const char *name, bool *out_other, struct err *err)
{
	auto_close int fd = fd_open_beneath(layoutfd, name, O_RDONLY | O_DIRECTORY, 0, err);
	const struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return -1;
	dir = fdopendir(fd);
	if (!dir)
		return err_os(err, errno, "read %s", name);
	(void)steal_fd(&fd);
	*out_other = false;
	while ((entry = readdir(dir))) {
		struct str found = str_of(entry->d_name);

		if (str_starts(found, STR(LAYOUT_STAGED)))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
		else if (!str_equal(found, STR(".")) && !str_equal(found, STR("..")))
			*out_other = true;
	}
	closedir(dir);
	return 0;
}

static int layout_sync_dir(int layoutfd, const char *name, struct err *err)
{
	auto_close int fd = openat(layoutfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return err_os(err, errno, "sync %s", name);
	return 0;
}

static int layout_lock(int fd, const struct cancel *cancel, struct err *err)
{
	struct pollfd wake = {.fd = cancel_fd(cancel), .events = POLLIN};

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_os(err, errno, "lock");
		(void)poll(&wake, 1, LAYOUT_RETRY_MS);
		if (cancel_check(cancel, err) < 0)
			return -1;
	}
	return 0;
}

/* Make the directory, if its parent exists, and lock it: 1, 0 it was removed meanwhile, -1. */
static int layout_try_open(struct layout_writer *writer, struct err *err)
{
	bool made = mkdir(writer->path, 0755) == 0;
	auto_close int fd = -1;
	struct stat st;

	if (!made && (errno == ENOENT || errno == ENOTDIR))
		return err_set(err, ERR_NOT_FOUND, "there is no directory to make it in");
	if (!made && errno != EEXIST)
		return err_os(err, errno, "make directory");
	if (layout_open(str_of(writer->path), &fd, err) < 0 ||
	    layout_lock(fd, writer->cancel, err) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_os(err, errno, "stat");
	if (st.st_nlink == 0)
		return 0;
	writer->made_dir = made;
	writer->fd = steal_fd(&fd);
	return 1;
}

static int layout_open_to_write(struct layout_writer *writer, struct str dir, struct err *err)
{
	int opened;

	if (dir.len == 0 || dir.len >= sizeof(writer->path) || memchr(dir.ptr, '\0', dir.len))
		return err_set(err, ERR_INVALID, "not a directory's name");
	memcpy(writer->path, dir.ptr, dir.len);
	writer->path[dir.len] = '\0';
	do {
		opened = layout_try_open(writer, err);
	} while (opened == 0);
	return opened < 0 ? -1 : 0;
}

/* What a staged file is called, in the directory that it will stay in. */
static const char *layout_staged_name(const char *subdir, char name[static LAYOUT_STAGED_MAX])
{
	char id[ULID_TEXT_MAX];

	(void)snprintf(name, LAYOUT_STAGED_MAX, "%s%s" LAYOUT_STAGED "%s", subdir,
		       *subdir ? "/" : "", ulid_new(id));
	return name;
}

/* Sync a staged file and give it its name; it is gone if that fails. */
static int layout_publish(int layoutfd, int fd, const char *staged, const char *name,
			  struct err *err)
{
	if (fsync(fd) < 0 || renameat(layoutfd, staged, layoutfd, name) < 0) {
		(void)err_os(err, errno, "write %s", name);
		(void)unlinkat(layoutfd, staged, 0);
		return -1;
	}
	return 0;
}

static int layout_stage(int layoutfd, const char *staged, struct err *err)
{
	int fd = openat(layoutfd, staged, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 ? err_os(err, errno, "create %s", staged) : fd;
}

static int layout_write_file(int layoutfd, const char *name, struct str bytes, struct err *err)
{
	char staged[LAYOUT_STAGED_MAX];
	auto_close int fd = layout_stage(layoutfd, layout_staged_name("", staged), err);

	if (fd < 0)
		return -1;
	if (fd_write_all(fd, bytes.ptr, bytes.len, err) < 0) {
		(void)unlinkat(layoutfd, staged, 0);
		return err_ctx(err, "%s", name);
	}
	return layout_publish(layoutfd, fd, staged, name, err);
}

/* Whether the layout has these very bytes. A blob that is damaged is written again. */
static bool layout_has_blob(const struct layout_writer *writer, const char *name,
			    const struct inventory_item *blob)
{
	auto_close int fd = -1;
	AUTO(hasher) struct hasher hasher = {0};
	auto_free char *piece = malloc(BLOB_CHUNK_MAX);
	struct digest digest;
	struct err why;
	uint64_t size;
	ssize_t n;

	if (!piece)
		abort();
	hasher_init_as(&hasher, blob->digest.algorithm);
	fd = layout_open_file(writer->fd, name, &size, &why);
	if (fd < 0 || size != blob->size)
		return false;
	while ((n = read(fd, piece, BLOB_CHUNK_MAX)) > 0 && !cancel_is_raised(writer->cancel))
		hasher_add(&hasher, (struct str){piece, (size_t)n});
	hasher_final(&hasher, &digest);
	return n == 0 && digest_equal(&digest, &blob->digest);
}

static int layout_write_blob(const struct layout_writer *writer, struct layout_blob *blob,
			     struct err *err)
{
	char name[LAYOUT_BLOB_NAME_MAX];
	char staged[LAYOUT_STAGED_MAX];
	struct layout_sink sink = {{layout_sink_write}, -1, writer->cancel};
	auto_close int fd = -1;

	layout_blob_name(&blob->is->digest, name);
	if (layout_has_blob(writer, name, blob->is))
		return 0;
	(void)layout_staged_name(layout_dirs[blob->is->digest.algorithm], staged);
	fd = layout_stage(writer->fd, staged, err);
	if (fd < 0)
		return -1;
	sink.fd = fd;
	if (blob_copy(writer->store, &blob->is->digest, &sink.sink, err) < 0) {
		(void)unlinkat(writer->fd, staged, 0);
		return err->kind == ERR_CANCELLED ? -1 : err_ctx(err, "%s", name);
	}
	if (layout_publish(writer->fd, fd, staged, name, err) < 0)
		return -1;
	blob->made = true;
	return 0;
}

static int layout_write_blobs(const struct layout_writer *writer, struct err *err)
{
	for (size_t i = 0; i < writer->blob_count; i++) {
		if (layout_write_blob(writer, &writer->blobs[i], err) < 0)
			return -1;
	}
	for (size_t i = 0; i < LAYOUT_DIRS; i++) {
		if (writer->needs[i] && layout_sync_dir(writer->fd, layout_dirs[i], err) < 0)
			return -1;
	}
	return 0;
}

/* The index that is there, or an empty one. */
static int layout_load_index(int layoutfd, json_t **out, json_t **out_list, struct err *err)
{
	struct err why = {0};

	if (layout_read_index(layoutfd, out, out_list, &why) == 0)
		return 0;
	if (why.kind != ERR_NOT_FOUND)
		return err_set(err, why.kind, "%s", why.text);
	*out = layout_new_index();
	*out_list = json_object_get(*out, "manifests");
	return 0;
}

/* An entry of the same name is replaced; without a name, one of the same digest. */
static void layout_replace_entry(json_t *list, json_t *entry, struct str tag)
{
	struct str digest = json_str(json_object_get(entry, "digest"));

	for (size_t at = json_array_size(list); at-- > 0;) {
		const json_t *old = json_array_get(list, at);
		const json_t *old_digest = json_object_get(old, "digest");
		struct str name = layout_entry_name(old);

		if (!str_equal(name, tag))
			continue;
		if (tag.len > 0 ||
		    (json_is_string(old_digest) && str_equal(json_str(old_digest), digest)))
			(void)json_array_remove(list, at);
	}
	if (json_array_append_new(list, entry) < 0)
		abort();
}

static int layout_write_index(int layoutfd, const struct descriptor *self, struct str tag,
			      struct err *err)
{
	auto_buf struct buf text = BUF_INIT(LAYOUT_INDEX_MAX);
	AUTO(json) json_t *document = NULL;
	json_t *list;

	if (layout_load_index(layoutfd, &document, &list, err) < 0)
		return -1;
	layout_replace_entry(list, layout_entry(self, tag, STR("")), tag);
	if (json_format(document, &text, err) < 0)
		return -1;
	return layout_write_file(layoutfd, "index.json", buf_str(&text), err);
}

/* A directory that holds something else is not turned into a layout. */
static int layout_mark(struct layout_writer *writer, struct err *err)
{
	auto_buf struct buf marker = BUF_INIT(1024);
	struct err why = {0};
	bool other = false;

	if (layout_sweep(writer->fd, ".", &other, err) < 0)
		return -1;
	if (layout_read_file(writer->fd, "oci-layout", &marker, &why) == 0)
		return 0;
	if (why.kind != ERR_NOT_FOUND)
		return err_set(err, why.kind, "%s", why.text);
	if (other)
		return err_set(err, ERR_CONFLICT, "not empty, and not an OCI layout");
	writer->made_layout = true;
	return layout_write_file(writer->fd, "oci-layout", STR(LAYOUT_VERSION), err);
}

static int layout_make_dir(const struct layout_writer *writer, const char *name, struct err *err)
{
	if (mkdirat(writer->fd, name, 0755) < 0 && errno != EEXIST)
		return err_os(err, errno, "make %s", name);
	return 0;
}

static int layout_prepare(struct layout_writer *writer, struct err *err)
{
	bool other;

	if (layout_mark(writer, err) < 0 || layout_make_dir(writer, "blobs", err) < 0)
		return -1;
	for (size_t i = 0; i < LAYOUT_DIRS; i++) {
		if (writer->needs[i] && (layout_make_dir(writer, layout_dirs[i], err) < 0 ||
					 layout_sweep(writer->fd, layout_dirs[i], &other, err) < 0))
			return -1;
	}
	if (layout_sync_dir(writer->fd, "blobs", err) < 0 ||
	    layout_sync_dir(writer->fd, ".", err) < 0)
		return -1;
	return layout_sync_dir(writer->fd, "..", err);
}

/* Directories that hold something go on holding it. */
static void layout_undo(const struct layout_writer *writer)
{
	char name[LAYOUT_BLOB_NAME_MAX];

	for (size_t i = 0; i < writer->blob_count; i++) {
		if (writer->blobs[i].made)
			(void)unlinkat(writer->fd,
				       layout_blob_name(&writer->blobs[i].is->digest, name), 0);
	}
	if (writer->made_layout) {
		(void)unlinkat(writer->fd, "oci-layout", 0);
		for (size_t i = 0; i < LAYOUT_DIRS; i++)
			(void)unlinkat(writer->fd, layout_dirs[i], AT_REMOVEDIR);
		(void)unlinkat(writer->fd, "blobs", AT_REMOVEDIR);
	}
	if (writer->made_dir)
		(void)rmdir(writer->path);
}

static int layout_write_all(struct layout_writer *writer, struct str dir,
			    const struct descriptor *self, struct str tag, struct err *err)
{
	if (cancel_check(writer->cancel, err) < 0 || layout_open_to_write(writer, dir, err) < 0)
		return -1;
	if (layout_prepare(writer, err) < 0 || layout_write_blobs(writer, err) < 0 ||
	    cancel_check(writer->cancel, err) < 0 ||
	    layout_write_index(writer->fd, self, tag, err) < 0) {
		layout_undo(writer);
		return -1;
	}
	return layout_sync_dir(writer->fd, ".", err);
}

static void layout_list_blobs(struct layout_writer *writer, const struct inventory *inventory)
{
	writer->blobs = calloc(inventory->count, sizeof(*writer->blobs));
	if (!writer->blobs)
		abort();
	for (size_t i = 0; i < inventory->count; i++) {
		writer->blobs[i].is = &inventory->items[i];
		writer->needs[inventory->items[i].digest.algorithm] = true;
	}
	writer->blob_count = inventory->count;
}

int layout_write(struct store *store, const struct digest *manifest, struct str dir, struct str tag,
		 const struct cancel *cancel, struct err *err)
{
	struct layout_writer writer = {.store = store, .cancel = cancel, .fd = -1};
	auto_inventory struct inventory inventory = {0};
	struct descriptor self;
	int result = -1;

	if (inventory_read(store, manifest, &inventory, err) == 0) {
		self = (struct descriptor){inventory.image.media_type, *manifest,
					   inventory_image(&inventory)->size};
		layout_list_blobs(&writer, &inventory);
		result = layout_write_all(&writer, dir, &self, tag, err);
	}
	auto_close_release(&writer.fd);
	free(writer.blobs);
	return result < 0 ? err_ctx(err, "layout " STR_FMT, STR_ARG(dir)) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_write.c - an image of the store as an OCI layout.
 *
 *	1 blobs/sha256/<hex>   written under a name of ours, synced, renamed
 *	2 index.json           the same, last: it alone makes the image exist
 *
 * One writer at a time holds a flock on the directory, so that two exports into
 * one layout keep each other's entries, and names of ours that are found there
 * were left by a dead one.
 */
#include "layers/base/clock.h"
#include "layers/base/fd.h"
#include "layers/blob.h"
#include "registry/layout_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LAYOUT_BLOBS "blobs/sha256"
#define LAYOUT_STAGED ".hearth-" /* and a ULID */
#define LAYOUT_STAGED_MAX (sizeof(LAYOUT_BLOBS "/" LAYOUT_STAGED) + ULID_TEXT_MAX)
#define LAYOUT_VERSION "{\"imageLayoutVersion\":\"1.0.0\"}"

struct fd_sink {
	struct sink sink;
	int fd;
};

static int fd_sink_write(struct sink *sink, struct str bytes, struct err *err)
{
	return fd_write_all(((struct fd_sink *)sink)->fd, bytes.ptr, bytes.len, err);
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

/* Make the directory, if its parent exists, and be its only writer. */
static int layout_open_to_write(struct str dir, int *out_fd, struct err *err)
{
	auto_close int fd = -1;
	char path[REFERENCE_TEXT_MAX + 1];

	if (dir.len == 0 || dir.len >= sizeof(path) || memchr(dir.ptr, '\0', dir.len))
		return err_set(err, ERR_INVALID, "not a directory's name");
	memcpy(path, dir.ptr, dir.len);
	path[dir.len] = '\0';
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_os(err, errno, "make directory");
	if (layout_open(dir, &fd, err) < 0)
		return -1;
	while (flock(fd, LOCK_EX) < 0) {
		if (errno != EINTR)
			return err_os(err, errno, "lock");
	}
	*out_fd = steal_fd(&fd);
	return 0;
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
static bool layout_has_blob(int layoutfd, const char *name, const struct descriptor *blob)
{
	auto_close int fd = -1;
	struct digest digest;
	struct err why;
	uint64_t size;

	fd = layout_open_file(layoutfd, name, &size, &why);
	return fd >= 0 && size == blob->size &&
	       digest_from_fd(fd, DIGEST_SHA256, &digest, &why) == 0 &&
	       digest_equal(&digest, &blob->digest);
}

static int layout_write_blob(struct store *store, int layoutfd, const struct descriptor *blob,
			     struct err *err)
{
	char name[LAYOUT_BLOB_NAME_MAX];
	char staged[LAYOUT_STAGED_MAX];
	struct fd_sink sink = {{fd_sink_write}, -1};
	auto_close int fd = -1;

	layout_blob_name(&blob->digest, name);
	if (layout_has_blob(layoutfd, name, blob))
		return 0;
	fd = layout_stage(layoutfd, layout_staged_name(LAYOUT_BLOBS, staged), err);
	if (fd < 0)
		return -1;
	sink.fd = fd;
	if (blob_copy(store, &blob->digest, &sink.sink, err) < 0) {
		(void)unlinkat(layoutfd, staged, 0);
		return err_ctx(err, "%s", name);
	}
	return layout_publish(layoutfd, fd, staged, name, err);
}

static int layout_write_blobs(struct store *store, int layoutfd, const struct manifest *manifest,
			      const struct descriptor *self, struct err *err)
{
	for (size_t i = 0; i < manifest->layer_count; i++) {
		if (layout_write_blob(store, layoutfd, &manifest->layers[i], err) < 0)
			return -1;
	}
	if (layout_write_blob(store, layoutfd, &manifest->config, err) < 0 ||
	    layout_write_blob(store, layoutfd, self, err) < 0)
		return -1;
	return layout_sync_dir(layoutfd, LAYOUT_BLOBS, err);
}

static json_t *layout_entry(const struct descriptor *self, struct str tag)
{
	char text[DIGEST_TEXT_MAX];
	json_t *entry =
		json_pack("{s:o, s:s, s:I}", "mediaType", json_from_str(self->media_type), "digest",
			  digest_format(&self->digest, text), "size", (json_int_t)self->size);

	if (!entry)
		abort();
	if (tag.len > 0 &&
	    json_object_set_new(entry, "annotations",
				json_pack("{s:o}", LAYOUT_REF_NAME, json_from_str(tag))) < 0)
		abort();
	return entry;
}

/* The index that is there, or an empty one. */
static int layout_load_index(int layoutfd, json_t **out, json_t **out_list, struct err *err)
{
	struct err why = {0};

	if (layout_read_index(layoutfd, out, out_list, &why) == 0)
		return 0;
	if (why.kind != ERR_NOT_FOUND)
		return err_set(err, why.kind, "%s", why.text);
	*out = json_pack("{s:i, s:s, s:[]}", "schemaVersion", 2, "mediaType", MEDIA_OCI_INDEX,
			 "manifests");
	if (!*out)
		abort();
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
	layout_replace_entry(list, layout_entry(self, tag), tag);
	if (json_format(document, &text, err) < 0 ||
	    layout_write_file(layoutfd, "index.json", buf_str(&text), err) < 0)
		return -1;
	return layout_sync_dir(layoutfd, ".", err);
}

/* A directory that holds something else is not turned into a layout. */
static int layout_prepare(int layoutfd, struct err *err)
{
	auto_buf struct buf marker = BUF_INIT(1024);
	struct err why = {0};
	bool other = false;

	if (layout_sweep(layoutfd, ".", &other, err) < 0)
		return -1;
	if (layout_read_file(layoutfd, "oci-layout", &marker, &why) < 0) {
		if (why.kind != ERR_NOT_FOUND)
			return err_set(err, why.kind, "%s", why.text);
		if (other)
			return err_set(err, ERR_CONFLICT, "not empty, and not an OCI layout");
		if (layout_write_file(layoutfd, "oci-layout", STR(LAYOUT_VERSION), err) < 0)
			return -1;
	}
	if ((mkdirat(layoutfd, "blobs", 0755) < 0 && errno != EEXIST) ||
	    (mkdirat(layoutfd, LAYOUT_BLOBS, 0755) < 0 && errno != EEXIST))
		return err_os(err, errno, "make " LAYOUT_BLOBS);
	if (layout_sweep(layoutfd, LAYOUT_BLOBS, &other, err) < 0 ||
	    layout_sync_dir(layoutfd, "blobs", err) < 0 || layout_sync_dir(layoutfd, ".", err) < 0)
		return -1;
	return layout_sync_dir(layoutfd, "..", err);
}

static int layout_write_into(struct store *store, const struct digest *digest, struct str dir,
			     struct str tag, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_manifest struct manifest manifest = {0};
	auto_close int layoutfd = -1;
	struct descriptor self;

	if (blob_read_all(store, digest, &text, err) < 0 ||
	    manifest_parse(buf_str(&text), &manifest, err) < 0)
		return -1;
	self = (struct descriptor){manifest.media_type, *digest, text.len};
	if (layout_open_to_write(dir, &layoutfd, err) < 0 || layout_prepare(layoutfd, err) < 0 ||
	    layout_write_blobs(store, layoutfd, &manifest, &self, err) < 0)
		return -1;
	return layout_write_index(layoutfd, &self, tag, err);
}

int layout_write(struct store *store, const struct digest *manifest, struct str dir, struct str tag,
		 struct err *err)
{
	if (layout_write_into(store, manifest, dir, tag, err) < 0)
		return err_ctx(err, "layout " STR_FMT, STR_ARG(dir));
	return 0;
}

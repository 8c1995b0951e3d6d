/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/layout_priv.h"

#include "layers/base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

int layout_open(struct str dir, int *out_fd, struct err *err)
{
	char path[REFERENCE_TEXT_MAX + 1];
	struct stat st;
	int fd;

	if (dir.len >= sizeof(path) || memchr(dir.ptr, '\0', dir.len))
		return err_set(err, ERR_INVALID, "not a directory's name");
	memcpy(path, dir.ptr, dir.len);
	path[dir.len] = '\0';
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOTDIR && lstat(path, &st) == 0)
		return err_set(err, ERR_NOT_FOUND,
			       "%s is no directory; a file is oci-archive:FILE or "
			       "docker-archive:FILE",
			       path);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return err_set(err, ERR_NOT_FOUND, "there is no directory %s", path);
	if (fd < 0)
		return err_os(err, errno, "open %s", path);
	*out_fd = fd;
	return 0;
}

int layout_open_file(int dirfd, const char *name, uint64_t *out_size, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	/* Without O_NONBLOCK a fifo put there would hold us for ever. */
	fd = fd_open_beneath(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, err);
	if (fd < 0 && err->kind == ERR_OS && err->os == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "the layout has no %s", name);
	if (fd < 0 && err->kind == ERR_OS && (err->os == ELOOP || err->os == ENXIO))
		return err_set(err, ERR_CORRUPT, "the layout's %s is not a file", name);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_os(err, errno, "stat %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CORRUPT, "the layout's %s is not a file", name);
	*out_size = (uint64_t)st.st_size;
	return steal_fd(&fd);
}

int layout_read_file(int dirfd, const char *name, struct buf *out, struct err *err)
{
	auto_close int fd = -1;
	uint64_t size;

	fd = layout_open_file(dirfd, name, &size, err);
	if (fd < 0)
		return -1;
	return fd_read_all(fd, out, err) < 0 ? err_ctx(err, "%s", name) : 0;
}

const char *layout_blob_name(const struct digest *digest, char name[static LAYOUT_BLOB_NAME_MAX])
{
	char text[DIGEST_TEXT_MAX];

	(void)snprintf(name, LAYOUT_BLOB_NAME_MAX, "blobs/%s", digest_format(digest, text));
	*strchr(name, ':') = '/';
	return name;
}

int layout_parse_index(struct str text, json_t **out_document, json_t **out_list, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	json_t *list = NULL;
	struct err why = {0};

	if (json_parse(text, LAYOUT_INDEX_MAX, &document, &why) < 0)
		return err_set(err, ERR_CORRUPT, "index.json: %s", why.text);
	if (!json_is_object(document) ||
	    json_get_array(document, "", "manifests", &list, &why) <= 0)
		return err_set(err, ERR_CORRUPT, "index.json has no list of manifests");
	if (json_array_size(list) > LAYOUT_ENTRIES_MAX)
		return err_set(err, ERR_LIMIT, "index.json has more than %d entries",
			       LAYOUT_ENTRIES_MAX);
	*out_document = steal_ptr(&document);
	*out_list = list;
	return 0;
}

int layout_read_index(int dirfd, json_t **out_document, json_t **out_list, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(LAYOUT_INDEX_MAX);

	if (layout_read_file(dirfd, "index.json", &text, err) < 0)
		return -1;
	return layout_parse_index(buf_str(&text), out_document, out_list, err);
}

json_t *layout_new_index(void)
{
	json_t *index = json_pack("{s:i, s:s, s:[]}", "schemaVersion", 2, "mediaType",
				  MEDIA_OCI_INDEX, "manifests");

	if (!index)
		abort();
	return index;
}

json_t *layout_entry(const struct descriptor *self, struct str tag, struct str name)
{
	char text[DIGEST_TEXT_MAX];
	json_t *notes = json_object();
	json_t *entry =
		json_pack("{s:o, s:s, s:I}", "mediaType", json_from_str(self->media_type), "digest",
			  digest_format(&self->digest, text), "size", (json_int_t)self->size);

	if (!entry)
		abort();
	if (tag.len > 0)
		(void)json_object_set_new(notes, LAYOUT_REF_NAME, json_from_str(tag));
	if (name.len > 0)
		(void)json_object_set_new(notes, LAYOUT_IMAGE_NAME, json_from_str(name));
	if (json_object_size(notes) > 0)
		(void)json_object_set(entry, "annotations", notes);
	json_decref(notes);
	return entry;
}

struct str layout_entry_name(const json_t *entry)
{
	const json_t *annotations = json_object_get(entry, "annotations");
	const json_t *name = json_object_get(annotations, LAYOUT_REF_NAME);

	return json_is_string(name) ? json_str(name) : STR("");
}

/* A ref.name is often only a tag; podman writes the whole there. */
struct str layout_entry_image(const json_t *entry)
{
	const json_t *annotations = json_object_get(entry, "annotations");
	const json_t *name = json_object_get(annotations, LAYOUT_IMAGE_NAME);
	struct str ref = layout_entry_name(entry);

	if (json_is_string(name))
		return json_str(name);
	if (ref.len > 0 && (memchr(ref.ptr, '/', ref.len) || memchr(ref.ptr, ':', ref.len)))
		return ref;
	return STR("");
}

/* What there is to choose from, for the error. */
static int layout_no_such_tag(const json_t *list, struct str tag, struct err *err)
{
	auto_buf struct buf names = BUF_INIT(300);
	struct err full;
	json_t *entry;
	size_t at;

	json_array_foreach(list, at, entry)
	{
		struct str name = layout_entry_name(entry);

		if (name.len > 0 &&
		    buf_addf(&names, &full, "%s" STR_FMT, names.len ? ", " : "", STR_ARG(name)) < 0)
			break;
	}
	if (json_array_size(list) == 0)
		return err_set(err, ERR_NOT_FOUND, "the layout holds no image");
	if (tag.len == 0)
		return err_set(err, ERR_INVALID,
			       "the layout holds %zu images; name one by a :TAG at the end "
			       "(there is %s)",
			       json_array_size(list), names.len ? names.ptr : "none with a name");
	return err_set(err, ERR_NOT_FOUND, "the layout has no tag " STR_FMT "; there is %s",
		       STR_ARG(tag), names.len ? names.ptr : "none with a name");
}

/* A ref.name is the tag, or as podman and skopeo write it a whole name that ends with it. */
static bool layout_is_tagged(const json_t *entry, struct str tag, bool whole)
{
	struct str name = layout_entry_name(entry);

	if (!whole)
		return str_equal(name, tag);
	return name.len > tag.len && name.ptr[name.len - tag.len - 1] == ':' &&
	       str_equal(str_skip(name, name.len - tag.len), tag);
}

/* 1 the entry so tagged, 0 there is none, -1 there are several images. */
static int layout_find_tag(const json_t *list, struct str tag, bool whole, const json_t **out,
			   struct err *err)
{
	const json_t *entry;
	int found = 0;
	size_t at;

	json_array_foreach(list, at, entry)
	{
		if (!layout_is_tagged(entry, tag, whole))
			continue;
		if (found &&
		    !json_equal(json_object_get(entry, "digest"), json_object_get(*out, "digest")))
			return err_set(err, ERR_INVALID,
				       "the layout has several images that are tagged " STR_FMT,
				       STR_ARG(tag));
		*out = entry;
		found = 1;
	}
	return found;
}

/* The entry of that name; without a name the only one, or else "latest". */
static int layout_find(const json_t *list, struct str tag, const json_t **out, struct err *err)
{
	int found;

	if (tag.len == 0 && json_array_size(list) == 1) {
		*out = json_array_get(list, 0);
		return 1;
	}
	if (tag.len == 0)
		tag = STR("latest");
	found = layout_find_tag(list, tag, false, out, err);
	return found == 0 ? layout_find_tag(list, tag, true, out, err) : found;
}

int layout_choose(const json_t *list, struct str tag, const json_t **out_entry, struct digest *out,
		  struct err *err)
{
	const json_t *entry = NULL;
	int found = layout_find(list, tag, &entry, err);
	struct err why = {0};
	struct digest digest;
	struct str text;

	if (found < 0)
		return -1;
	if (found == 0)
		return layout_no_such_tag(list, tag, err);
	if (!json_is_object(entry) || json_need_string(entry, "", "digest", &text, &why) < 0 ||
	    digest_parse(text, &digest, &why) < 0)
		return err_set(err, ERR_CORRUPT, "index.json: an entry without a digest");
	*out_entry = entry;
	*out = digest;
	return 0;
}

int layout_resolve(struct str dir, struct str tag, struct digest *out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	auto_close int dirfd = -1;
	const json_t *entry;
	json_t *list = NULL;

	if (layout_open(dir, &dirfd, err) < 0)
		return -1;
	if (layout_read_index(dirfd, &document, &list, err) < 0 ||
	    layout_choose(list, tag, &entry, out, err) < 0)
		return err_ctx(err, STR_FMT, STR_ARG(dir));
	return 0;
}

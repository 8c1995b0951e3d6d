/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_priv.h - what reading and writing an OCI layout share.
 */
#pragma once

#include "registry/layout.h"
#include "registry/manifest.h"

#define LAYOUT_INDEX_MAX MANIFEST_MAX
#define LAYOUT_ENTRIES_MAX 10000
#define LAYOUT_VERSION "{\"imageLayoutVersion\":\"1.0.0\"}"
#define LAYOUT_REF_NAME "org.opencontainers.image.ref.name"
#define LAYOUT_IMAGE_NAME "io.containerd.image.name" /* containerd's, in full */
#define LAYOUT_BLOB_NAME_MAX (sizeof("blobs/") + DIGEST_TEXT_MAX)

/* Open the directory that a user named. ERR_NOT_FOUND. */
int layout_open(struct str dir, int *out_fd, struct err *err) MUST_CHECK;

/*
 * Open a regular file below a layout for reading, whatever else may lie there.
 * ERR_NOT_FOUND, or ERR_CORRUPT for what is no file.
 */
int layout_open_file(int dirfd, const char *name, uint64_t *out_size, struct err *err) MUST_CHECK;

/* The whole of one small file. */
int layout_read_file(int dirfd, const char *name, struct buf *out, struct err *err) MUST_CHECK;

/* "blobs/sha256/<hex>", or of a sha512 "blobs/sha512/<hex>" */
const char *layout_blob_name(const struct digest *digest, char name[static LAYOUT_BLOB_NAME_MAX]);

/* The entry list of index.json, in a document that the caller owns. */
int layout_read_index(int dirfd, json_t **out_document, json_t **out_list, struct err *err)
	MUST_CHECK;

/* The same from the text of an index.json. */
int layout_parse_index(struct str text, json_t **out_document, json_t **out_list, struct err *err)
	MUST_CHECK;

/* The entry that a tag names (layout.h), and its digest. */
int layout_choose(const json_t *list, struct str tag, const json_t **out_entry, struct digest *out,
		  struct err *err) MUST_CHECK;

/* An index.json without entries, and an entry for it; tag and full name may be "". */
json_t *layout_new_index(void);
json_t *layout_entry(const struct descriptor *self, struct str tag, struct str name);

/* The ref name of an entry, or "". */
struct str layout_entry_name(const json_t *entry);

/* What its maker called the image, in full, or "". */
struct str layout_entry_image(const json_t *entry);

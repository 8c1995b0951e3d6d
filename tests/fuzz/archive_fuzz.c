/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: what a file of an archive is lies within the archive, whatever its
 * headers say; and an image that manifest.json or index.json promises is one
 * that can be read, or refused as corrupt, too large, or not there.
 *
 * Checksums of headers are put right first, or nothing else would be tried.
 */
#include "layers/base/fd.h"
#include "layers/layer.h"
#include "registry/origin_priv.h"
#include "registry/pull.h"
#include "registry/tar_index_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_BLOCK ((size_t)512)
#define FUZZ_SIZE_MAX ((size_t)64 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_repair(unsigned char *header)
{
	unsigned sum = 8 * ' ';

	for (size_t i = 0; i < FUZZ_BLOCK; i++)
		sum += i >= 148 && i < 156 ? 0U : header[i];
	for (size_t i = 0; i < 6; i++)
		header[148 + i] = (unsigned char)('0' + (sum >> (3 * (5 - i)) & 7));
	header[154] = '\0';
	header[155] = ' ';
}

/* The archive as a file that has a path and no name; repaired where a header would lie. */
static int fuzz_file(const uint8_t *data, size_t size, char path[static 64])
{
	static unsigned char copy[FUZZ_SIZE_MAX];
	int fd = memfd_create("archive", MFD_CLOEXEC);
	struct err err;

	memcpy(copy, data, size);
	for (size_t at = 0; at + FUZZ_BLOCK <= size; at += FUZZ_BLOCK) {
		if (memcmp(copy + at + 257, "ustar", 5) == 0)
			fuzz_repair(copy + at);
	}
	if (fd < 0 || fd_write_all(fd, copy, size, &err) < 0)
		abort();
	(void)snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

struct fuzz_sink {
	struct sink sink;
	uint64_t left;
};

static int fuzz_take(struct sink *sink, struct str bytes, struct err *err)
{
	struct fuzz_sink *take = container_of(sink, struct fuzz_sink, sink);

	(void)err;
	if (bytes.len > take->left)
		abort();
	take->left -= bytes.len;
	return 0;
}

static void fuzz_find(const struct tar_index *index, const char *name, size_t size)
{
	struct fuzz_sink take = {.sink = {fuzz_take}};
	struct tar_file file;
	struct err err = {0};

	if (tar_index_find(index, str_of(name), &file, &err) != 1)
		return;
	if (file.offset > size || file.size > size - file.offset)
		abort();
	take.left = file.size;
	if (tar_index_copy(index, &file, &take.sink, &err) < 0 || take.left != 0)
		abort();
}

/* What was promised can be had, or is said not to be. */
static void fuzz_image(struct origin *origin)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	auto_manifest struct manifest manifest = {0};
	struct fuzz_sink take = {.sink = {fuzz_take}, .left = FUZZ_SIZE_MAX};
	struct digest digest;
	struct err err = {0};

	if (origin->resolve(origin, &digest, &err) < 0) {
		if (err.kind != ERR_CORRUPT && err.kind != ERR_LIMIT && err.kind != ERR_NOT_FOUND &&
		    err.kind != ERR_INVALID && err.kind != ERR_UNSUPPORTED)
			abort();
		return;
	}
	if (origin->document(origin, &digest, &text, &err) < 0 ||
	    manifest_parse(buf_str(&text), &manifest, &err) < 0)
		return;
	for (size_t i = 0; i < manifest.layer_count; i++) {
		take.left = FUZZ_SIZE_MAX;
		if (origin->blob(origin, 0, &manifest.layers[i], &take.sink, &err) == 0 &&
		    FUZZ_SIZE_MAX - take.left != manifest.layers[i].size)
			abort();
	}
}

static void fuzz_index(const char *path, size_t size, bool docker)
{
	const struct tar_source source = {.path = str_of(path)};
	const struct reference reference = {.tag = STR("")};
	const struct pull_spec spec = {.reference = &reference};
	AUTO(origin) struct origin *origin = NULL;
	struct tar_index *index;
	struct err err = {0};

	if (tar_index_open(&source, &index, &err) < 0) {
		if (err.kind != ERR_CORRUPT && err.kind != ERR_LIMIT && err.kind != ERR_UNSUPPORTED)
			abort();
		return;
	}
	fuzz_find(index, "manifest.json", size);
	fuzz_find(index, "index.json", size);
	fuzz_find(index, "./l", size);
	if (docker)
		origin_docker_open(&spec, index, &origin);
	else
		origin_archive_open(&spec, index, &origin);
	fuzz_image(origin);
}

/* Compressed ones need a store, and become plain: inflater_fuzz has them. */
static bool fuzz_is_plain(const uint8_t *data, size_t size)
{
	enum layer_codec codec;

	return size <= FUZZ_SIZE_MAX &&
	       !inflater_recognizes((struct str){(const char *)data, size}, &codec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd;

	if (!fuzz_is_plain(data, size))
		return 0;
	fd = fuzz_file(data, size, path);
	fuzz_index(path, size, true);
	fuzz_index(path, size, false);
	(void)close(fd);
	return 0;
}

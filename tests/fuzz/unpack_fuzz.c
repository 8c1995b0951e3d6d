/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: no tar changes anything outside the directory that it is unpacked
 * into. Checksums of headers are put right first, or nothing else would be
 * tried.
 */
#include "layers/unpack.h"
#include "tests/layers/listing.h"

#include <fcntl.h>
#include <sys/stat.h>

#define FUZZ_BYTES_MAX ((uint64_t)1 << 20)
#define FUZZ_ENTRIES_MAX 64
#define FUZZ_BLOCK ((size_t)512)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_source {
	struct source source;
	struct str rest;
};

static int fuzz_read(struct source *source, struct str *out, struct err *err)
{
	struct fuzz_source *fuzz = (struct fuzz_source *)source;
	size_t n = fuzz->rest.len < 700 ? fuzz->rest.len : 700;

	(void)err;
	if (n == 0)
		return 0;
	*out = (struct str){fuzz->rest.ptr, n};
	fuzz->rest.ptr += n;
	fuzz->rest.len -= n;
	return 1;
}

/* outer/ holds "canary", a file of ours, and "tree", where the tar goes. */
static int fuzz_setup(char *path)
{
	auto_close int fd = -1;
	int outer;

	if (!mkdtemp(path))
		abort();
	outer = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(outer, "canary", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (outer < 0 || fd < 0 || mkdirat(outer, "tree", 0755) < 0)
		abort();
	return outer;
}

/* Another name in outer, another link, byte or mode of the canary. */
static void fuzz_check(int outer, const struct stat *before)
{
	struct stat canary;
	struct stat dir;

	if (fstatat(outer, "canary", &canary, AT_SYMLINK_NOFOLLOW) < 0 || fstat(outer, &dir) < 0)
		abort();
	if (!S_ISREG(canary.st_mode) || (canary.st_mode & 07777) != 0600 || canary.st_size != 0 ||
	    canary.st_nlink != 1)
		abort();
	if (dir.st_mode != before->st_mode || dir.st_nlink != before->st_nlink ||
	    dir.st_mtim.tv_sec != before->st_mtim.tv_sec ||
	    dir.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
		abort();
}

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unpack_limits limits = {FUZZ_BYTES_MAX, FUZZ_ENTRIES_MAX};
	auto_free unsigned char *tar = malloc(size + 1);
	struct fuzz_source source = {{fuzz_read}, {(const char *)tar, size}};
	char path[] = "/tmp/unpack-fuzz-XXXXXX";
	auto_close int outer = fuzz_setup(path);
	auto_close int tree = openat(outer, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat before;
	struct err err = {0};

	if (!tar || tree < 0 || fstat(outer, &before) < 0)
		abort();
	memcpy(tar, data, size);
	for (size_t at = 0; at + FUZZ_BLOCK <= size; at += FUZZ_BLOCK) {
		if (memcmp(tar + at + 257, "ustar", 5) == 0)
			fuzz_repair(tar + at);
	}
	/* As a layer, or as a context. */
	if ((size % 2 ? unpack_files : unpack_tar)(tree, &source.source, &limits, &err) < 0 &&
	    err.kind == ERR_NONE)
		abort();
	fuzz_check(outer, &before);
	scratch_remove(path);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/names.h"

#include "layers/base/fd.h"

#define NAMES_DENTS_SIZE ((size_t)64 * 1024)

static int names_add(struct names *names, const char *dents, size_t len, struct err *err)
{
	for (size_t at = 0; at < len;) {
		const struct dirent64 *entry = (const struct dirent64 *)(dents + at);
		const char *name = entry->d_name;

		at += entry->d_reclen;
		if (fd_is_dots(name))
			continue;
		if (buf_add(&names->bytes, (struct str){name, strlen(name) + 1}, err) < 0)
			return err_ctx(err, "a directory's names");
		names->count++;
	}
	return 0;
}

/* Not by readdir(): it wants a descriptor of its own, which would leave an access time. */
static int names_collect(struct names *names, int dirfd, struct err *err)
{
	_Alignas(struct dirent64) char dents[NAMES_DENTS_SIZE];
	ssize_t n;

	if (lseek(dirfd, 0, SEEK_SET) < 0)
		return err_os(err, errno, "read a directory");
	while ((n = getdents64(dirfd, dents, sizeof(dents))) > 0) {
		if (names_add(names, dents, (size_t)n, err) < 0)
			return -1;
	}
	return n < 0 ? err_os(err, errno, "read a directory") : 0;
}

static int names_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void names_sort(struct names *names)
{
	const char *name = names->bytes.ptr;

	names->at = calloc(names->count + 1, sizeof(*names->at));
	if (!names->at)
		abort();
	for (size_t i = 0; i < names->count; i++) {
		names->at[i] = name;
		name += strlen(name) + 1;
	}
	qsort(names->at, names->count, sizeof(*names->at), names_compare);
}

int names_read(int dirfd, size_t max, struct names *out, struct err *err)
{
	auto_names struct names names = {.bytes =
						 BUF_INIT(max > 0 ? max : 1)}; /* 1: no name fits */

	if (names_collect(&names, dirfd, err) < 0)
		return -1;
	names_sort(&names);
	*out = names;
	names = (struct names){0};
	return 0;
}

void names_done(struct names *names)
{
	buf_done(&names->bytes);
	free(names->at);
	*names = (struct names){0};
}

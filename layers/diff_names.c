/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/diff_priv.h"

#include <dirent.h>

#define DENTS_SIZE ((size_t)64 * 1024)

static int names_add(struct diff_names *names, const char *dents, size_t len, struct err *err)
{
	for (size_t at = 0; at < len;) {
		const struct dirent64 *entry = (const struct dirent64 *)(dents + at);
		const char *name = entry->d_name;

		at += entry->d_reclen;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (buf_add(&names->bytes, (struct str){name, strlen(name) + 1}, err) < 0)
			return err_ctx(err, "too many names in a directory");
		names->count++;
	}
	return 0;
}

static int names_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void names_sort(struct diff_names *names)
{
	const char *at = names->bytes.ptr;

	names->items = calloc(names->count + 1, sizeof(*names->items));
	if (!names->items)
		abort();
	for (size_t i = 0; i < names->count; i++) {
		names->items[i] = at;
		at += strlen(at) + 1;
	}
	qsort(names->items, names->count, sizeof(*names->items), names_compare);
}

int diff_names_read(struct diff_names *names, int dirfd, size_t max, struct err *err)
{
	_Alignas(struct dirent64) char dents[DENTS_SIZE];
	ssize_t n;

	names->bytes = BUF_INIT(max + 1);
	while ((n = getdents64(dirfd, dents, sizeof(dents))) > 0) {
		if (names_add(names, dents, (size_t)n, err) < 0)
			return -1;
	}
	if (n < 0)
		return err_os(err, errno, "read a directory");
	names_sort(names);
	return 0;
}

void diff_names_done(struct diff_names *names)
{
	buf_done(&names->bytes);
	free(names->items);
	*names = (struct diff_names){0};
}

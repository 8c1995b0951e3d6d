/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/names_priv.h"

#include <dirent.h>
#include <fcntl.h>

static void names_close(DIR *dir)
{
	if (dir)
		(void)closedir(dir);
}
DEFINE_AUTO(dir, DIR *, names_close);

static int names_compare(const void *a, const void *b)
{
	const char *const *left = a;
	const char *const *right = b;

	return strcmp(*left, *right);
}

static int names_collect(DIR *dir, struct names *names, struct err *err)
{
	struct dirent *entry;

	for (;;) {
		struct str name;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			break;
		name = str_of(entry->d_name);
		if (str_equal(name, STR(".")) || str_equal(name, STR("..")))
			continue;
		if (buf_add(&names->bytes, (struct str){name.ptr, name.len + 1}, err) < 0)
			return err_ctx(err, "a directory's names");
		names->count++;
	}
	return errno ? err_os(err, errno, "list a directory") : 0;
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

int names_read(int dirfd, struct names *out, struct err *err)
{
	auto_names struct names names = {.bytes = BUF_INIT(NAMES_BYTES_MAX)};
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(dir) DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return err_os(err, errno, "list a directory");
	if (names_collect(dir, &names, err) < 0)
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/fd.h"
#include "registry/layout.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ENTRY(hex) "{\"digest\":\"sha256:" hex "\",\"size\":1}"
#define NAMED(hex, name)                                                                         \
	"{\"digest\":\"sha256:" hex "\",\"size\":1,\"annotations\":{\"org.opencontainers.image." \
	"ref.name\":\"" name "\"}}"

/* A directory with an index.json of this text, or none. */
struct layout_dir {
	char path[64];
	int fd;
};

static int setup(void **state)
{
	static struct layout_dir dir;

	(void)snprintf(dir.path, sizeof(dir.path), "/tmp/layout_test.XXXXXX");
	if (!mkdtemp(dir.path))
		return -1;
	dir.fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &dir;
	return dir.fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct layout_dir *dir = *state;

	(void)unlinkat(dir->fd, "index.json", 0);
	(void)close(dir->fd);
	return rmdir(dir->path);
}

static void write_index(const struct layout_dir *dir, const char *text)
{
	auto_close int fd =
		openat(dir->fd, "index.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct err err = {0};

	assert_true(fd >= 0);
	check_ok(fd_write_all(fd, text, strlen(text), &err), &err);
}

static void resolve_finds_a_tag_or_the_only_entry(void **state)
{
	const struct layout_dir *dir = *state;
	struct str path = str_of(dir->path);
	struct err err = {0};
	struct digest digest;

	write_index(dir, "{\"manifests\":[" ENTRY(A64) "]}");
	check_ok(layout_resolve(path, STR(""), &digest, &err), &err);
	assert_int_equal(digest.bytes[0], 0xaa);
	write_index(dir, "{\"manifests\":[" ENTRY(A64) "," NAMED(B64, "1.0") "]}");
	check_ok(layout_resolve(path, STR("1.0"), &digest, &err), &err);
	assert_int_equal(digest.bytes[0], 0xbb);
	check_err(layout_resolve(path, STR("2.0"), &digest, &err), &err, ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "there is 1.0"));
	check_err(layout_resolve(path, STR(""), &digest, &err), &err, ERR_INVALID);
	assert_non_null(strstr(err.text, ":TAG at the end"));
	write_index(dir, "{\"manifests\":[" ENTRY(A64) "," NAMED(B64, "latest") "]}");
	check_ok(layout_resolve(path, STR(""), &digest, &err), &err);
	assert_int_equal(digest.bytes[0], 0xbb);
}

static void resolve_finds_whole_names_by_their_tag(void **state)
{
	const struct layout_dir *dir = *state;
	struct str path = str_of(dir->path);
	struct err err = {0};
	struct digest digest;

	write_index(dir, "{\"manifests\":[" NAMED(A64, "localhost/a:1") "," NAMED(
				 B64, "localhost:5000/b:2") "," ENTRY(A64) "]}");
	check_ok(layout_resolve(path, STR("2"), &digest, &err), &err);
	assert_int_equal(digest.bytes[0], 0xbb);
	check_err(layout_resolve(path, STR("a"), &digest, &err), &err, ERR_NOT_FOUND);
	write_index(dir, "{\"manifests\":[" NAMED(A64, "localhost/a:1") "," NAMED(B64, "1") "]}");
	check_ok(layout_resolve(path, STR("1"), &digest, &err), &err);
	assert_int_equal(digest.bytes[0], 0xbb);
}

static void a_tag_of_several_images_names_none(void **state)
{
	const struct layout_dir *dir = *state;
	struct str path = str_of(dir->path);
	struct err err = {0};
	struct digest digest;

	write_index(dir, "{\"manifests\":[" NAMED(A64, "1") "," NAMED(A64, "1") "]}");
	check_ok(layout_resolve(path, STR("1"), &digest, &err), &err);
	write_index(dir, "{\"manifests\":[" NAMED(A64, "1") "," NAMED(B64, "1") "]}");
	check_err(layout_resolve(path, STR("1"), &digest, &err), &err, ERR_INVALID);
	assert_non_null(strstr(err.text, "several images that are tagged 1"));
}

static void resolve_refuses_damaged_layouts(void **state)
{
	static const struct {
		enum err_kind kind;
		const char *text;
	} wrong[] = {
		{ERR_CORRUPT, ""},
		{ERR_CORRUPT, "[]"},
		{ERR_CORRUPT, "{}"},
		{ERR_CORRUPT, "{\"manifests\":7}"},
		{ERR_NOT_FOUND, "{\"manifests\":[]}"},
		{ERR_CORRUPT, "{\"manifests\":[7]}"},
		{ERR_CORRUPT, "{\"manifests\":[{}]}"},
		{ERR_CORRUPT, "{\"manifests\":[{\"digest\":\"sha256:../../x\"}]}"},
		{ERR_CORRUPT, "{\"manifests\":[{\"digest\":\"sha512:" A64 "\"}]}"},
		{ERR_CORRUPT, "{\"manifests\":[{\"digest\":\"blake3:" A64 "\"}]}"},
	};
	const struct layout_dir *dir = *state;
	struct err err = {0};
	struct digest digest;

	check_err(layout_resolve(str_of(dir->path), STR(""), &digest, &err), &err, ERR_NOT_FOUND);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		write_index(dir, wrong[i].text);
		check_err(layout_resolve(str_of(dir->path), STR(""), &digest, &err), &err,
			  wrong[i].kind);
	}
	check_err(layout_resolve(STR("/nowhere/at/all"), STR(""), &digest, &err), &err,
		  ERR_NOT_FOUND);
}

/* A fifo would hold an ordinary open for ever, a link would lead elsewhere. */
static void resolve_opens_nothing_but_files(void **state)
{
	const struct layout_dir *dir = *state;
	struct err err = {0};
	struct digest digest;

	assert_int_equal(mkfifoat(dir->fd, "index.json", 0600), 0);
	check_err(layout_resolve(str_of(dir->path), STR(""), &digest, &err), &err, ERR_CORRUPT);
	assert_int_equal(unlinkat(dir->fd, "index.json", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir->fd, "index.json"), 0);
	check_err(layout_resolve(str_of(dir->path), STR(""), &digest, &err), &err, ERR_CORRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resolve_finds_a_tag_or_the_only_entry, setup,
						teardown),
		cmocka_unit_test_setup_teardown(resolve_finds_whole_names_by_their_tag, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_tag_of_several_images_names_none, setup,
						teardown),
		cmocka_unit_test_setup_teardown(resolve_refuses_damaged_layouts, setup, teardown),
		cmocka_unit_test_setup_teardown(resolve_opens_nothing_but_files, setup, teardown),
	};

	return cmocka_run_group_tests_name("registry/layout", tests, NULL, NULL);
}

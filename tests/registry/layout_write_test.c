/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/proc.h"
#include "layers/blob.h"
#include "registry/layout.h"
#include "registry/manifest.h"
#include "tests/layers/store_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>

/* An image of one layer whose bytes are text, in the store. */
static struct digest make_image(struct store *store, const char *text)
{
	auto_buf struct buf manifest = BUF_INIT(MANIFEST_MAX);
	char layer_name[DIGEST_TEXT_MAX];
	char config_name[DIGEST_TEXT_MAX];
	struct digest config;
	struct digest layer;
	struct digest out;
	struct err err = {0};

	check_ok(blob_put(store, str_of(text), &layer, &err), &err);
	check_ok(blob_put(store, STR("{}"), &config, &err), &err);
	check_ok(buf_addf(&manifest, &err,
			  "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"config\":{\"mediaType\":\"" MEDIA_OCI_CONFIG
			  "\",\"digest\":\"%s\",\"size\":2},\"layers\":[{\"mediaType\":"
			  "\"" MEDIA_OCI_LAYER_TAR "\",\"digest\":\"%s\",\"size\":%zu}]}",
			  digest_format(&config, config_name), digest_format(&layer, layer_name),
			  strlen(text)),
		 &err);
	check_ok(blob_put(store, buf_str(&manifest), &out, &err), &err);
	return out;
}

/* The layout's place beside the store. */
static struct str layout_path(const struct store_fixture *fixture, char text[static 64])
{
	(void)snprintf(text, 64, "%s/layout", fixture->parent);
	return str_of(text);
}

static void read_file(const char *dir, const char *name, struct buf *out)
{
	char path[256];
	char chunk[4096];
	struct err err = {0};
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	{
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		while ((n = read(fd, chunk, sizeof(chunk))) > 0)
			check_ok(buf_add(out, (struct str){chunk, (size_t)n}, &err), &err);
	}
}

static void what_is_written_is_found_again(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest image = make_image(fixture->store, "layer");
	char text[64];
	struct str dir = layout_path(fixture, text);
	auto_buf struct buf marker = BUF_INIT(1000);
	struct digest found;
	struct err err = {0};

	check_ok(layout_write(fixture->store, &image, dir, STR("1.0"), NULL, &err), &err);
	check_ok(layout_resolve(dir, STR("1.0"), &found, &err), &err);
	assert_true(digest_equal(&image, &found));
	check_ok(layout_resolve(dir, STR(""), &found, &err), &err);
	read_file(text, "oci-layout", &marker);
	assert_string_equal(marker.ptr, "{\"imageLayoutVersion\":\"1.0.0\"}");
}

static void other_entries_stay_and_the_same_name_is_replaced(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest first = make_image(fixture->store, "first");
	struct digest second = make_image(fixture->store, "second");
	auto_buf struct buf index = BUF_INIT(10000);
	char text[64];
	struct str dir = layout_path(fixture, text);
	struct digest found;
	struct err err = {0};

	check_ok(layout_write(fixture->store, &first, dir, STR("a"), NULL, &err), &err);
	check_ok(layout_write(fixture->store, &first, dir, STR("b"), NULL, &err), &err);
	check_ok(layout_write(fixture->store, &second, dir, STR("b"), NULL, &err), &err);
	check_ok(layout_resolve(dir, STR("a"), &found, &err), &err);
	assert_true(digest_equal(&first, &found));
	check_ok(layout_resolve(dir, STR("b"), &found, &err), &err);
	assert_true(digest_equal(&second, &found));
	read_file(text, "index.json", &index);
	assert_non_null(strstr(index.ptr, "ref.name\":\"a\""));
	assert_ptr_equal(strstr(strstr(index.ptr, "\"b\"") + 1, "\"b\""), NULL);
}

static void a_damaged_blob_is_written_again(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest image = make_image(fixture->store, "layer");
	auto_buf struct buf bytes = BUF_INIT(1000);
	char text[64];
	struct str dir = layout_path(fixture, text);
	struct digest layer;
	char hex[DIGEST_HEX_MAX];
	char name[128];
	char path[256];
	struct err err = {0};

	check_ok(layout_write(fixture->store, &image, dir, STR("a"), NULL, &err), &err);
	digest_of(STR("layer"), &layer);
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest_hex(&layer, hex));
	(void)snprintf(path, sizeof(path), "%s/%s", text, name);
	{
		auto_close int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

		assert_true(write(fd, "LAYER", 5) == 5); /* as long, and not the same */
	}
	check_ok(layout_write(fixture->store, &image, dir, STR("a"), NULL, &err), &err);
	read_file(text, name, &bytes);
	assert_string_equal(bytes.ptr, "layer");
}

static void what_a_dead_writer_left_is_removed(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest image = make_image(fixture->store, "layer");
	char text[64];
	struct str dir = layout_path(fixture, text);
	char path[256];
	struct err err = {0};

	check_ok(layout_write(fixture->store, &image, dir, STR("a"), NULL, &err), &err);
	(void)snprintf(path, sizeof(path), "%s/blobs/sha256/.hearth-left", text);
	{
		auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
	}
	check_ok(layout_write(fixture->store, &image, dir, STR("a"), NULL, &err), &err);
	assert_int_equal(faccessat(AT_FDCWD, path, F_OK, 0), -1);
}

static void a_directory_of_something_else_is_refused(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest image = make_image(fixture->store, "layer");
	struct err err = {0};

	check_err(
		layout_write(fixture->store, &image, str_of(fixture->parent), STR("a"), NULL, &err),
		&err, ERR_CONFLICT);
	check_err(
		layout_write(fixture->store, &image, STR("/nowhere/at/all"), STR("a"), NULL, &err),
		&err, ERR_NOT_FOUND);
}

static void an_image_with_a_lost_layer_is_not_named(void **state)
{
	static const char manifest[] =
		"{\"schemaVersion\":2,\"config\":{\"digest\":\"sha256:"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"size\":2}}";
	struct store_fixture *fixture = *state;
	char text[64];
	struct str dir = layout_path(fixture, text);
	struct digest image;
	struct digest found;
	struct err err = {0};

	check_ok(blob_put(fixture->store, str_of(manifest), &image, &err), &err);
	check_err(layout_write(fixture->store, &image, dir, STR("a"), NULL, &err), &err,
		  ERR_NOT_FOUND);
	check_err(layout_resolve(dir, STR("a"), &found, &err), &err, ERR_NOT_FOUND);
}

/* The names in a directory, sorted; "" when it is not there. */
static void list(const char *dir, struct buf *out)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, NULL, alphasort);
	struct err err = {0};

	buf_clear(out);
	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.')
			check_ok(buf_addf(out, &err, "%s ", entries[i]->d_name), &err);
		free(entries[i]);
	}
	free(entries);
}

static struct cancel alarmed; /* a signal handler has no other way to reach it */

static void on_alarm(int number)
{
	(void)number;
	cancel_raise(&alarmed);
}

static void raise_after_ms(int ms)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval timer = {.it_value.tv_usec = ms * 1000L};
	struct err err = {0};

	check_ok(cancel_init(&alarmed, &err), &err);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

static void a_cancel_ends_the_wait_for_another_writer(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest image = make_image(fixture->store, "layer");
	auto_buf struct buf names = BUF_INIT(1000);
	char text[64];
	struct str dir = layout_path(fixture, text);
	auto_close int fd = -1;
	struct err err = {0};

	assert_int_equal(mkdir(text, 0755), 0);
	fd = open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	raise_after_ms(30);
	check_err(layout_write(fixture->store, &image, dir, STR("a"), &alarmed, &err), &err,
		  ERR_CANCELLED);
	cancel_done(&alarmed);
	list(text, &names);
	assert_string_equal(buf_str(&names).ptr, "");
}

/* The config's blob is missing, so it fails when the layer was written. */
static struct digest make_broken_image(struct store *store)
{
	struct digest layer;
	struct digest out;
	char name[DIGEST_TEXT_MAX];
	auto_buf struct buf manifest = BUF_INIT(MANIFEST_MAX);
	struct err err = {0};

	check_ok(blob_put(store, STR("another"), &layer, &err), &err);
	check_ok(buf_addf(&manifest, &err,
			  "{\"schemaVersion\":2,\"config\":{\"digest\":\"sha256:"
			  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
			  "\"size\":2},\"layers\":[{\"mediaType\":\"" MEDIA_OCI_LAYER_TAR
			  "\",\"digest\":\"%s\",\"size\":7}]}",
			  digest_format(&layer, name)),
		 &err);
	check_ok(blob_put(store, buf_str(&manifest), &out, &err), &err);
	return out;
}

static void a_failure_leaves_nothing_of_a_new_layout(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest image = make_broken_image(fixture->store);
	char text[64];
	struct str dir = layout_path(fixture, text);
	struct err err = {0};

	check_err(layout_write(fixture->store, &image, dir, STR("a"), NULL, &err), &err,
		  ERR_NOT_FOUND);
	assert_int_equal(faccessat(AT_FDCWD, text, F_OK, 0), -1);
	assert_int_equal(mkdir(text, 0755), 0); /* a directory that was there stays */
	check_err(layout_write(fixture->store, &image, dir, STR("a"), NULL, &err), &err,
		  ERR_NOT_FOUND);
	assert_int_equal(rmdir(text), 0);
}

static void a_failure_leaves_an_old_layout_as_it_was(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest image = make_image(fixture->store, "layer");
	struct digest broken = make_broken_image(fixture->store);
	auto_buf struct buf before = BUF_INIT(1000);
	auto_buf struct buf after = BUF_INIT(1000);
	char text[64];
	struct str dir = layout_path(fixture, text);
	char blobs[128];
	struct digest found;
	struct err err = {0};

	(void)snprintf(blobs, sizeof(blobs), "%s/blobs/sha256", text);
	check_ok(layout_write(fixture->store, &image, dir, STR("a"), NULL, &err), &err);
	list(blobs, &before);
	check_err(layout_write(fixture->store, &broken, dir, STR("a"), NULL, &err), &err,
		  ERR_NOT_FOUND);
	list(blobs, &after);
	assert_string_equal(buf_str(&before).ptr, buf_str(&after).ptr);
	check_ok(layout_resolve(dir, STR("a"), &found, &err), &err);
	assert_true(digest_equal(&image, &found));
}

/* What other tools think of it. */
static void skopeo_reads_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest image = make_image(fixture->store, "layer");
	char text[64];
	char source[128];
	struct str dir = layout_path(fixture, text);
	const char *const argv[] = {"skopeo", "inspect", "--raw", source, NULL};
	const struct proc_spec spec = {
		.path = "/usr/bin/skopeo", .argv = argv, .fds = {-1, -1, 2}, .fd_count = 3};
	auto_proc struct proc proc = PROC_INIT;
	struct err err = {0};
	int status;

	if (faccessat(AT_FDCWD, spec.path, X_OK, 0) < 0)
		skip();
	check_ok(layout_write(fixture->store, &image, dir, STR("1.0"), NULL, &err), &err);
	(void)snprintf(source, sizeof(source), "oci:%s:1.0", text);
	check_ok(proc_spawn(&spec, &proc, &err), &err);
	check_ok(proc_wait(&proc, 30000, NULL, &status, &err), &err);
	assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_is_found_again),
		TEST(other_entries_stay_and_the_same_name_is_replaced),
		TEST(a_damaged_blob_is_written_again),
		TEST(what_a_dead_writer_left_is_removed),
		TEST(a_directory_of_something_else_is_refused),
		TEST(an_image_with_a_lost_layer_is_not_named),
		TEST(a_cancel_ends_the_wait_for_another_writer),
		TEST(a_failure_leaves_nothing_of_a_new_layout),
		TEST(a_failure_leaves_an_old_layout_as_it_was),
		TEST(skopeo_reads_it),
	};

	return cmocka_run_group_tests_name("registry/layout_write", tests, NULL, NULL);
}

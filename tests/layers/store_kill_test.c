/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that write one store at once, and that die while they do: at named
 * points, at random ones, and before the store was made.
 */
#include "layers/base/proc.h"
#include "layers/blob.h"
#include "layers/meta.h"
#include "tests/layers/store_check.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#define FOREVER "1000000"
#define KILLS 16
#define CREATION_KILLS 12

struct child {
	struct proc proc;
	FILE *lines;
};

static void start(struct store_fixture *fixture, const char *seed, const char *count,
		  const char *point, struct child *out)
{
	const char *const argv[] = {STORE_WRITER, fixture->path, seed, count, point, NULL};
	struct proc_spec spec = {
		.path = STORE_WRITER, .argv = argv, .fd_count = 3, .die_with_parent = true};
	int ends[2];
	auto_close int write_end = -1;
	struct err err = {0};

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	write_end = ends[1];
	spec.fds[0] = -1;
	spec.fds[1] = write_end;
	spec.fds[2] = STDERR_FILENO;
	check_ok(proc_spawn(&spec, &out->proc, &err), &err);
	out->lines = fdopen(ends[0], "r");
	assert_non_null(out->lines);
}

static int finish(struct child *child)
{
	struct err err = {0};
	int status;

	check_ok(proc_wait(&child->proc, -1, NULL, &status, &err), &err);
	(void)fclose(child->lines);
	return status;
}

/* The next line without its end; false when there is none. */
static bool line(struct child *child, char text[static 128])
{
	if (!fgets(text, 128, child->lines))
		return false;
	assert_non_null(strchr(text, '\n'));
	*strchr(text, '\n') = '\0';
	return true;
}

static int blob_of_record_is_there(void *ctx, struct str key, const json_t *value, struct err *err)
{
	struct blob_info info;
	struct digest digest;

	(void)value;
	if (digest_parse(key, &digest, err) < 0)
		return -1;
	assert_int_equal(blob_find(ctx, &digest, &info, err), 1);
	return 0;
}

/* A new process finds a sound store, with all blobs that records name. */
static void check_sound(struct store_fixture *fixture)
{
	AUTO(meta) struct meta *meta = NULL;
	struct store *store = store_fixture_reopen(fixture, false);
	struct err err = {0};

	(void)store_check(store);
	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	check_ok(meta_each(meta, "written", STR(""), blob_of_record_is_there, store, &err), &err);
}

static bool is_recorded(struct store_fixture *fixture, const char *digest)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_READ, &meta, &err), &err);
	return meta_has(meta, "written", str_of(digest), &err) == 1;
}

static void death_at_any_named_point_leaves_the_store_sound(void **state)
{
	static const char *const points[] = {"added", "spilled", "committed", "recorded"};
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		char seed[] = {(char)('1' + i), '\0'};
		struct child child;

		start(fixture, seed, "3", points[i], &child);
		assert_int_equal(finish(&child), 128 + SIGKILL);
		check_sound(fixture);
	}
}

/* Somewhere within the next few milliseconds; what matters is that it varies. */
static void linger(unsigned *random)
{
	struct timespec pause = {.tv_nsec = (long)(rand_r(random) % 8000) * 1000};

	(void)ppoll(NULL, 0, &pause, NULL);
}

static void kill_after(struct store_fixture *fixture, const char *seed, int lines, unsigned *random)
{
	char last[128] = "";
	char text[128];
	struct child child;

	start(fixture, seed, FOREVER, NULL, &child);
	while (lines-- > 0 && line(&child, text))
		memcpy(last, text, sizeof(last));
	linger(random);
	assert_int_equal(kill(child.proc.pid, SIGKILL), 0);
	while (line(&child, text))
		memcpy(last, text, sizeof(last));
	assert_int_equal(finish(&child), 128 + SIGKILL);
	check_sound(fixture);
	if (last[0] && strcmp(last, "open") != 0)
		assert_true(is_recorded(fixture, last));
}

static void death_at_random_moments_loses_nothing_that_was_told(void **state)
{
	struct store_fixture *fixture = *state;
	unsigned random = (unsigned)time(NULL);

	print_message("seed %u\n", random);
	for (int i = 0; i < KILLS; i++) {
		char seed[16];

		(void)snprintf(seed, sizeof(seed), "%d", rand_r(&random) % 1000);
		kill_after(fixture, seed, 1 + rand_r(&random) % 4, &random);
	}
}

static void a_store_that_was_half_made_is_made(void **state)
{
	struct store_fixture *fixture = *state;
	unsigned random = (unsigned)time(NULL);

	print_message("seed %u\n", random);
	for (int i = 0; i < CREATION_KILLS; i++) {
		struct child child;

		(void)snprintf(fixture->path, sizeof(fixture->path), "%s/%d", fixture->parent, i);
		start(fixture, "1", FOREVER, NULL, &child);
		linger(&random);
		assert_int_equal(kill(child.proc.pid, SIGKILL), 0);
		assert_int_equal(finish(&child), 128 + SIGKILL);
		(void)store_fixture_reopen(fixture, true);
		check_sound(fixture);
	}
}

static void processes_that_make_a_store_at_once_share_it(void **state)
{
	struct store_fixture *fixture = *state;
	struct child children[4];

	(void)snprintf(fixture->path, sizeof(fixture->path), "%s/new", fixture->parent);
	for (size_t i = 0; i < 4; i++) {
		char seed[] = {(char)('1' + i), '\0'};

		start(fixture, seed, "3", NULL, &children[i]);
	}
	for (size_t i = 0; i < 4; i++) {
		char text[128];
		int lines = 0;

		while (line(&children[i], text))
			lines++;
		assert_int_equal(lines, 4);
		assert_int_equal(finish(&children[i]), 0);
	}
	check_sound(fixture);
}

static void two_processes_may_write_the_same_blobs_at_once(void **state)
{
	struct store_fixture *fixture = *state;
	char first[128];
	char second[128];
	struct child children[2];
	size_t lines = 0;

	for (size_t i = 0; i < 2; i++)
		start(fixture, "7", "6", NULL, &children[i]);
	while (line(&children[0], first) && line(&children[1], second)) {
		assert_string_equal(first, second);
		lines++;
	}
	assert_int_equal(lines, 7);
	assert_int_equal(finish(&children[0]), 0);
	assert_int_equal(finish(&children[1]), 0);
	check_sound(fixture);
	assert_int_equal(store_check(fixture->store), 6);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(death_at_any_named_point_leaves_the_store_sound),
		STORE_TEST(death_at_random_moments_loses_nothing_that_was_told),
		STORE_TEST(a_store_that_was_half_made_is_made),
		STORE_TEST(processes_that_make_a_store_at_once_share_it),
		STORE_TEST(two_processes_may_write_the_same_blobs_at_once),
	};

	return cmocka_run_group_tests_name("layers/store_kill", tests, NULL, NULL);
}

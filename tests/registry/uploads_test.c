/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as files: whose they are, how they grow, and how they end. */
#include "registry/uploads.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#define HERE STR("tools/app")

/* A body in one piece, which may end in a failure. */
struct body {
	struct source source;
	struct str left;
	bool fails;
};

static int body_read(struct source *source, struct str *out, struct err *err)
{
	struct body *body = container_of(source, struct body, source);

	if (body->left.len == 0)
		return body->fails ? err_set(err, ERR_CANCELLED, "the client has gone") : 0;
	*out = body->left;
	body->left.len = 0;
	return 1;
}

static int append(struct uploads_session *session, const char *text, struct err *err)
{
	struct body body = {.source = {body_read}, .left = str_of(text)};

	return uploads_append(session, &body.source, UINT64_MAX, err);
}

static struct uploads *begin(struct store *store, const struct uploads_options *limits)
{
	struct uploads_options options = limits ? *limits : (struct uploads_options){0};
	struct uploads *uploads;
	struct err err = {0};

	options.store = store;
	check_ok(uploads_open(&options, &uploads, &err), &err);
	return uploads;
}

static struct uploads_session *take(struct uploads *uploads, const char *id)
{
	struct uploads_session *session = NULL;
	struct err err = {0};

	assert_int_equal(uploads_take(uploads, HERE, str_of(id), &session, &err), 1);
	return session;
}

static uint64_t size_of(struct uploads *uploads, const char *id)
{
	uint64_t size = UINT64_MAX;
	struct err err = {0};

	assert_int_equal(uploads_find(uploads, HERE, str_of(id), &size, &err), 1);
	return size;
}

static void check_bytes(struct uploads_session *session, const char *text)
{
	auto_buf struct buf bytes = BUF_INIT(1024);
	struct buf_sink sink = BUF_SINK(&bytes);
	struct err err = {0};

	check_ok(uploads_copy(session, &sink.sink, &err), &err);
	assert_string_equal(buf_str(&bytes).ptr, text);
}

static void a_session_grows_from_one_process_to_the_next(void **state)
{
	struct store_fixture *fixture = *state;
	struct uploads *uploads = begin(fixture->store, NULL);
	struct uploads_session *session;
	char id[ULID_TEXT_MAX];
	struct err err = {0};

	check_ok(uploads_begin(uploads, HERE, id, &err), &err);
	assert_int_equal(size_of(uploads, id), 0);
	session = take(uploads, id);
	check_ok(append(session, "one,", &err), &err);
	uploads_release(session);
	uploads_close(uploads);

	uploads = begin(fixture->store, NULL);
	assert_int_equal(size_of(uploads, id), 4);
	assert_int_equal(uploads_load(uploads).sessions, 1);
	assert_int_equal(uploads_load(uploads).bytes, 4);
	session = take(uploads, id);
	check_ok(append(session, "two", &err), &err);
	check_bytes(session, "one,two");
	check_ok(uploads_cut(session, 3, &err), &err);
	check_bytes(session, "one");
	assert_int_equal(uploads_load(uploads).bytes, 3);
	check_ok(uploads_remove(session, &err), &err);
	uploads_release(session);
	assert_int_equal(uploads_load(uploads).sessions, 0);
	assert_int_equal(uploads_load(uploads).bytes, 0);
	uploads_close(uploads);
}

/* A session that this has come for. */
static void open_with(struct uploads *uploads, const char *text, char id[static ULID_TEXT_MAX])
{
	AUTO(uploads_session) struct uploads_session *session = NULL;
	struct err err = {0};

	check_ok(uploads_begin(uploads, HERE, id, &err), &err);
	session = take(uploads, id);
	check_ok(append(session, text, &err), &err);
}

static void check_is_one_repositorys_and_one_requests(struct uploads *uploads, const char *id,
						      uint64_t has)
{
	AUTO(uploads_session) struct uploads_session *session = NULL;
	AUTO(uploads_session) struct uploads_session *other = NULL;
	uint64_t size;
	struct err err = {0};

	assert_int_equal(uploads_find(uploads, STR("tools/ap"), str_of(id), &size, &err), 0);
	assert_int_equal(uploads_take(uploads, STR("other"), str_of(id), &other, &err), 0);
	session = take(uploads, id);
	check_err(uploads_take(uploads, HERE, str_of(id), &other, &err), &err, ERR_CONFLICT);
	assert_int_equal(size_of(uploads, id), has); /* asking is no adding */
	uploads_release(steal_ptr(&session));
	session = take(uploads, id);
}

static void a_session_is_of_one_repository_and_one_request(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(uploads) struct uploads *uploads = begin(fixture->store, NULL);
	char id[ULID_TEXT_MAX];
	struct err err = {0};

	check_ok(uploads_begin(uploads, HERE, id, &err), &err);
	check_is_one_repositorys_and_one_requests(uploads, id, 0);
	open_with(uploads, "some", id);
	check_is_one_repositorys_and_one_requests(uploads, id, 4);
}

static void check_is_nothing(struct uploads *uploads, const char *id)
{
	AUTO(uploads_session) struct uploads_session *session = NULL;
	uint64_t size;
	struct err err = {0};

	assert_int_equal(uploads_find(uploads, HERE, str_of(id), &size, &err), 0);
	assert_int_equal(uploads_take(uploads, HERE, str_of(id), &session, &err), 0);
}

static void check_files(struct store *store, int count)
{
	auto_dir DIR *dir = NULL;
	const struct dirent *entry;
	struct err err = {0};

	check_ok(fd_open_dir(store_dirfd(store, STORE_ROOT), "uploads", &dir, &err), &err);
	while ((entry = readdir(dir)))
		count -= !fd_is_dots(entry->d_name);
	assert_int_equal(count, 0);
}

/* Also to a daemon that comes after one that was killed. */
static void what_nothing_came_for_is_there_as_well(void **state)
{
	struct store_fixture *fixture = *state;
	struct uploads *uploads = begin(fixture->store, NULL);
	struct uploads *next;
	struct uploads_session *session;
	char ended[ULID_TEXT_MAX];
	char idle[ULID_TEXT_MAX];
	char held[ULID_TEXT_MAX];
	struct err err = {0};

	check_ok(uploads_begin(uploads, HERE, ended, &err), &err);
	session = take(uploads, ended);
	check_ok(uploads_cut(session, 0, &err), &err);
	check_bytes(session, "");
	check_ok(uploads_remove(session, &err), &err);
	uploads_release(session);
	check_is_nothing(uploads, ended);
	check_ok(uploads_begin(uploads, HERE, idle, &err), &err);
	check_ok(uploads_begin(uploads, HERE, held, &err), &err);
	session = take(uploads, held);
	assert_int_equal(uploads_expire(uploads, UPLOADS_PRESSED_MS, &err), 0);
	assert_int_equal(uploads_expire(uploads, 0, &err), 1);
	check_is_nothing(uploads, idle);
	assert_int_equal(uploads_load(uploads).sessions, 1);
	uploads_release(session);
	assert_int_equal(size_of(uploads, held), 0);
	check_files(fixture->store, 1);
	next = begin(fixture->store, NULL);
	uploads_close(uploads);
	assert_int_equal(size_of(next, held), 0);
	assert_int_equal(uploads_load(next).sessions, 1);
	session = take(next, held);
	check_ok(append(session, "bytes", &err), &err);
	check_ok(uploads_remove(session, &err), &err);
	uploads_release(session);
	check_is_nothing(next, held);
	check_files(fixture->store, 0);
	uploads_close(next);
}

static void names_that_are_no_sessions_are_nothing(void **state)
{
	static const char *const wrong[] = {"",
					    "..",
					    "../VERSION",
					    "x",
					    "01ARYZ6S41TSV4RRFFQ69G5FAV",
					    "01aryz6s41tsv4rrffq69g5fav"};
	struct store_fixture *fixture = *state;
	AUTO(uploads) struct uploads *uploads = begin(fixture->store, NULL);
	struct uploads_session *session;
	uint64_t size;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(uploads_find(uploads, HERE, str_of(wrong[i]), &size, &err), 0);
		assert_int_equal(uploads_take(uploads, HERE, str_of(wrong[i]), &session, &err), 0);
	}
}

static void what_came_before_a_client_vanished_stays(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(uploads) struct uploads *uploads = begin(fixture->store, NULL);
	AUTO(uploads_session) struct uploads_session *session = NULL;
	struct body body = {.source = {body_read}, .left = STR("half"), .fails = true};
	char id[ULID_TEXT_MAX];
	struct err err = {0};

	check_ok(uploads_begin(uploads, HERE, id, &err), &err);
	session = take(uploads, id);
	check_err(uploads_append(session, &body.source, UINT64_MAX, &err), &err, ERR_CANCELLED);
	assert_int_equal(uploads_size(session), 4);
	assert_int_equal(size_of(uploads, id), 4);
	body = (struct body){.source = {body_read}, .left = STR(" and too much")};
	assert_int_equal(uploads_append(session, &body.source, 4, &err), 1);
	check_bytes(session, "half and");
}

static void there_are_only_so_many_of_so_many_bytes(void **state)
{
	const struct uploads_options limits = {.sessions_max = 2, .bytes_max = 10};
	struct store_fixture *fixture = *state;
	AUTO(uploads) struct uploads *uploads = begin(fixture->store, &limits);
	AUTO(uploads_session) struct uploads_session *session = NULL;
	AUTO(uploads_session) struct uploads_session *nameless = NULL;
	char id[ULID_TEXT_MAX];
	struct err err = {0};

	check_ok(uploads_begin(uploads, HERE, id, &err), &err);
	check_ok(uploads_begin(uploads, HERE, id, &err), &err);
	check_err(uploads_begin(uploads, HERE, id, &err), &err, ERR_BUSY);
	session = take(uploads, id);
	check_ok(append(session, "12345678", &err), &err);
	check_err(append(session, "9ab", &err), &err, ERR_BUSY);
	assert_int_equal(uploads_size(session), 8);
	check_ok(uploads_take_new(uploads, &nameless, &err), &err);
	check_ok(append(nameless, "9a", &err), &err);
	assert_int_equal(uploads_load(uploads).bytes, 10);
	uploads_release(steal_ptr(&nameless));
	assert_int_equal(uploads_load(uploads).bytes, 8);
	check_ok(uploads_remove(session, &err), &err);
	check_ok(uploads_begin(uploads, HERE, id, &err), &err);
}

/* As if nothing had been added to it for so long. */
static void age(struct store *store, const char *id, int64_t ms)
{
	struct timespec times[2];
	char path[64];

	(void)snprintf(path, sizeof(path), "uploads/%s", id);
	(void)clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= ms / 1000 + 1;
	times[1] = times[0];
	assert_int_equal(utimensat(store_dirfd(store, STORE_ROOT), path, times, 0), 0);
}

static void idle_sessions_expire_unless_somebody_holds_them(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(uploads) struct uploads *uploads = begin(fixture->store, NULL);
	AUTO(uploads_session) struct uploads_session *session = NULL;
	char idle[ULID_TEXT_MAX];
	char held[ULID_TEXT_MAX];
	char busy[ULID_TEXT_MAX];
	uint64_t size;
	struct err err = {0};

	open_with(uploads, "1", idle);
	open_with(uploads, "2", held);
	open_with(uploads, "3", busy);
	session = take(uploads, held);
	age(fixture->store, idle, UPLOADS_IDLE_MS);
	age(fixture->store, held, UPLOADS_IDLE_MS);
	assert_int_equal(uploads_expire(uploads, UPLOADS_IDLE_MS, &err), 1);
	assert_int_equal(uploads_find(uploads, HERE, str_of(idle), &size, &err), 0);
	assert_int_equal(size_of(uploads, held), 1);
	assert_int_equal(size_of(uploads, busy), 1);
	uploads_release(steal_ptr(&session));
	assert_int_equal(uploads_expire(uploads, UPLOADS_IDLE_MS, &err), 1);
	assert_int_equal(uploads_load(uploads).sessions, 1);
}

static void where_there_are_too_many_idle_ones_go_sooner(void **state)
{
	const struct uploads_options limits = {.sessions_max = 1};
	struct store_fixture *fixture = *state;
	AUTO(uploads) struct uploads *uploads = begin(fixture->store, &limits);
	char id[ULID_TEXT_MAX];
	struct err err = {0};

	open_with(uploads, "some", id);
	age(fixture->store, id, UPLOADS_PRESSED_MS);
	check_ok(uploads_begin(uploads, HERE, id, &err), &err);
	assert_int_equal(size_of(uploads, id), 0);
	assert_int_equal(uploads_load(uploads).sessions, 1);
}

static void what_a_killed_daemon_left_half_made_goes(void **state)
{
	static const char id[] = "01aryz6s41tsv4rrffq69g5fav";
	struct store_fixture *fixture = *state;
	struct uploads *uploads = begin(fixture->store, NULL);
	uint64_t size;
	struct err err = {0};

	(void)close(openat(store_dirfd(fixture->store, STORE_ROOT),
			   "uploads/01aryz6s41tsv4rrffq69g5fav", O_CREAT | O_WRONLY, 0600));
	uploads_close(uploads);
	uploads = begin(fixture->store, NULL);
	assert_int_equal(uploads_find(uploads, HERE, str_of(id), &size, &err), 0);
	assert_int_equal(uploads_expire(uploads, UPLOADS_IDLE_MS, &err), 0);
	age(fixture->store, id, 60000);
	assert_int_equal(uploads_expire(uploads, UPLOADS_IDLE_MS, &err), 1);
	assert_int_equal(uploads_load(uploads).sessions, 0);
	uploads_close(uploads);
}

static void places_are_kept_for_who_has_all_bytes(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(uploads) struct uploads *uploads = begin(fixture->store, NULL);

	for (size_t i = 0; i < UPLOADS_WRITERS_SENT; i++)
		assert_true(uploads_enter(uploads, false));
	assert_false(uploads_enter(uploads, false));
	assert_true(uploads_enter(uploads, true));
	uploads_leave(uploads);
	uploads_leave(uploads);
	assert_true(uploads_enter(uploads, false));
	for (size_t i = 0; i < UPLOADS_WRITERS_SENT; i++)
		uploads_leave(uploads);
}

/*
 * The name goes after the file, so nobody takes in between what he then adds to in vain: as
 * long as the file cannot go, its session is held.
 */
static void what_ends_is_held_until_its_file_is_gone(void **state)
{
	struct store_fixture *fixture = *state;
	struct uploads *uploads = begin(fixture->store, NULL);
	int root = store_dirfd(fixture->store, STORE_ROOT);
	AUTO(uploads_session) struct uploads_session *session = NULL;
	struct uploads_session *other = NULL;
	char id[ULID_TEXT_MAX];
	char name[64];
	struct err err = {0};

	check_ok(uploads_begin(uploads, HERE, id, &err), &err);
	session = take(uploads, id);
	(void)snprintf(name, sizeof(name), "uploads/%s", id);
	assert_int_equal(unlinkat(root, name, 0), 0);
	assert_int_equal(mkdirat(root, name, 0700), 0);
	check_err(uploads_remove(session, &err), &err, ERR_OS);
	check_err(uploads_take(uploads, HERE, str_of(id), &other, &err), &err, ERR_CONFLICT);
	assert_int_equal(unlinkat(root, name, AT_REMOVEDIR), 0);
	assert_int_equal(mknodat(root, name, S_IFREG | 0600, 0), 0);
	check_ok(uploads_remove(session, &err), &err);
	assert_int_equal(uploads_take(uploads, HERE, str_of(id), &other, &err), 0);
	assert_int_equal(uploads_load(uploads).sessions, 0);
	uploads_release(steal_ptr(&session));
	uploads_close(uploads);
}

#define STORE_TEST(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_session_grows_from_one_process_to_the_next),
		STORE_TEST(a_session_is_of_one_repository_and_one_request),
		STORE_TEST(what_nothing_came_for_is_there_as_well),
		STORE_TEST(names_that_are_no_sessions_are_nothing),
		STORE_TEST(what_came_before_a_client_vanished_stays),
		STORE_TEST(there_are_only_so_many_of_so_many_bytes),
		STORE_TEST(idle_sessions_expire_unless_somebody_holds_them),
		STORE_TEST(where_there_are_too_many_idle_ones_go_sooner),
		STORE_TEST(what_a_killed_daemon_left_half_made_goes),
		STORE_TEST(what_ends_is_held_until_its_file_is_gone),
		STORE_TEST(places_are_kept_for_who_has_all_bytes),
	};

	return cmocka_run_group_tests_name("registry/uploads", tests, NULL, NULL);
}

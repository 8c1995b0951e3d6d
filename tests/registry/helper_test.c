/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that keep credentials, and those that do not: scripts in a directory of their own. */
#include "registry/helper.h"

#include "layers/base/fd.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct keeper {
	char dir[32];
	char search[64];
	char path[64];
	struct cancel cancel;
	struct credentials found;
};

static int keeper_new(void **state)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	struct err err = {0};

	assert_non_null(keeper);
	memcpy(keeper->dir, "/tmp/hearth-test-XXXXXX", sizeof("/tmp/hearth-test-XXXXXX"));
	assert_non_null(mkdtemp(keeper->dir));
	(void)snprintf(keeper->search, sizeof(keeper->search), "relative::/nowhere:%s",
		       keeper->dir);
	(void)snprintf(keeper->path, sizeof(keeper->path), "%s/docker-credential-test",
		       keeper->dir);
	memcpy(keeper->found.helper, "test", sizeof("test"));
	check_ok(cancel_init(&keeper->cancel, &err), &err);
	*state = keeper;
	return 0;
}

static int keeper_free(void **state)
{
	struct keeper *keeper = *state;

	(void)unlink(keeper->path);
	(void)rmdir(keeper->dir);
	cancel_done(&keeper->cancel);
	secret_done(&keeper->found.password);
	free(keeper);
	return 0;
}

static void keep_script(const struct keeper *keeper, const char *script, struct err *err)
{
	auto_close int fd = open(keeper->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	check_ok(fd_write_all(fd, "#!/bin/sh\n", 10, err), err);
	check_ok(fd_write_all(fd, script, strlen(script), err), err);
}

/* Ask a helper that is this script. */
static int ask(struct keeper *keeper, const char *script, const char *host, struct err *err)
{
	const struct helper_spec spec = {.search = keeper->search,
					 .host = str_of(host),
					 .timeout_ms = 5000,
					 .cancel = &keeper->cancel};

	keep_script(keeper, script, err);
	return helper_ask(&spec, &keeper->found, err);
}

/* What it is told is what it gives back. */
#define ECHOES \
	"printf '{\"ServerURL\":\"x\",\"Username\":\"%s\",\"Secret\":\"%s\"}' \"$1\" \"$(cat)\""

static void a_helper_is_asked_for_the_registry(void **state)
{
	struct keeper *keeper = *state;
	struct err err = {0};

	check_ok(ask(keeper, ECHOES, "127.0.0.1:5000", &err), &err);
	assert_string_equal(keeper->found.user, "get");
	assert_string_equal(secret_reveal(&keeper->found.password), "127.0.0.1:5000");
	check_ok(ask(keeper, ECHOES, "docker.io", &err), &err);
	assert_string_equal(secret_reveal(&keeper->found.password), "https://index.docker.io/v1/");
}

static void a_helper_that_is_not_there_is_named(void **state)
{
	struct keeper *keeper = *state;
	const struct helper_spec spec = {.search = keeper->search, .host = STR("r.com")};
	struct err err = {0};

	check_err(helper_ask(&spec, &keeper->found, &err), &err, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "docker-credential-test in PATH"));
}

static void a_helper_without_an_answer_is_not_cited(void **state)
{
	static const struct {
		const char *script;
		enum err_kind kind;
	} ways[] = {
		{"echo credentials not found; exit 1", ERR_UNAUTHORIZED},
		{"echo pass-word", ERR_INVALID},
		{"echo '{\"Username\":\"pass-word\"}'", ERR_INVALID},
		{"echo '{\"Username\":\"a\\u0000b\",\"Secret\":\"pass-word\"}'", ERR_INVALID},
		{"yes pass-word", ERR_LIMIT},
	};
	struct keeper *keeper = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct err err = {0};

		check_err(ask(keeper, ways[i].script, "r.com", &err), &err, ways[i].kind);
		assert_non_null(strstr(err.text, "docker-credential-test"));
		assert_null(strstr(err.text, "pass-word"));
	}
}

static void a_helper_that_hangs_is_ended(void **state)
{
	struct keeper *keeper = *state;
	const struct helper_spec spec = {
		.search = keeper->search, .host = STR("r.com"), .timeout_ms = 50};
	struct err err = {0};

	check_ok(ask(keeper, ECHOES, "r.com", &err), &err);
	{
		auto_close int fd = open(keeper->path, O_WRONLY | O_TRUNC | O_CLOEXEC);

		assert_true(fd >= 0);
		check_ok(fd_write_all(fd, "#!/bin/sh\nexec sleep 60\n", 24, &err), &err);
	}
	check_err(helper_ask(&spec, &keeper->found, &err), &err, ERR_TIMEOUT);
	cancel_raise(&keeper->cancel);
	check_err(ask(keeper, "exec sleep 60", "r.com", &err), &err, ERR_CANCELLED);
}

/* A helper that keeps one secret in a file beside it. */
#define KEEPS                                                                               \
	"f=${0%/*}/kept\ncase $1 in\nstore) cat >\"$f\" ;;\nget) cat \"$f\" || exit 1 ;;\n" \
	"erase) [ -e \"$f\" ] && [ \"$(cat)\" = r.com ] && rm \"$f\" ;;\nesac\n"

static void what_a_helper_stores_it_gives_back_until_it_is_erased(void **state)
{
	struct keeper *keeper = *state;
	const struct helper_spec spec = {.search = keeper->search, .host = STR("r.com")};
	auto_credentials struct credentials again = {.helper = "test"};
	struct err err = {0};

	keep_script(keeper, KEEPS, &err);
	memcpy(keeper->found.user, "me", sizeof("me"));
	check_ok(secret_put(&keeper->found.password, STR("sec\"ret"), &err), &err);
	check_ok(helper_store(&spec, &keeper->found, &err), &err);
	check_ok(helper_ask(&spec, &again, &err), &err);
	assert_string_equal(again.user, "me");
	assert_string_equal(secret_reveal(&again.password), "sec\"ret");
	assert_int_equal(helper_erase(&spec, "test", &err), 1);
	assert_int_equal(helper_erase(&spec, "test", &err), 0);
	check_err(helper_ask(&spec, &again, &err), &err, ERR_UNAUTHORIZED);
}

static void a_helper_that_keeps_nothing_is_an_error(void **state)
{
	struct keeper *keeper = *state;
	const struct helper_spec spec = {.search = keeper->search, .host = STR("r.com")};
	struct err err = {0};

	check_ok(secret_put(&keeper->found.password, STR("pass-word"), &err), &err);
	check_err(helper_store(&spec, &keeper->found, &err), &err, ERR_UNAVAILABLE);
	keep_script(keeper, "cat; exit 3", &err);
	check_err(helper_store(&spec, &keeper->found, &err), &err, ERR_DENIED);
	assert_null(strstr(err.text, "pass-word"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, keeper_new, keeper_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_helper_is_asked_for_the_registry),
		TEST(a_helper_that_is_not_there_is_named),
		TEST(a_helper_without_an_answer_is_not_cited),
		TEST(a_helper_that_hangs_is_ended),
		TEST(what_a_helper_stores_it_gives_back_until_it_is_erased),
		TEST(a_helper_that_keeps_nothing_is_an_error),
	};

	return cmocka_run_group_tests_name("registry/helper", tests, NULL, NULL);
}

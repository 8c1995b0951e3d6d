/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/mac.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#define THREADS 8

static struct digest name_of(struct store *store, const char *domain, const char *bytes)
{
	struct digest name;
	struct err err = {0};

	check_ok(mac_of(store, str_of(domain), str_of(bytes), &name, &err), &err);
	return name;
}

static void put_key(struct store *store, const char *text)
{
	auto_close int fd = openat(store_dirfd(store, STORE_ROOT), "secret.key",
				   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void a_name_is_of_the_bytes_their_domain_and_the_store(void **state)
{
	struct store_fixture *fixture = *state;
	struct digest name = name_of(fixture->store, "secret", "value");
	struct digest other;
	struct digest plain;
	struct stat st;

	other = name_of(fixture->store, "secret", "value");
	assert_true(digest_equal(&name, &other));
	other = name_of(fixture->store, "secret", "valuE");
	assert_false(digest_equal(&name, &other));
	other = name_of(fixture->store, "secretv", "alue");
	assert_false(digest_equal(&name, &other));
	digest_of(STR("value"), &plain);
	assert_false(digest_equal(&name, &plain));
	assert_int_equal(fstatat(store_dirfd(fixture->store, STORE_ROOT), "secret.key", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_size, MAC_KEY_BYTES);
	other = name_of(store_fixture_reopen(fixture, false), "secret", "value");
	assert_true(digest_equal(&name, &other));
	assert_int_equal(unlinkat(store_dirfd(fixture->store, STORE_ROOT), "secret.key", 0), 0);
	other = name_of(fixture->store, "secret", "value");
	assert_false(digest_equal(&name, &other));
}

static void names_never_change_by_accident(void **state)
{
	struct store_fixture *fixture = *state;
	char text[DIGEST_TEXT_MAX];
	struct digest name;

	put_key(fixture->store, "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk");
	name = name_of(fixture->store, "secret", "value");
	assert_string_equal(
		digest_format(&name, text),
		"sha256:9c8ba52dd05d48dc83ca42b08137acbad2b188312d1ccca9396690ff2bace60b");
}

static void a_damaged_key_is_said(void **state)
{
	struct store_fixture *fixture = *state;
	static const char *const wrong[] = {"", "short", "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"};
	struct digest name;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		put_key(fixture->store, wrong[i]);
		check_err(mac_of(fixture->store, STR("a"), STR("b"), &name, &err), &err,
			  ERR_CORRUPT);
		assert_non_null(strstr(err.text, "secret.key"));
	}
}

struct racer {
	struct store *store;
	struct digest name;
};

static void *race(void *ctx)
{
	struct racer *racer = ctx;
	struct err err;

	return mac_of(racer->store, STR("a"), STR("b"), &racer->name, &err) < 0 ? ctx : NULL;
}

static void those_who_are_first_at_one_time_have_one_key(void **state)
{
	struct store_fixture *fixture = *state;
	pthread_t threads[THREADS];
	struct racer racers[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		racers[i].store = fixture->store;
		assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
		assert_true(digest_equal(&racers[0].name, &racers[i].name));
	}
}

#define STORE_TEST(name) \
	cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(a_name_is_of_the_bytes_their_domain_and_the_store),
		STORE_TEST(names_never_change_by_accident),
		STORE_TEST(a_damaged_key_is_said),
		STORE_TEST(those_who_are_first_at_one_time_have_one_key),
	};

	return cmocka_run_group_tests_name("layers/mac", tests, NULL, NULL);
}

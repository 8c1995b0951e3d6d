/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admin_token.h"
#include "api/auth.h"
#include "tests/layers/store_fixture.h"

#include <fcntl.h>

/* A token with one scope; its id goes to id. */
static void make_token(struct store *store, const char *scope, struct secret *secret,
		       char id[static TOKEN_ID_MAX])
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *scopes = json_pack("[s]", scope);
	auto_token struct token token = TOKEN_INIT;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(token_create(meta, STR("a test"), scopes, secret, &token, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
	memcpy(id, token.id, TOKEN_ID_MAX);
}

static void revoke_token(struct store *store, const char *id)
{
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(token_revoke(meta, str_of(id), &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

static int ask(struct auth *auth, const struct secret *secret, struct identity *out,
	       struct err *err)
{
	char field[128];

	(void)snprintf(field, sizeof(field), "Bearer %s", secret_reveal(secret));
	return auth_check(auth, field, out, err);
}

static void a_token_is_who_it_was_made_for(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(auth) struct auth *auth = auth_new(fixture->store);
	auto_secret struct secret secret = {0};
	char id[TOKEN_ID_MAX];
	struct identity who;
	struct err err = {0};

	make_token(fixture->store, "operate", &secret, id);
	assert_int_equal(secret_bytes(&secret).len, TOKEN_LENGTH);
	for (int i = 0; i < 2; i++) { /* looked up, then remembered */
		check_ok(ask(auth, &secret, &who, &err), &err);
		assert_string_equal(who.token_id, id);
		assert_int_equal(who.level, TOKEN_OPERATE);
	}
}

static void a_revoked_token_is_refused_at_once(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(auth) struct auth *auth = auth_new(fixture->store);
	auto_secret struct secret secret = {0};
	char id[TOKEN_ID_MAX];
	struct identity who;
	struct err err = {0};

	make_token(fixture->store, "read", &secret, id);
	check_ok(ask(auth, &secret, &who, &err), &err);
	revoke_token(fixture->store, id);
	check_err(ask(auth, &secret, &who, &err), &err, ERR_UNAUTHORIZED);
}

static void nobody_is_let_in_by_anything_else(void **state)
{
	static const char *const fields[] = {
		"",
		"Bearer",
		"Bearer ",
		"Basic aGVhcnRoOng=",
		"Bearer hth_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"Bearer x",
	};
	struct store_fixture *fixture = *state;
	AUTO(auth) struct auth *auth = auth_new(fixture->store);
	struct identity who;
	struct err err = {0};

	check_err(auth_check(auth, NULL, &who, &err), &err, ERR_UNAUTHORIZED);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		check_err(auth_check(auth, fields[i], &who, &err), &err, ERR_UNAUTHORIZED);
}

static void the_scheme_is_read_as_clients_write_it(void **state)
{
	struct str token;

	(void)state;
	assert_true(auth_parse(STR("bearer  abc "), &token));
	assert_true(str_equal(token, STR("abc")));
	assert_true(auth_parse(STR("BEARER abc"), &token));
	assert_false(auth_parse(STR("Bearerabc"), &token));
	assert_false(auth_parse(STR("Bearer   "), &token));
}

static void the_secret_is_nowhere_in_the_store(void **state)
{
	struct store_fixture *fixture = *state;
	auto_secret struct secret secret = {0};
	auto_buf struct buf file = BUF_INIT((size_t)128 * 1024 * 1024);
	struct str needle;
	char id[TOKEN_ID_MAX];
	struct err err = {0};
	auto_close int fd = -1;

	make_token(fixture->store, "admin", &secret, id);
	needle = str_skip(secret_bytes(&secret), 4);
	fd = openat(store_dirfd(fixture->store, STORE_ROOT), "meta/data.mdb", O_RDONLY);
	check_ok(fd_read_all(fd, &file, &err), &err);
	assert_non_null(memmem(file.ptr, file.len, id, strlen(id)));
	assert_null(memmem(file.ptr, file.len, needle.ptr, needle.len));
}

static void scopes_are_judged(void **state)
{
	static const char *const good[] = {"admin", "read", "pull", "pull:team/*",
					   "delete:a-b/c_d.e"};
	static const char *const bad[] = {"", "root", "pull:", "pull:UPPER", "read:x", "push:a b"};
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		AUTO(json) json_t *scopes = json_pack("[s]", good[i]);
		auto_secret struct secret secret = {0};
		auto_token struct token token = TOKEN_INIT;

		check_ok(token_create(meta, STR(""), scopes, &secret, &token, &err), &err);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO(json) json_t *scopes = json_pack("[s]", bad[i]);
		auto_secret struct secret secret = {0};
		auto_token struct token token = TOKEN_INIT;

		check_err(token_create(meta, STR(""), scopes, &secret, &token, &err), &err,
			  ERR_INVALID);
	}
}

static void no_more_tokens_are_made_than_can_be_listed(void **state)
{
	struct store_fixture *fixture = *state;
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *scopes = json_pack("[s]", "read");
	auto_secret struct secret secret = {0};
	auto_token struct token token = TOKEN_INIT;
	struct err err = {0};
	char key[32];

	check_ok(meta_begin(fixture->store, META_WRITE, &meta, &err), &err);
	for (size_t i = 0; i < TOKENS_MAX; i++) {
		(void)snprintf(key, sizeof(key), "%zu", i);
		check_ok(meta_put_text(meta, "tokens", str_of(key), STR("{\"v\":1}"), &err), &err);
	}
	check_err(token_create(meta, STR(""), scopes, &secret, &token, &err), &err, ERR_LIMIT);
	check_ok(meta_del(meta, "tokens", STR("7"), &err), &err);
	check_ok(token_create(meta, STR(""), scopes, &secret, &token, &err), &err);
}

static void the_admin_token_is_made_once(void **state)
{
	struct store_fixture *fixture = *state;
	int datafd = store_dirfd(fixture->store, STORE_ROOT);
	AUTO(auth) struct auth *auth = auth_new(fixture->store);
	auto_secret struct secret first = {0};
	auto_secret struct secret second = {0};
	struct identity who;
	struct stat st;
	struct err err = {0};

	assert_int_equal(admin_token_read(datafd, &first, &err), 0);
	check_ok(admin_token_ensure(fixture->store, &err), &err);
	assert_int_equal(admin_token_read(datafd, &first, &err), 1);
	assert_int_equal(fstatat(datafd, "admin.token", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	check_ok(ask(auth, &first, &who, &err), &err);
	assert_int_equal(who.level, TOKEN_ADMIN);

	check_ok(admin_token_ensure(fixture->store, &err), &err);
	assert_int_equal(admin_token_read(datafd, &second, &err), 1);
	assert_string_equal(secret_reveal(&first), secret_reveal(&second));
	revoke_token(fixture->store, who.token_id);
	check_ok(admin_token_ensure(fixture->store, &err), &err);
	assert_int_equal(admin_token_read(datafd, &second, &err), 1);
	assert_string_not_equal(secret_reveal(&first), secret_reveal(&second));
}

#define store_unit_test(test) \
	cmocka_unit_test_setup_teardown(test, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_unit_test(a_token_is_who_it_was_made_for),
		store_unit_test(a_revoked_token_is_refused_at_once),
		store_unit_test(nobody_is_let_in_by_anything_else),
		cmocka_unit_test(the_scheme_is_read_as_clients_write_it),
		store_unit_test(the_secret_is_nowhere_in_the_store),
		store_unit_test(scopes_are_judged),
		store_unit_test(no_more_tokens_are_made_than_can_be_listed),
		store_unit_test(the_admin_token_is_made_once),
	};

	return cmocka_run_group_tests_name("api/token", tests, NULL, NULL);
}

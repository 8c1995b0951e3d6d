/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads that want one token: one asks for it, and the other waits. */
#include "registry/auth_priv.h"
#include "tests/check.h"
#include "tests/registry/standin.h"

#include <stdio.h>
#include <sys/eventfd.h>

/* A token service that answers when it is told to, or never. */
struct desk {
	struct standin server;
	int askedfd;   /* readable once a token was asked for */
	int releasefd; /* readable once it may answer */
	struct auth *auth;
};

/* One who wants the token, with connections and a cancel of its own. */
struct client {
	struct desk *desk;
	struct cancel cancel;
	struct http *http;
	pthread_t thread;
	int result;
	struct err err;
	struct secret token;
};

static void signal_fd(int fd)
{
	const uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

static void await_fd(int fd)
{
	uint64_t count;

	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
}

static void answers_late(void *ctx, const struct standin_request *request)
{
	const struct desk *desk = ctx;

	signal_fd(desk->askedfd);
	await_fd(desk->releasefd);
	standin_answer(request, "200 OK", "", STR("{\"token\":\"sesame\"}"));
}

static int desk_new(void **state)
{
	static struct desk desk;
	const struct auth_spec spec = {
		.path = STR("acme/tool"), .actions = "pull", .retry = {.tries = 1, .base_ms = 1}};
	struct err err = {0};

	desk = (struct desk){.askedfd = eventfd(0, EFD_CLOEXEC),
			     .releasefd = eventfd(0, EFD_CLOEXEC)};
	assert_true(desk.askedfd >= 0 && desk.releasefd >= 0);
	standin_start(&desk.server, answers_late, &desk);
	check_ok(auth_open(&spec, &desk.auth, &err), &err);
	*state = &desk;
	return 0;
}

static int desk_free(void **state)
{
	struct desk *desk = *state;

	standin_stop(&desk->server);
	auth_close(desk->auth);
	return close(desk->askedfd) + close(desk->releasefd);
}

static void client_init(struct client *client, struct desk *desk)
{
	struct http_options options = {.cancel = &client->cancel};
	struct err err = {0};

	*client = (struct client){.desk = desk};
	check_ok(cancel_init(&client->cancel, &err), &err);
	check_ok(http_open(&options, &client->http, &err), &err);
}

static void client_done(struct client *client)
{
	http_close(client->http);
	cancel_done(&client->cancel);
	secret_done(&client->token);
}

/* As after a 401 of the registry: whoever is first asks, the others wait. */
static int client_renew(struct client *client)
{
	auto_http_reply struct http_reply response = {.headers = BUF_INIT(HTTP_REPLY_HEADERS_MAX)};
	auto_grant struct grant grant = {0};
	char base[64];

	(void)snprintf(base, sizeof(base), "http://127.0.0.1:%u/", client->desk->server.port);
	if (buf_addf(&response.headers, &client->err,
		     "WWW-Authenticate: Bearer realm=\"/token\"\n") < 0 ||
	    auth_renew(client->desk->auth, client->http, base, &response, &grant, &client->err) <
		    0 ||
	    auth_get(client->desk->auth, client->http, &grant, &client->err) < 0)
		return -1;
	return secret_copy(&client->token, &grant.token, &client->err);
}

static void *client_run(void *ctx)
{
	struct client *client = ctx;

	client->result = client_renew(client);
	return NULL;
}

static void client_start(struct client *client)
{
	assert_int_equal(pthread_create(&client->thread, NULL, client_run, client), 0);
}

static void client_join(struct client *client)
{
	assert_int_equal(pthread_join(client->thread, NULL), 0);
}

static void a_token_that_one_thread_fetches_serves_those_who_wait(void **state)
{
	struct desk *desk = *state;
	struct client first;
	struct client second;

	client_init(&first, desk);
	client_init(&second, desk);
	client_start(&first);
	await_fd(desk->askedfd);
	client_start(&second);
	signal_fd(desk->releasefd);
	client_join(&first);
	client_join(&second);
	check_ok(first.result, &first.err);
	check_ok(second.result, &second.err);
	assert_string_equal(secret_reveal(&first.token), "sesame");
	assert_string_equal(secret_reveal(&second.token), "sesame");
	assert_int_equal(atomic_load(&desk->server.requests), 1);
	client_done(&first);
	client_done(&second);
}

/* The service does not answer before the second has given up, so it can only be its cancel. */
static void who_waits_for_another_threads_token_can_be_cancelled(void **state)
{
	struct desk *desk = *state;
	struct client first;
	struct client second;

	client_init(&first, desk);
	client_init(&second, desk);
	client_start(&first);
	await_fd(desk->askedfd);
	client_start(&second);
	cancel_raise(&second.cancel);
	client_join(&second);
	check_err(second.result, &second.err, ERR_CANCELLED);
	signal_fd(desk->releasefd);
	client_join(&first);
	check_ok(first.result, &first.err);
	assert_int_equal(atomic_load(&desk->server.requests), 1);
	client_done(&first);
	client_done(&second);
}

static void the_next_asks_where_the_first_was_cancelled(void **state)
{
	struct desk *desk = *state;
	struct client first;
	struct client second;

	client_init(&first, desk);
	client_init(&second, desk);
	client_start(&first);
	await_fd(desk->askedfd);
	client_start(&second);
	cancel_raise(&first.cancel);
	client_join(&first);
	check_err(first.result, &first.err, ERR_CANCELLED);
	signal_fd(desk->releasefd); /* to nobody */
	await_fd(desk->askedfd);
	signal_fd(desk->releasefd);
	client_join(&second);
	check_ok(second.result, &second.err);
	assert_string_equal(secret_reveal(&second.token), "sesame");
	client_done(&first);
	client_done(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_token_that_one_thread_fetches_serves_those_who_wait, desk_new, desk_free),
		cmocka_unit_test_setup_teardown(
			who_waits_for_another_threads_token_can_be_cancelled, desk_new, desk_free),
		cmocka_unit_test_setup_teardown(the_next_asks_where_the_first_was_cancelled,
						desk_new, desk_free),
	};

	return cmocka_run_group_tests_name("registry/auth_wait", tests, NULL, NULL);
}

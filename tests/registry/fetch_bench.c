/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/fetch_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void bench_open(struct bench *bench, standin_fn *fn, standin_fn *other)
{
	struct err err = {0};

	bench->got = BUF_INIT(BLOB_MAX);
	bench->sink = BUF_SINK(&bench->got);
	for (size_t i = 0; i < BLOB_SIZE; i++)
		bench->bytes[i] = (char)(i * 7 + i / 251);
	digest_of((struct str){bench->bytes, BLOB_SIZE}, &bench->blob.digest);
	bench->blob.size = BLOB_SIZE;
	check_ok(cancel_init(&bench->cancel, &err), &err);
	standin_start(&bench->server, fn, bench);
	standin_start(&bench->other, other ? other : fn, bench);
	(void)snprintf(bench->host, sizeof(bench->host), "127.0.0.1:%u", bench->server.port);
	bench->spec.host = str_of(bench->host);
	bench->spec.path = STR("acme/tool");
	bench->spec.tries = 4;
	bench->spec.retry_base_ms = 1;
	bench->spec.cancel = &bench->cancel;
	check_ok(remote_open(&bench->spec, &bench->remote, &err), &err);
	check_ok(remote_connect(bench->remote, &bench->http, &err), &err);
}

void bench_identify(struct bench *bench, const char *user, const char *password)
{
	struct err err = {0};

	check_ok(secret_put(&bench->password, str_of(password), &err), &err);
	bench->spec.user = str_of(user);
	bench->spec.password = &bench->password;
}

int bench_new(void **state)
{
	*state = calloc(1, sizeof(struct bench));
	return *state ? 0 : -1;
}

int bench_free(void **state)
{
	struct bench *bench = *state;

	http_close(bench->http);
	remote_close(bench->remote);
	standin_stop(&bench->server);
	standin_stop(&bench->other);
	cancel_done(&bench->cancel);
	buf_done(&bench->got);
	secret_done(&bench->password);
	free(bench);
	return 0;
}

int bench_blob(struct bench *bench, struct err *err)
{
	return fetch_blob(bench->remote, bench->http, &bench->blob, &bench->sink.sink, err);
}

void check_whole(const struct bench *bench)
{
	assert_int_equal(bench->got.len, BLOB_SIZE);
	assert_memory_equal(bench->got.ptr, bench->bytes, BLOB_SIZE);
}

void say_bytes(const struct bench *bench, const struct standin_request *request, size_t from,
	       size_t to)
{
	/* A client that has seen enough, and is gone, is no failure of the test. */
	(void)send(request->fd, bench->bytes + from, to - from, MSG_NOSIGNAL);
}

void say_whole(const struct bench *bench, const struct standin_request *request)
{
	standin_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
		    BLOB_SIZE);
	say_bytes(bench, request, 0, BLOB_SIZE);
}

void closes_at_once_twice(void *ctx, const struct standin_request *request)
{
	if (request->number > 2)
		say_whole(ctx, request);
}

void always_503(void *ctx, const struct standin_request *request)
{
	(void)ctx;
	standin_answer(request, "503 Service Unavailable", "", STR("<html>maintenance</html>"));
}

void longer_without_a_length(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;

	standin_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
	say_bytes(bench, request, 0, BLOB_SIZE);
	standin_say(request, "x");
}

void storage(void *ctx, const struct standin_request *request)
{
	struct bench *bench = ctx;

	if (strstr(request->text, "uthorization"))
		bench->leaked = true;
	say_whole(bench, request);
}

/* A signed URL that was used up; the registry gives another. */
void redirects_to_expired(void *ctx, const struct standin_request *request)
{
	const struct bench *bench = ctx;
	char text[128];

	(void)snprintf(text, sizeof(text), "Location: http://127.0.0.1:%u/%d\r\n",
		       bench->other.port, request->number);
	standin_answer(request, "307 Temporary Redirect", text, STR(""));
}

struct bench *bench_again(void **state)
{
	assert_int_equal(bench_free(state), 0);
	assert_int_equal(bench_new(state), 0);
	return *state;
}

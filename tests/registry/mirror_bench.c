/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/mirror_bench.h"

#include "layers/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BENCH_PIECE 5000 /* bytes that a client takes at one time */

/* The upstream */

bool upstream_is_for(const struct standin_request *request, const char *method, const char *what)
{
	return strcmp(request->method, method) == 0 && strstr(request->target, what);
}

void upstream_say_manifest(const struct mirror_bench *bench, const struct standin_request *request)
{
	char headers[512];

	(void)snprintf(headers, sizeof(headers),
		       "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n"
		       "Docker-Content-Digest: %s\r\nratelimit-limit: 100;w=21600\r\n"
		       "ratelimit-remaining: 76;w=21600\r\n",
		       bench->manifest_name);
	standin_answer(request, "200 OK", headers, str_of(bench->manifest));
}

/* All of it, or what a closed range asks for. */
void upstream_say_blob(const struct mirror_bench *bench, const struct standin_request *request)
{
	const char *range = strstr(request->text, "\r\nRange: bytes=");
	struct str text = str_of(range ? range + strlen("\r\nRange: bytes=") : "");
	uint64_t from = 0;

	if (range && str_take_number(&text, &from) && from < BENCH_BLOB_SIZE)
		standin_say(request,
			    "HTTP/1.1 206 Partial Content\r\nConnection: close\r\n"
			    "Content-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n\r\n",
			    (size_t)from, BENCH_BLOB_SIZE - 1, BENCH_BLOB_SIZE,
			    BENCH_BLOB_SIZE - (size_t)from);
	else
		standin_say(request,
			    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
			    BENCH_BLOB_SIZE);
	if (strcmp(request->method, "HEAD") != 0)
		(void)send(request->fd, bench->blob + from, BENCH_BLOB_SIZE - (size_t)from,
			   MSG_NOSIGNAL);
}

void upstream_serves(void *ctx, const struct standin_request *request)
{
	struct mirror_bench *bench = ctx;
	bool head = strcmp(request->method, "HEAD") == 0;

	if (atomic_load(&bench->down))
		return;
	atomic_fetch_add(&bench->heads, head);
	if (strstr(request->target, "/v2/acme/tool/manifests/1.0") ||
	    strstr(request->target, bench->manifest_name)) {
		atomic_fetch_add(&bench->manifests, !head);
		upstream_say_manifest(bench, request);
	} else if (strstr(request->target, bench->blob_name)) {
		atomic_fetch_add(&bench->blobs, !head);
		upstream_say_blob(bench, request);
	} else {
		standin_answer(request, "404 Not Found", "", STR("<html>none</html>"));
	}
}

/* The mirror */

static void bench_wake(void *ctx, uint64_t topic)
{
	struct mirror_bench *bench = ctx;

	(void)topic;
	(void)pthread_mutex_lock(&bench->lock);
	bench->wakes++;
	(void)pthread_cond_broadcast(&bench->changed);
	(void)pthread_mutex_unlock(&bench->lock);
}

static uint64_t bench_mark(struct mirror_bench *bench)
{
	uint64_t wakes;

	(void)pthread_mutex_lock(&bench->lock);
	wakes = bench->wakes;
	(void)pthread_mutex_unlock(&bench->lock);
	return wakes;
}

/* Until somebody is woken; false once the time of the wait is over. */
static bool bench_wait(struct mirror_bench *bench, uint64_t mark, const struct http_wait *wait)
{
	struct timespec until = {wait->until_ms / 1000, wait->until_ms % 1000 * 1000000};
	int rc = 0;

	(void)pthread_mutex_lock(&bench->lock);
	while (bench->wakes == mark && rc == 0)
		rc = pthread_cond_timedwait(&bench->changed, &bench->lock, &until);
	(void)pthread_mutex_unlock(&bench->lock);
	return rc == 0;
}

static void bench_digest(const struct mirror_bench *bench, struct str bytes, char *out)
{
	AUTO(hasher) struct hasher hasher = {0};
	struct digest digest;

	hasher_init_as(&hasher, bench->algorithm);
	hasher_add(&hasher, bytes);
	hasher_final(&hasher, &digest);
	(void)digest_format(&digest, out);
}

static void bench_make_image(struct mirror_bench *bench)
{
	for (size_t i = 0; i < BENCH_BLOB_SIZE; i++)
		bench->blob[i] = (char)(i * 7 + i / 251);
	bench_digest(bench, (struct str){bench->blob, BENCH_BLOB_SIZE}, bench->blob_name);
	(void)snprintf(
		bench->manifest, sizeof(bench->manifest),
		"{\"schemaVersion\": 2, \"mediaType\": "
		"\"application/vnd.oci.image.manifest.v1+json\",\n \"config\": {\"mediaType\": "
		"\"application/vnd.oci.empty.v1+json\", \"digest\": \"%s\", \"size\": %zu}, "
		"\"layers\": []}",
		bench->blob_name, BENCH_BLOB_SIZE);
	bench_digest(bench, str_of(bench->manifest), bench->manifest_name);
}

void mirror_bench_reopen(struct mirror_bench *bench)
{
	struct err err = {0};

	mirror_close(bench->mirror);
	bench->mirror = NULL;
	check_ok(mirror_open(&bench->options, &bench->mirror, &err), &err);
	bench->v2 = (struct v2){.store = bench->fixture->store, .mirror = bench->mirror};
}

void mirror_bench_open(struct mirror_bench *bench, standin_fn *fn, standin_fn *other)
{
	bench_make_image(bench);
	standin_start(&bench->server, fn, bench);
	standin_start(&bench->other, other ? other : fn, bench);
	(void)snprintf(bench->place, sizeof(bench->place), "127.0.0.1:%u", bench->server.port);
	if (bench->spec.place.len == 0)
		bench->spec.place = str_of(bench->place);
	mirror_bench_reopen(bench);
}

int mirror_bench_new(void **state)
{
	struct mirror_bench *bench = calloc(1, sizeof(*bench));
	pthread_condattr_t monotonic;
	void *fixture;

	if (!bench || store_fixture_open(&fixture) < 0 || pthread_condattr_init(&monotonic) != 0 ||
	    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) != 0 ||
	    pthread_cond_init(&bench->changed, &monotonic) != 0 ||
	    pthread_mutex_init(&bench->lock, NULL) != 0)
		return -1;
	bench->fixture = fixture;
	bench->spec = (struct mirror_upstream_spec){
		.host = STR(BENCH_UP), .plain_http = true, .tag_ttl_ms = 3600000};
	bench->options = (struct mirror_options){.store = bench->fixture->store,
						 .upstreams = &bench->spec,
						 .upstream_count = 1,
						 .default_host = STR(""),
						 .wake = bench_wake,
						 .wake_ctx = bench,
						 .retry_base_ms = 1};
	*state = bench;
	return 0;
}

int mirror_bench_free(void **state)
{
	struct mirror_bench *bench = *state;
	void *fixture = bench->fixture;

	mirror_close(bench->mirror);
	standin_stop(&bench->server);
	standin_stop(&bench->other);
	(void)pthread_cond_destroy(&bench->changed);
	(void)pthread_mutex_destroy(&bench->lock);
	free(bench);
	return store_fixture_close(&fixture);
}

/* Clients */

struct client {
	struct mirror_bench *bench;
	const struct mirror_want *want;
	struct http_field query[2];
	struct http_request request;
	struct http_response response;
	struct v2_call call;
};

static const char *client_find_header(const struct http_request *request, const char *name)
{
	const struct client *client = container_of(drop_const(request), struct client, request);

	return strcmp(name, "Range") == 0 ? client->want->range : NULL;
}

static bool client_may(void *ctx, struct str repository, enum v2_action action)
{
	const struct mirror_bench *bench = ctx;

	(void)repository;
	return action != V2_PUSH || bench->may_push;
}

/* As the server does: once more when what it waits for has changed. */
static void client_answer(struct client *client)
{
	struct mirror_bench *bench = client->bench;

	while (true) {
		uint64_t mark = bench_mark(bench);

		http_response_clear(&client->response);
		v2_answer(&client->call);
		if (client->response.wait.until_ms == 0)
			return;
		assert_false(client->request.over);
		client->request.over =
			client->want->impatient || !bench_wait(bench, mark, &client->response.wait);
		client->request.waited = true;
	}
}

static void client_read(struct client *client, struct mirror_got *got)
{
	struct http_stream *stream = client->response.stream;
	uint64_t size = client->response.stream_bytes;
	bool ended = false;

	got->endless = size == HTTP_BYTES_UNKNOWN;
	got->body = malloc((got->endless ? BENCH_BLOB_SIZE : (size_t)size) + BENCH_PIECE);
	assert_non_null(got->body);
	while (got->len < size && !ended) {
		uint64_t mark = bench_mark(client->bench);
		struct http_wait wait = {0};
		ssize_t n = stream->read(stream, got->len, got->body + got->len, BENCH_PIECE, false,
					 &wait);

		if (n == 0)
			(void)bench_wait(client->bench, mark, &wait);
		ended = n < 0;
		got->cut = ended && (n != HTTP_STREAM_END || !got->endless);
		assert_true(got->len <= BENCH_BLOB_SIZE || !got->endless);
		got->len += n > 0 ? (size_t)n : 0;
	}
}

static void client_take(struct client *client, struct mirror_got *got)
{
	const struct http_response *response = &client->response;

	*got = (struct mirror_got){.status = response->status};
	for (size_t i = 0; i < response->header_count; i++) {
		size_t len = strlen(got->headers);

		(void)snprintf(got->headers + len, sizeof(got->headers) - len, "%s: %s\n",
			       response->headers[i].name, response->headers[i].value);
	}
	if (response->stream && client->want->response) {
		*client->want->response = client->response;
		client->response = HTTP_RESPONSE_INIT;
		return;
	}
	if (response->stream) {
		got->len = client->want->method == HTTP_HEAD ? (size_t)response->stream_bytes : 0;
		if (client->want->method != HTTP_HEAD)
			client_read(client, got);
		return;
	}
	got->body = malloc(response->body.len + 1);
	assert_non_null(got->body);
	got->len = response->body.len;
	memcpy(got->body, buf_str(&response->body).ptr, got->len);
}

void mirror_bench_ask(struct mirror_bench *bench, const struct mirror_want *want,
		      struct mirror_got *got)
{
	struct client client = {
		.bench = bench,
		.want = want,
		.request = {.method = want->method,
			    .path = str_of(want->path),
			    .find_header = client_find_header},
		.response = HTTP_RESPONSE_INIT,
	};

	if (want->ns)
		client.query[client.request.query_count++] =
			(struct http_field){STR("ns"), str_of(want->ns)};
	if (want->query)
		client.query[client.request.query_count++] =
			(struct http_field){str_of(want->query), str_of(want->value)};
	client.request.query = client.query;
	client.call = (struct v2_call){.v2 = &bench->v2,
				       .request = &client.request,
				       .response = &client.response,
				       .may = client_may,
				       .may_ctx = bench};
	if (v2_path_parse(&client.request, &client.call.path, &client.response) == 0)
		client_answer(&client);
	client_take(&client, got);
	v2_done(&client.call);
	http_response_clear(&client.response);
}

void mirror_got_done(struct mirror_got *got)
{
	free(got->body);
	*got = (struct mirror_got){0};
}

unsigned mirror_bench_status(struct mirror_bench *bench, const char *path)
{
	const struct mirror_want want = {.method = HTTP_GET, .path = path};
	struct mirror_got got;
	unsigned status;

	mirror_bench_ask(bench, &want, &got);
	status = got.status;
	mirror_got_done(&got);
	return status;
}

const char *mirror_bench_path(const char *kind, const char *name, char out[static 512])
{
	(void)snprintf(out, 512, "/v2/" BENCH_UP "/acme/tool/%s/%s", kind, name);
	return out;
}

static void check_header(const struct mirror_got *got, const char *name, const char *value)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "%s: %s\n", name, value);
	if (!strstr(got->headers, line))
		fail_msg("no %s in %s", line, got->headers);
}

void check_is_blob(const struct mirror_bench *bench, const struct mirror_got *got)
{
	assert_int_equal(got->status, 200);
	assert_false(got->cut);
	assert_int_equal(got->len, BENCH_BLOB_SIZE);
	assert_memory_equal(got->body, bench->blob, BENCH_BLOB_SIZE);
	check_header(got, "Docker-Content-Digest", bench->blob_name);
}

void check_is_manifest(const struct mirror_bench *bench, const struct mirror_got *got)
{
	assert_int_equal(got->status, 200);
	assert_int_equal(got->len, strlen(bench->manifest));
	assert_memory_equal(got->body, bench->manifest, got->len);
	check_header(got, "Docker-Content-Digest", bench->manifest_name);
	check_header(got, "Content-Type", "application/vnd.oci.image.manifest.v1+json");
}

void mirror_bench_ask_blob(struct mirror_bench *bench, enum http_method method, const char *range,
			   struct mirror_got *got)
{
	char path[512];
	const struct mirror_want want = {
		.method = method,
		.path = mirror_bench_path("blobs", bench->blob_name, path),
		.range = range,
	};

	mirror_bench_ask(bench, &want, got);
}

void check_gets_blob(struct mirror_bench *bench)
{
	struct mirror_got got;

	mirror_bench_ask_blob(bench, HTTP_GET, NULL, &got);
	check_is_blob(bench, &got);
	mirror_got_done(&got);
}

void check_blob_is_not_kept(struct mirror_bench *bench)
{
	int before = atomic_load(&bench->blobs);

	atomic_store(&bench->flag, true);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->blobs), before + 1);
	check_gets_blob(bench);
	assert_int_equal(atomic_load(&bench->blobs), before + 1);
}

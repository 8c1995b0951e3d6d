/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_blob.h"
#include "tests/layers/collecting.h"
#include "tests/registry/stock.h"

#define TEXT "0123456789abcdefghij"

/* What a request says beside its path: tests run one at a time. */
static const char *sent_range;
static const char *sent_if_range;
static const char *sent_if_none_match;

static const char *find_header(const struct http_request *request, const char *name)
{
	(void)request;
	if (strcmp(name, "Range") == 0)
		return sent_range;
	if (strcmp(name, "If-Range") == 0)
		return sent_if_range;
	return strcmp(name, "If-None-Match") == 0 ? sent_if_none_match : NULL;
}

static int forget_headers(void **state)
{
	sent_range = sent_if_range = sent_if_none_match = NULL;
	return store_fixture_open(state);
}

static void hold(struct store *store, const char *repository, const struct stock *stock)
{
	const struct repository_item item = stock_item(stock, REPOSITORY_BLOB, REPOSITORY_PUSHED);
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(repository_put(meta, str_of(repository), &item, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
}

static void ask(struct store *store, enum http_method method, const char *repository,
		const struct digest *digest, struct http_response *out)
{
	struct v2 v2 = {.store = store};
	const struct http_request request = {.method = method, .find_header = find_header};
	struct v2_call call = {.v2 = &v2,
			       .path = {.kind = V2_BLOB,
					.action = V2_PULL,
					.repository = str_of(repository),
					.by_digest = true,
					.digest = *digest},
			       .request = &request,
			       .response = out};

	v2_blob_answer(&call);
	v2_done(&call);
}

static const char *header(const struct http_response *response, const char *name)
{
	for (size_t i = 0; i < response->header_count; i++) {
		if (strcmp(response->headers[i].name, name) == 0)
			return response->headers[i].value;
	}
	return "";
}

/* All that a stream says, `piece` bytes at a time, by either of its ways. */
static void check_stream(const struct http_response *response, const char *wanted, size_t piece,
			 bool near)
{
	struct http_stream *stream = response->stream;
	char found[64];
	struct http_wait wait;
	size_t at = 0;

	assert_non_null(stream);
	assert_int_equal(response->stream_bytes, strlen(wanted));
	while (at < response->stream_bytes) {
		ssize_t n = near ? stream->read_near(stream, at, found + at, piece)
				 : stream->read(stream, at, found + at, piece, false, &wait);

		assert_in_range(n, 1, piece);
		at += (size_t)n;
	}
	assert_memory_equal(found, wanted, at);
}

static void a_blob_comes_whole_with_its_digest(void **state)
{
	static const enum digest_algorithm algorithms[] = {DIGEST_SHA256, DIGEST_SHA512};
	struct store_fixture *fixture = *state;

	for (size_t i = 0; i < 2; i++) {
		struct stock stock = stock_put(fixture->store, TEXT, algorithms[i]);
		auto_http_response struct http_response response = HTTP_RESPONSE_INIT;

		hold(fixture->store, "a/b", &stock);
		ask(fixture->store, HTTP_GET, "a/b", &stock.digest, &response);
		assert_int_equal(response.status, 200);
		assert_string_equal(header(&response, "Docker-Content-Digest"), stock.name);
		assert_string_equal(header(&response, "Content-Type"), "application/octet-stream");
		assert_string_equal(header(&response, "Accept-Ranges"), "bytes");
		check_stream(&response, TEXT, 7, false);
		check_stream(&response, TEXT, 64, true);
	}
}

static void a_head_says_how_long_it_is(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_put(fixture->store, TEXT, DIGEST_SHA256);
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;

	hold(fixture->store, "a", &stock);
	sent_range = "bytes=1-2"; /* which is for GET alone */
	ask(fixture->store, HTTP_HEAD, "a", &stock.digest, &response);
	assert_int_equal(response.status, 200);
	assert_int_equal(response.stream_bytes, sizeof(TEXT) - 1);
	assert_string_equal(header(&response, "Docker-Content-Digest"), stock.name);
}

static void a_part_says_which_it_is(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_put(fixture->store, TEXT, DIGEST_SHA256);
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;

	hold(fixture->store, "a", &stock);
	sent_range = "bytes=5-50";
	ask(fixture->store, HTTP_GET, "a", &stock.digest, &response);
	assert_int_equal(response.status, 206);
	assert_string_equal(header(&response, "Content-Range"), "bytes 5-19/20");
	check_stream(&response, &TEXT[5], 3, true);
	check_stream(&response, &TEXT[5], 4, false);
}

static void a_part_that_is_none_is_refused_with_the_size(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_put(fixture->store, TEXT, DIGEST_SHA256);
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;

	hold(fixture->store, "a", &stock);
	sent_range = "bytes=20-";
	ask(fixture->store, HTTP_GET, "a", &stock.digest, &response);
	assert_int_equal(response.status, 416);
	assert_string_equal(header(&response, "Content-Range"), "bytes */20");
	assert_null(response.stream);
	/* A refusal is none of the blob, and not to be kept for a year as one. */
	assert_string_equal(header(&response, "Docker-Content-Digest"), "");
	assert_string_equal(header(&response, "Cache-Control"), "");
	assert_non_null(strstr(buf_str(&response.body).ptr, "RANGE_INVALID"));
}

static void a_part_of_another_version_is_the_whole(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_put(fixture->store, TEXT, DIGEST_SHA256);
	auto_http_response struct http_response other = HTTP_RESPONSE_INIT;
	auto_http_response struct http_response same = HTTP_RESPONSE_INIT;
	char etag[DIGEST_TEXT_MAX + 2];

	hold(fixture->store, "a", &stock);
	sent_range = "bytes=5-";
	sent_if_range = "\"something else\"";
	ask(fixture->store, HTTP_GET, "a", &stock.digest, &other);
	assert_int_equal(other.status, 200);
	(void)snprintf(etag, sizeof(etag), "\"%s\"", stock.name);
	assert_string_equal(header(&other, "ETag"), etag);
	sent_if_range = etag;
	ask(fixture->store, HTTP_GET, "a", &stock.digest, &same);
	assert_int_equal(same.status, 206);
}

static void what_the_client_has_is_not_sent(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_put(fixture->store, TEXT, DIGEST_SHA256);
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;
	char etag[DIGEST_TEXT_MAX + 2];

	hold(fixture->store, "a", &stock);
	(void)snprintf(etag, sizeof(etag), "\"%s\"", stock.name);
	sent_if_none_match = etag;
	ask(fixture->store, HTTP_GET, "a", &stock.digest, &response);
	assert_int_equal(response.status, 304);
	assert_null(response.stream);
}

static void an_empty_blob_is_a_blob(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_put(fixture->store, "", DIGEST_SHA256);
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;

	hold(fixture->store, "a", &stock);
	ask(fixture->store, HTTP_GET, "a", &stock.digest, &response);
	assert_int_equal(response.status, 200);
	assert_int_equal(response.stream_bytes, 0);
}

static void a_blob_of_the_store_is_nobodys_but_its_repositories(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_put(fixture->store, TEXT, DIGEST_SHA256);
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;

	hold(fixture->store, "a", &stock);
	ask(fixture->store, HTTP_GET, "b", &stock.digest, &response);
	assert_int_equal(response.status, 404);
	assert_non_null(strstr(buf_str(&response.body).ptr, "BLOB_UNKNOWN"));
	assert_string_equal(header(&response, "Docker-Content-Digest"), "");
}

static void a_record_without_its_blob_is_no_blob(void **state)
{
	struct store_fixture *fixture = *state;
	struct stock stock = stock_absent(TEXT, DIGEST_SHA256);
	auto_http_response struct http_response response = HTTP_RESPONSE_INIT;

	hold(fixture->store, "a", &stock);
	ask(fixture->store, HTTP_HEAD, "a", &stock.digest, &response);
	assert_int_equal(response.status, 404);
}

static void who_reads_a_blob_has_it_whole_though_it_is_deleted(void **state)
{
	struct store_fixture *fixture = *state;
	char text[40001];
	struct stock stock;
	struct http_wait wait;
	struct http_response response = HTTP_RESPONSE_INIT;
	struct http_response after = HTTP_RESPONSE_INIT;
	char found[sizeof(text)];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	stock = stock_put(fixture->store, text, DIGEST_SHA256);
	hold(fixture->store, "a", &stock);
	ask(fixture->store, HTTP_GET, "a", &stock.digest, &response);
	collect_unleased(fixture->store);
	assert_int_equal(
		response.stream->read(response.stream, 0, found, sizeof(found), false, &wait),
		sizeof(text) - 1);
	assert_memory_equal(found, text, sizeof(text) - 1);
	http_response_clear(&response);
	collect_unleased(fixture->store);
	ask(fixture->store, HTTP_GET, "a", &stock.digest, &after);
	assert_int_equal(after.status, 404);
	http_response_clear(&after);
}

#define blob_test(test) cmocka_unit_test_setup_teardown(test, forget_headers, store_fixture_close)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		blob_test(a_blob_comes_whole_with_its_digest),
		blob_test(a_head_says_how_long_it_is),
		blob_test(a_part_says_which_it_is),
		blob_test(a_part_that_is_none_is_refused_with_the_size),
		blob_test(a_part_of_another_version_is_the_whole),
		blob_test(what_the_client_has_is_not_sent),
		blob_test(an_empty_blob_is_a_blob),
		blob_test(a_blob_of_the_store_is_nobodys_but_its_repositories),
		blob_test(a_record_without_its_blob_is_no_blob),
		blob_test(who_reads_a_blob_has_it_whole_though_it_is_deleted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

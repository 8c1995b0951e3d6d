/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/upload_desk.h"

#include "layers/blob.h"

#include <stdio.h>

char desk_letter(const struct standin_request *request)
{
	if (strncmp(request->target, "/token", 6) == 0)
		return 'T';
	if (strstr(request->target, "/manifests/"))
		return strcmp(request->method, "PUT") == 0 ? (char)'D' : (char)'h';
	if (strstr(request->target, "mount="))
		return 'M';
	if (request->method[0] == 'H' || request->method[0] == 'G')
		return request->method[0];
	if (strcmp(request->method, "POST") == 0)
		return 'P';
	return strcmp(request->method, "PATCH") == 0 ? (char)'C' : (char)'U';
}

void desk_take(struct desk *desk, const struct standin_request *request, size_t most)
{
	const char *length = strstr(request->text, "Content-Length: ");
	struct str number = str_of(length ? length + 16 : "0");
	struct err err = {0};
	uint64_t size = 0;

	(void)str_take_number(&number, &size);
	if (size > most)
		size = most;
	if (!standin_read_body(request, (size_t)size, &desk->got, &err))
		fail_msg("the body ends early: %s", err.text);
}

static void desk_registry(struct desk *desk, const struct standin_request *request)
{
	bool whole = str_equal(buf_str(&desk->got), buf_str(&desk->bytes));
	const char *range = strstr(request->text, "Content-Range: ");
	char headers[400];

	if (range)
		(void)snprintf(desk->range, sizeof(desk->range), STR_FMT,
			       (int)strcspn(range + 15, "\r"), range + 15);
	(void)snprintf(headers, sizeof(headers), "Location: %s\r\n",
		       desk->location[0] ? desk->location
					 : "/v2/acme/tool/blobs/uploads/1?s=a%3Db");
	switch (desk_letter(request)) {
	case 'H':
		standin_answer(request, whole && desk->step < 0 ? "200 OK" : "404 No", "", STR(""));
		break;
	case 'P':
		buf_clear(&desk->got);
		standin_answer(request, "202 Accepted", headers, STR(""));
		break;
	case 'C':
		desk_take(desk, request, SIZE_MAX);
		/* A range that is wrong, as some send it. */
		(void)strncat(headers, "Range: 0-0\r\n", sizeof(headers) - strlen(headers) - 1);
		standin_answer(request, "202 Accepted", headers, STR(""));
		break;
	case 'U':
		desk_take(desk, request, SIZE_MAX);
		whole = str_equal(buf_str(&desk->got), buf_str(&desk->bytes)) &&
			strstr(request->target, "digest=sha256%3");
		standin_answer(request, whole ? "201 Created" : "400 Bad", "", STR(""));
		break;
	default:
		standin_answer(request, "404 Not Found", "", STR(""));
	}
}

static void desk_serve(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;
	size_t len = strlen(desk->asked);

	assert_true(len + 1 < sizeof(desk->asked));
	desk->asked[len] = desk_letter(request);
	desk->answered = false;
	if (desk->fault)
		desk->fault(ctx, request);
	if (!desk->answered)
		desk_registry(desk, request);
}

void desk_fill(struct desk *desk, size_t size)
{
	struct err err = {0};
	char piece[1000];

	desk->bytes = BUF_INIT(DESK_BYTES_MAX);
	for (size_t i = 0; i < size / sizeof(piece); i++) {
		for (size_t j = 0; j < sizeof(piece); j++)
			piece[j] = (char)(i * 7 + j * 13 + i / 251);
		check_ok(buf_add(&desk->bytes, (struct str){piece, sizeof(piece)}, &err), &err);
	}
	check_ok(blob_put(desk->fixture->store, buf_str(&desk->bytes), &desk->digest, &err), &err);
}

int desk_new(void **state)
{
	struct desk *desk = calloc(1, sizeof(*desk));
	struct err err = {0};
	void *fixture = NULL;

	assert_non_null(desk);
	assert_int_equal(store_fixture_open(&fixture), 0);
	desk->fixture = fixture;
	desk->got = BUF_INIT(DESK_BYTES_MAX);
	desk->session = BUF_INIT(HTTP_URL_MAX);
	check_ok(cancel_init(&desk->cancel, &err), &err);
	standin_start(&desk->server, desk_serve, desk);
	standin_start(&desk->other, desk_serve, desk);
	(void)snprintf(desk->host, sizeof(desk->host), "127.0.0.1:%u", desk->server.port);
	desk->spec = (struct remote_spec){.host = str_of(desk->host),
					  .path = STR("acme/tool"),
					  .push = true,
					  .tries = 4,
					  .retry_base_ms = 1,
					  .cancel = &desk->cancel};
	*state = desk;
	return 0;
}

int desk_free(void **state)
{
	struct desk *desk = *state;
	void *fixture = desk->fixture;

	http_close(desk->http);
	remote_close(desk->remote);
	standin_stop(&desk->server);
	standin_stop(&desk->other);
	cancel_done(&desk->cancel);
	secret_done(&desk->password);
	buf_done(&desk->bytes);
	buf_done(&desk->got);
	buf_done(&desk->session);
	free(desk);
	return store_fixture_close(&fixture);
}

void desk_connect(struct desk *desk)
{
	struct err err = {0};

	if (desk->remote)
		return;
	check_ok(remote_open(&desk->spec, &desk->remote, &err), &err);
	check_ok(remote_connect(desk->remote, &desk->http, &err), &err);
}

int desk_send(struct desk *desk, standin_fn *fault, struct err *err)
{
	struct upload_spec upload = {.store = desk->fixture->store};

	if (desk->bytes.len == 0)
		desk_fill(desk, DESK_BYTES);
	desk_connect(desk);
	desk->fault = fault;
	memset(desk->asked, 0, sizeof(desk->asked));
	buf_clear(&desk->got);
	desk->step = 0;
	upload.digest = desk->digest;
	upload.size = desk->bytes.len;
	upload.session = buf_str(&desk->session);
	return upload_blob(desk->remote, desk->http, &upload, err);
}

void desk_check_sent(const struct desk *desk, const char *asked)
{
	assert_string_equal(desk->asked, asked);
	assert_int_equal(desk->got.len, desk->bytes.len);
	assert_memory_equal(desk->got.ptr, desk->bytes.ptr, desk->bytes.len);
}

void desk_answer(struct desk *desk, const struct standin_request *request, const char *status,
		 const char *headers)
{
	desk->answered = true;
	standin_answer(request, status, headers, STR(""));
}

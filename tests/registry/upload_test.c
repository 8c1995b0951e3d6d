/* SPDX-License-Identifier: Apache-2.0 */
/* What registries do to those who send: a stand-in does it, and notes what it was asked. */
#include "layers/blob.h"
#include "registry/manifest.h"
#include "registry/push.h"
#include "tests/registry/stock.h"
#include "tests/registry/upload_desk.h"

#include <stdio.h>

static void a_blob_goes_up_in_one_piece(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_ok(desk_send(desk, NULL, &err), &err);
	desk_check_sent(desk, "PU");
}

static void an_empty_blob_goes_up(void **state)
{
	struct desk *desk = *state;
	const struct upload_spec upload = {.store = desk->fixture->store};
	struct upload_spec spec = upload;
	struct err err = {0};

	check_ok(blob_put(desk->fixture->store, STR(""), &spec.digest, &err), &err);
	desk_connect(desk);
	check_ok(upload_blob(desk->remote, desk->http, &spec, &err), &err);
	assert_string_equal(desk->asked, "PU");
}

static void wants_a_sha512(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;
	char letter = desk_letter(request);
	bool said = strstr(request->target,
			   letter == 'P' ? "/uploads/?digest-algorithm=sha512" : "digest=sha512%3");

	if (!said)
		desk_answer(desk, request, "400 Bad", "");
	else if (letter == 'U')
		desk_answer(desk, request, "201 Created", "");
}

/* A registry that hashes what comes has to know by what. */
static void a_sha512_is_said_when_its_upload_starts(void **state)
{
	struct desk *desk = *state;
	struct upload_spec upload = {.store = desk->fixture->store, .size = 5};
	struct digest id;
	struct err err = {0};

	upload.digest = stock_digest(STR("hello"), DIGEST_SHA512);
	check_ok(blob_put_as(upload.store, STR("hello"), &upload.digest, &id, &err), &err);
	desk->fault = wants_a_sha512;
	desk_connect(desk);
	check_ok(upload_blob(desk->remote, desk->http, &upload, &err), &err);
	assert_string_equal(desk->asked, "PU");
}

/* The last has lost its port behind a proxy. */
static void locations_are_understood_as_they_come(void **state)
{
	struct desk *desk = *state;
	const struct {
		const char *before;
		unsigned port;
		const char *after;
	} ways[] = {
		{"/up/1", 0, ""},
		{"http://127.0.0.1:", desk->server.port, "/up/1?_state=x"},
		{"//127.0.0.1:", desk->server.port, "/up/1"},
		{"127.0.0.1:", desk->server.port, "/up/1"},
		{"http://127.0.0.1/up/1", 0, ""},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char port[16] = "";
		struct err err = {0};

		if (ways[i].port)
			(void)snprintf(port, sizeof(port), "%u", ways[i].port);
		(void)snprintf(desk->location, sizeof(desk->location), "%s%s%s", ways[i].before,
			       port, ways[i].after);
		check_ok(desk_send(desk, NULL, &err), &err);
		desk_check_sent(desk, "PU");
	}
	assert_int_equal(atomic_load(&desk->other.requests), 0);
}

/* The registry wants a password; the other host must not see it. */
static void wants_a_password(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;
	bool known = strstr(request->text, "Authorization: Basic ") != NULL;

	if (request->server == &desk->other)
		desk->leaked = desk->leaked || known;
	else if (!known)
		desk_answer(desk, request, "401 Who", "WWW-Authenticate: Basic realm=x\r\n");
}

static void an_upload_elsewhere_carries_no_password(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_ok(secret_put(&desk->password, STR("secret"), &err), &err);
	desk->spec.user = STR("me");
	desk->spec.password = &desk->password;
	(void)snprintf(desk->location, sizeof(desk->location), "http://127.0.0.1:%u/up",
		       desk->other.port);
	check_ok(desk_send(desk, wants_a_password, &err), &err);
	desk_check_sent(desk, "PPU");
	assert_int_equal(atomic_load(&desk->other.requests), 1);
	assert_false(desk->leaked);
}

static void no_location(void *ctx, const struct standin_request *request)
{
	desk_answer(ctx, request, "202 Accepted", "");
}

static void an_upload_without_a_place_is_an_error(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_err(desk_send(desk, no_location, &err), &err, ERR_REMOTE);
	assert_non_null(strstr(err.text, "does not say where to upload"));
}

static void refuses_mounts(void *ctx, const struct standin_request *request)
{
	static const char *const statuses[] = {"401 Who", "403 No", "404 Where", "500 Oops",
					       "202 Accepted"};
	struct desk *desk = ctx;

	if (desk_letter(request) == 'M')
		desk_answer(desk, request, statuses[desk->step], "Location: /up/session\r\n");
}

static void a_mount_that_fails_is_no_failure(void **state)
{
	struct desk *desk = *state;

	desk_fill(desk, DESK_BYTES);
	desk_connect(desk);
	desk->fault = refuses_mounts;
	for (desk->step = 0; desk->step < 5; desk->step++) {
		struct err err = {0};

		assert_int_equal(upload_mount(desk->remote, desk->http, &desk->digest,
					      STR("library/debian"), &desk->session, &err),
				 0);
	}
	assert_string_equal(desk->asked, "MMMMM");
}

/* The session that a mount became, which is known the first time. */
static void loses_the_session(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk->step == 0 && desk_letter(request) == 'U') {
		desk->step++;
		desk_answer(desk, request, "404 Where", "");
	}
}

static void a_mount_that_becomes_a_session_is_used(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	desk_fill(desk, DESK_BYTES);
	desk_connect(desk);
	desk->fault = refuses_mounts;
	desk->step = 4;
	assert_int_equal(upload_mount(desk->remote, desk->http, &desk->digest,
				      STR("library/debian"), &desk->session, &err),
			 0);
	check_ok(desk_send(desk, NULL, &err), &err);
	desk_check_sent(desk, "U");
	check_ok(desk_send(desk, loses_the_session, &err), &err);
	desk_check_sent(desk, "UHPU");
}

/* Tokens for this repository alone; a mount wants one for two. */
static void tokens_for_one(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;
	char headers[256];

	if (desk_letter(request) == 'T') {
		bool two = strstr(request->target, "other") != NULL;

		desk->answered = true;
		standin_answer(request, two ? "403 No" : "200 OK", "",
			       STR("{\"token\":\"sesame\"}"));
		return;
	}
	if (strstr(request->text, "Bearer sesame") && desk_letter(request) != 'M')
		return;
	(void)snprintf(headers, sizeof(headers),
		       "WWW-Authenticate: Bearer realm=\"/token\","
		       "scope=\"repository:acme/tool:pull,push%s\"\r\n",
		       desk_letter(request) == 'M' ? " repository:other:pull" : "");
	desk_answer(desk, request, "401 Who", headers);
}

static void a_token_that_a_mount_is_refused_is_not_asked_for_again(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_ok(desk_send(desk, tokens_for_one, &err), &err);
	desk_check_sent(desk, "PTPU");
	memset(desk->asked, 0, sizeof(desk->asked));
	assert_int_equal(upload_mount(desk->remote, desk->http, &desk->digest, STR("other"),
				      &desk->session, &err),
			 0);
	assert_string_equal(desk->asked, "MT");
	check_ok(desk_send(desk, tokens_for_one, &err), &err);
	desk_check_sent(desk, "PU");
}

/* A service that gives a token for two, or none at all for more than one. */
static void tokens_for_two(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk_letter(request) == 'T') {
		bool two = strstr(request->target, "scope=repository%3Aother%3Apull") ||
			   strstr(request->target, "scope=repository%3aother%3apull");

		desk->answered = true;
		standin_answer(request, two && desk->step == 1 ? "403 No" : "200 OK", "",
			       two ? STR("{\"token\":\"both\"}") : STR("{\"token\":\"one\"}"));
		return;
	}
	if (!strstr(request->text, "Authorization: Bearer"))
		desk_answer(desk, request, "401 Who",
			    "WWW-Authenticate: Bearer realm=\"/token\","
			    "scope=\"repository:acme/tool:pull,push\"\r\n");
	else if (desk_letter(request) == 'M' && strstr(request->text, "Bearer both"))
		desk_answer(desk, request, "201 Created", "");
	else if (desk_letter(request) == 'M')
		desk_answer(desk, request, "202 Accepted", "Location: /up/session\r\n");
}

static void a_token_is_asked_for_what_is_mounted_from_too(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	desk->spec.from = STR("other");
	desk->fault = tokens_for_two;
	desk_fill(desk, DESK_BYTES);
	desk_connect(desk);
	assert_int_equal(upload_mount(desk->remote, desk->http, &desk->digest, STR("other"),
				      &desk->session, &err),
			 1);
	assert_string_equal(desk->asked, "MTM");
}

static void a_service_that_gives_none_for_both_is_asked_for_one(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	desk->spec.from = STR("other");
	desk->step = 1;
	desk->fault = tokens_for_two;
	desk_fill(desk, DESK_BYTES);
	desk_connect(desk);
	assert_int_equal(upload_mount(desk->remote, desk->http, &desk->digest, STR("other"),
				      &desk->session, &err),
			 0);
	assert_string_equal(desk->asked, "MTTM");
}

/* The first PUT is cut in the middle; the session knows how much it has. */
static void cuts_and_remembers(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk_letter(request) == 'U' && desk->step++ == 0) {
		desk_take(desk, request, DESK_HALF);
		desk->answered = true;
	} else if (desk_letter(request) == 'G') {
		desk_answer(desk, request, "204 Here", "Location: /up/2\r\nRange: 0-39999\r\n");
	}
}

static void a_broken_upload_is_continued(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_ok(desk_send(desk, cuts_and_remembers, &err), &err);
	desk_check_sent(desk, "PUHGCU");
	assert_string_equal(desk->range, "40000-99999");
}

static void cuts_and_forgets(void *ctx, const struct standin_request *request)
{
	static const char *const answers[] = {"404 What", "204 Here", "204 Here", "200 OK"};
	static const char *const ranges[] = {"", "Range: 0-0\r\n", "Range: 0-999999\r\n", ""};
	struct desk *desk = ctx;

	if (desk_letter(request) == 'U' && strlen(desk->asked) == 2) {
		desk_take(desk, request, DESK_HALF);
		desk->answered = true;
	} else if (desk_letter(request) == 'G') {
		desk_answer(desk, request, answers[desk->range[0] - '0'],
			    ranges[desk->range[0] - '0']);
	}
}

static void a_session_that_is_not_known_is_begun_anew(void **state)
{
	struct desk *desk = *state;

	for (int way = 0; way < 4; way++) {
		struct err err = {0};

		desk->range[0] = (char)('0' + way);
		check_ok(desk_send(desk, cuts_and_forgets, &err), &err);
		desk_check_sent(desk, "PUHGPU");
	}
}

static void loses_sessions(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk_letter(request) == 'U' && desk->step++ < 2)
		desk_answer(desk, request, "404 BLOB_UPLOAD_UNKNOWN", "");
}

static void a_lost_session_is_begun_anew(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_ok(desk_send(desk, loses_sessions, &err), &err);
	desk_check_sent(desk, "PUHPUHPU");
}

/* All arrived, and then the connection broke; or another was first. */
static void keeps_and_hangs_up(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk_letter(request) == 'U') {
		desk_take(desk, request, SIZE_MAX);
		desk->step = -1;
		desk->answered = true;
	}
}

static void somebody_was_first(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk_letter(request) == 'U') {
		desk_take(desk, request, SIZE_MAX);
		desk->step = -1;
		desk_answer(desk, request, "400 BLOB_UPLOAD_INVALID", "");
	}
}

static void a_blob_that_is_there_after_all_is_sent(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_ok(desk_send(desk, keeps_and_hangs_up, &err), &err);
	desk_check_sent(desk, "PUH");
	check_ok(desk_send(desk, somebody_was_first, &err), &err);
	desk_check_sent(desk, "PUH");
}

static void too_large(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk_letter(request) == 'U' && desk->step++ == 0)
		desk_answer(desk, request, "413 Too Large", "");
	if (desk_letter(request) == 'P')
		desk_answer(desk, request, "202 Accepted",
			    "Location: /up\r\nOCI-Chunk-Min-Length: 1024\r\n");
}

static void what_is_too_large_goes_in_chunks(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	desk_fill(desk, UPLOAD_CHUNK + 1000000);
	check_ok(desk_send(desk, too_large, &err), &err);
	desk_check_sent(desk, "PUHPCCU");
	assert_string_equal(desk->range, "16777216-17776999");
}

static void too_large_and_wants_large_chunks(void *ctx, const struct standin_request *request)
{
	if (desk_letter(request) == 'P')
		desk_answer(ctx, request, "202 Accepted",
			    "Location: /up\r\nOCI-Chunk-Min-Length: 17000000\r\n");
	else
		too_large(ctx, request);
}

static void chunks_are_as_large_as_the_registry_wants_them(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	desk_fill(desk, UPLOAD_CHUNK + 1000000);
	check_ok(desk_send(desk, too_large_and_wants_large_chunks, &err), &err);
	desk_check_sent(desk, "PUHPCCU");
	assert_string_equal(desk->range, "17000000-17776999");
}

/* As a proxy does; the registry behind it knows nothing of the try. */
static void hangs_up_on_what_is_large(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk_letter(request) == 'U' && desk->step++ == 0) {
		desk_take(desk, request, DESK_HALF);
		desk->answered = true;
	} else if (desk_letter(request) == 'G') {
		desk_answer(desk, request, "404 What", "");
	}
}

static void what_is_large_and_breaks_without_a_trace_goes_in_chunks(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	desk_fill(desk, UPLOAD_CHUNK + 1000000);
	check_ok(desk_send(desk, hangs_up_on_what_is_large, &err), &err);
	desk_check_sent(desk, "PUHGPCCU");
}

static void always_too_large(void *ctx, const struct standin_request *request)
{
	if (desk_letter(request) == 'U')
		desk_answer(ctx, request, "413 Too Large", "");
}

static void what_is_small_and_too_large_is_refused(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_err(desk_send(desk, always_too_large, &err), &err, ERR_REMOTE);
	assert_non_null(strstr(err.text, "takes nothing as large"));
	assert_string_equal(desk->asked, "PUH");
}

static void busy_once(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk->step++ == 0)
		desk_answer(desk, request, "429 Too Many", "");
}

static void a_registry_that_is_busy_is_asked_again(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_ok(desk_send(desk, busy_once, &err), &err);
	desk_check_sent(desk, "PHPU");
}

/* The token of the POST is worth nothing any more when the PUT comes. */
static void tokens_expire(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;
	char text[64];

	if (desk_letter(request) == 'T') {
		(void)snprintf(text, sizeof(text), "{\"token\":\"number%d\"}", ++desk->step);
		desk->answered = true;
		standin_answer(request, "200 OK", "", str_of(text));
		return;
	}
	(void)snprintf(text, sizeof(text), "Bearer number%d", desk_letter(request) == 'U' ? 2 : 1);
	if (!strstr(request->text, text))
		desk_answer(desk, request, "401 Who",
			    "WWW-Authenticate: Bearer realm=\"/token\"\r\n");
}

static void a_token_that_expires_in_the_middle_is_renewed(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_ok(desk_send(desk, tokens_expire, &err), &err);
	desk_check_sent(desk, "PTPUTU");
}

static void takes_and_is_silent(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk_letter(request) != 'U')
		return;
	desk->answered = true;
	if (desk->step == 1)
		cancel_raise(&desk->cancel);
	standin_await_goodbye(request);
}

static void a_registry_that_says_nothing_is_given_up(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	desk_fill(desk, UPLOAD_CHUNK); /* more than the kernel takes for it */
	desk->spec.stall_ms = 250;
	desk->spec.tries = 2; /* on a slow machine the POST may take that long, too */
	check_err(desk_send(desk, takes_and_is_silent, &err), &err, ERR_TIMEOUT);
	standin_stop(&desk->server);
	assert_non_null(strstr(desk->asked, "PU"));
}

static void cancels(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	desk->step = 1;
	takes_and_is_silent(ctx, request);
}

static void a_cancel_ends_an_upload_at_once(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_err(desk_send(desk, cancels, &err), &err, ERR_CANCELLED);
	assert_string_equal(desk->asked, "PU");
}

/* A manifest whose one layer its maker keeps, for a registry that takes it. */
static void takes_documents(void *ctx, const struct standin_request *request)
{
	struct desk *desk = ctx;

	if (desk_letter(request) == 'D') {
		desk->step = standin_asked(request, "Content-Type: " MEDIA_OCI_MANIFEST "\r\n");
		desk_answer(desk, request, "201 Created", "");
	}
	if (desk_letter(request) == 'U')
		desk_answer(desk, request, "201 Created", "");
}

static int push_manifest(struct desk *desk, standin_fn *fault, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct reference reference;
	struct push_spec spec = {.reference = &reference, .cancel = &desk->cancel};
	struct store *store = desk->fixture->store;
	struct digest config;
	char name[DIGEST_TEXT_MAX];
	struct digest digest;

	desk->fault = fault;
	(void)snprintf(desk->location, sizeof(desk->location), "%s/acme/tool:1.0", desk->host);
	check_ok(reference_parse(str_of(desk->location), &reference, err), err);
	desk->location[0] = '\0';
	check_ok(blob_put(store, STR("{}"), &config, err), err);
	check_ok(buf_addf(&text, err,
			  "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"config\":{\"mediaType\":\"application/vnd.oci.empty.v1+json\","
			  "\"digest\":\"%s\",\"size\":2},\"layers\":[{\"mediaType\":"
			  "\"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip\","
			  "\"digest\":\"sha256:%064d\",\"size\":5}]}",
			  digest_format(&config, name), 1),
		 err);
	check_ok(blob_put(store, buf_str(&text), &spec.manifest, err), err);
	return push_image(store, &spec, &digest, err);
}

static void layers_that_their_maker_keeps_are_not_sent(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_ok(push_manifest(desk, takes_documents, &err), &err);
	assert_string_equal(desk->asked, "hHPUD");
	assert_int_equal(desk->step, 1);
}

static void keeps_another(void *ctx, const struct standin_request *request)
{
	if (desk_letter(request) == 'D')
		desk_answer(ctx, request, "201 Created",
			    "Docker-Content-Digest: sha256:"
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\n");
	else
		takes_documents(ctx, request);
}

static void refuses_documents(void *ctx, const struct standin_request *request)
{
	if (desk_letter(request) == 'D')
		desk_answer(ctx, request, "413 Too Large", "");
	else
		takes_documents(ctx, request);
}

static void a_manifest_that_is_not_kept_as_it_is_fails(void **state)
{
	struct desk *desk = *state;
	struct err err = {0};

	check_err(push_manifest(desk, keeps_another, &err), &err, ERR_REMOTE);
	assert_non_null(strstr(err.text, "another manifest"));
	check_err(push_manifest(desk, refuses_documents, &err), &err, ERR_REMOTE);
	assert_non_null(
		strstr(err.text, "acme/tool:1.0: manifest: the registry takes nothing as large"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_blob_goes_up_in_one_piece),
		TEST(an_empty_blob_goes_up),
		TEST(a_sha512_is_said_when_its_upload_starts),
		TEST(locations_are_understood_as_they_come),
		TEST(an_upload_elsewhere_carries_no_password),
		TEST(an_upload_without_a_place_is_an_error),
		TEST(a_mount_that_fails_is_no_failure),
		TEST(a_mount_that_becomes_a_session_is_used),
		TEST(a_token_that_a_mount_is_refused_is_not_asked_for_again),
		TEST(a_token_is_asked_for_what_is_mounted_from_too),
		TEST(a_service_that_gives_none_for_both_is_asked_for_one),
		TEST(a_broken_upload_is_continued),
		TEST(a_session_that_is_not_known_is_begun_anew),
		TEST(a_lost_session_is_begun_anew),
		TEST(a_blob_that_is_there_after_all_is_sent),
		TEST(what_is_too_large_goes_in_chunks),
		TEST(chunks_are_as_large_as_the_registry_wants_them),
		TEST(what_is_large_and_breaks_without_a_trace_goes_in_chunks),
		TEST(what_is_small_and_too_large_is_refused),
		TEST(a_registry_that_is_busy_is_asked_again),
		TEST(a_token_that_expires_in_the_middle_is_renewed),
		TEST(a_registry_that_says_nothing_is_given_up),
		TEST(a_cancel_ends_an_upload_at_once),
		TEST(layers_that_their_maker_keeps_are_not_sent),
		TEST(a_manifest_that_is_not_kept_as_it_is_fails),
	};

	return cmocka_run_group_tests_name("registry/upload", tests, NULL, NULL);
}

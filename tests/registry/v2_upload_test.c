/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs that are sent in all the ways that there are, named by sha256 and by sha512. */
#include "layers/blob.h"
#include "registry/repository.h"
#include "tests/layers/collecting.h"
#include "tests/registry/v2_ask.h"

#define START "/v2/tools/app/blobs/uploads/"
#define TEXT(s) ((struct str){(s), strlen(s)})

struct desk {
	struct store_fixture *fixture;
	struct v2_asker asker;
	char location[256]; /* of the session */
	char url[1024];
};

static const enum digest_algorithm algorithms[] = {DIGEST_SHA256, DIGEST_SHA512};
#define EACH_ALGORITHM(i)                                 \
	size_t i = 0;                                     \
	(i) < sizeof(algorithms) / sizeof(algorithms[0]); \
	(i)++

static int desk_open(void **state)
{
	struct desk *desk = calloc(1, sizeof(*desk));
	struct uploads_options options = {0};
	void *fixture;
	struct err err = {0};

	assert_non_null(desk);
	if (store_fixture_open(&fixture) != 0)
		return -1;
	desk->fixture = fixture;
	options.store = desk->asker.v2.store = desk->fixture->store;
	check_ok(uploads_open(&options, &desk->asker.v2.uploads, &err), &err);
	*state = desk;
	return 0;
}

static int desk_close(void **state)
{
	struct desk *desk = *state;
	void *fixture = desk->fixture;

	v2_ask_done(&desk->asker);
	uploads_close(desk->asker.v2.uploads);
	free(desk);
	return store_fixture_close(&fixture);
}

static struct digest digest_by(enum digest_algorithm algorithm, struct str bytes)
{
	AUTO(hasher) struct hasher hasher = {0};
	struct digest digest;

	hasher_init_as(&hasher, algorithm);
	hasher_add(&hasher, bytes);
	hasher_final(&hasher, &digest);
	return digest;
}

static unsigned start(struct desk *desk)
{
	unsigned status = v2_ask(&desk->asker, HTTP_POST, START);

	(void)snprintf(desk->location, sizeof(desk->location), "%s",
		       v2_said(&desk->asker, "Location"));
	return status;
}

/* "LOCATION?digest=D" */
static const char *with_digest(struct desk *desk, const char *location, const struct digest *digest)
{
	char text[DIGEST_TEXT_MAX];

	(void)snprintf(desk->url, sizeof(desk->url), "%s?digest=%s", location,
		       digest_format(digest, text));
	return desk->url;
}

static unsigned patch(struct desk *desk, const char *headers, const char *text)
{
	desk->asker.headers = headers;
	desk->asker.body = TEXT(text);
	return v2_ask(&desk->asker, HTTP_PATCH, desk->location);
}

static unsigned put(struct desk *desk, const struct digest *digest, const char *headers,
		    const char *text)
{
	desk->asker.headers = headers;
	desk->asker.body = TEXT(text);
	return v2_ask(&desk->asker, HTTP_PUT, with_digest(desk, desk->location, digest));
}

static unsigned ask_status(struct desk *desk)
{
	return v2_ask(&desk->asker, HTTP_GET, desk->location);
}

static bool has_record(struct desk *desk, struct str repository, const struct digest *digest)
{
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item;
	struct err err = {0};
	int found;

	check_ok(meta_begin(desk->fixture->store, META_READ, &meta, &err), &err);
	found = repository_find(meta, repository, REPOSITORY_BLOB, digest, &item, &err);
	check_ok(found, &err);
	return found == 1;
}

/* The last answer says that these bytes are a blob of tools/app, and they are. */
static void check_kept(struct desk *desk, const struct digest *digest, struct str bytes)
{
	auto_buf struct buf back = BUF_INIT(16 << 20);
	char text[DIGEST_TEXT_MAX];
	char place[512];
	struct err err = {0};

	assert_int_equal(desk->asker.said.status, 201);
	assert_string_equal(v2_said(&desk->asker, "Docker-Content-Digest"),
			    digest_format(digest, text));
	(void)snprintf(place, sizeof(place), "/v2/tools/app/blobs/%s", text);
	assert_string_equal(v2_said(&desk->asker, "Location"), place);
	assert_true(has_record(desk, STR("tools/app"), digest));
	check_ok(blob_read_all(desk->fixture->store, digest, &back, &err), &err);
	assert_true(str_equal(buf_str(&back), bytes));
}

static void check_no_blob(struct desk *desk, const struct digest *digest)
{
	struct blob_info info;
	struct err err = {0};

	assert_false(has_record(desk, STR("tools/app"), digest));
	assert_int_equal(blob_find(desk->fixture->store, digest, &info, &err), 0);
}

static void a_blob_comes_in_one_post(void **state)
{
	struct desk *desk = *state;

	for (EACH_ALGORITHM(i)) {
		struct digest digest = digest_by(algorithms[i], STR("all of it"));

		desk->asker.body = STR("all of it");
		(void)v2_ask(&desk->asker, HTTP_POST, with_digest(desk, START, &digest));
		check_kept(desk, &digest, STR("all of it"));
	}
}

static void a_blob_comes_in_one_put(void **state)
{
	struct desk *desk = *state;

	for (EACH_ALGORITHM(i)) {
		struct digest digest = digest_by(algorithms[i], STR("put"));

		assert_int_equal(start(desk), 202);
		assert_true(str_starts(TEXT(desk->location), STR(START)));
		assert_string_equal(v2_said(&desk->asker, "Range"), "0-0");
		assert_string_equal(v2_said(&desk->asker, "Docker-Upload-UUID"),
				    desk->location + strlen(START));
		(void)put(desk, &digest, NULL, "put");
		check_kept(desk, &digest, STR("put"));
		assert_int_equal(ask_status(desk), 404);
	}
}

/* Some clients know the header from elsewhere. */
static void a_blob_comes_in_chunks_the_last_with_the_put(void **state)
{
	struct desk *desk = *state;

	for (EACH_ALGORITHM(i)) {
		struct digest digest = digest_by(algorithms[i], STR("onetwothree"));

		assert_int_equal(start(desk), 202);
		assert_string_equal(v2_said(&desk->asker, "OCI-Chunk-Min-Length"), "");
		assert_int_equal(patch(desk, "Content-Range:0-2\n", "one"), 202);
		assert_string_equal(v2_said(&desk->asker, "Range"), "0-2");
		assert_string_equal(v2_said(&desk->asker, "Location"), desk->location);
		assert_int_equal(patch(desk, "Content-Range:bytes 3-5/11\n", "two"), 202);
		assert_string_equal(v2_said(&desk->asker, "Range"), "0-5");
		assert_int_equal(ask_status(desk), 204);
		assert_string_equal(v2_said(&desk->asker, "Range"), "0-5");
		assert_string_equal(v2_said(&desk->asker, "Location"), desk->location);
		(void)put(desk, &digest, "Content-Range:6-10\n", "three");
		check_kept(desk, &digest, STR("onetwothree"));
	}
}

static void a_blob_streams_without_ranges_or_length(void **state)
{
	struct desk *desk = *state;
	auto_free char *bytes = malloc(3 << 20);
	struct str all = {bytes, 3 << 20};

	assert_non_null(bytes);
	for (size_t i = 0; i < all.len; i++)
		bytes[i] = (char)(i * 31 >> 7);
	for (EACH_ALGORITHM(i)) {
		struct digest digest = digest_by(algorithms[i], all);

		assert_int_equal(start(desk), 202);
		desk->asker.body = all;
		desk->asker.chunked = true;
		assert_int_equal(v2_ask(&desk->asker, HTTP_PATCH, desk->location), 202);
		assert_string_equal(v2_said(&desk->asker, "Range"), "0-3145727");
		(void)put(desk, &digest, NULL, "");
		check_kept(desk, &digest, all);
	}
}

static void what_is_out_of_order_is_416_and_not_added(void **state)
{
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA256, STR("abcdef"));

	assert_int_equal(start(desk), 202);
	assert_int_equal(patch(desk, "Content-Range:3-5\n", "def"), 416);
	assert_string_equal(v2_said(&desk->asker, "Range"), "0-0");
	assert_string_equal(v2_said(&desk->asker, "Location"), desk->location);
	assert_true(v2_said_code(&desk->asker, "RANGE_INVALID"));
	assert_int_equal(patch(desk, "Content-Range:0-2\n", "abc"), 202);
	assert_int_equal(patch(desk, "Content-Range:0-2\n", "abc"), 416);
	assert_string_equal(v2_said(&desk->asker, "Range"), "0-2");
	assert_int_equal(put(desk, &digest, "Content-Range:4-5\n", "ef"), 416);
	assert_string_equal(v2_said(&desk->asker, "Range"), "0-2");
	assert_int_equal(put(desk, &digest, "Content-Range:0-5\n", "abcdef"), 416);
	assert_int_equal(ask_status(desk), 204);
	assert_string_equal(v2_said(&desk->asker, "Range"), "0-2");
	(void)put(desk, &digest, "Content-Range:3-5\n", "def");
	check_kept(desk, &digest, STR("abcdef"));
	desk->asker.headers = "Content-Range:1-3\n";
	desk->asker.body = STR("bcd");
	assert_int_equal(v2_ask(&desk->asker, HTTP_POST, with_digest(desk, START, &digest)), 416);
	assert_int_equal(start(desk), 202);
	assert_int_equal(put(desk, &digest, "Content-Range:1-6\n", "abcdef"), 416);
}

/* All that comes before the digest, in each of the five ways. */
static void send_wrongly(struct desk *desk, int way, const struct digest *digest)
{
	if (way > 0)
		assert_int_equal(start(desk), 202);
	switch (way) {
	case 0:
		desk->asker.body = STR("wrong");
		(void)v2_ask(&desk->asker, HTTP_POST, with_digest(desk, START, digest));
		break;
	case 1:
		(void)put(desk, digest, NULL, "wrong");
		break;
	case 2:
		assert_int_equal(patch(desk, "Content-Range:0-4\n", "wrong"), 202);
		(void)put(desk, digest, NULL, "");
		break;
	case 3:
		desk->asker.chunked = true;
		assert_int_equal(patch(desk, NULL, "wrong"), 202);
		(void)put(desk, digest, NULL, "");
		break;
	case 4:
		assert_int_equal(patch(desk, "Content-Range:0-2\n", "wro"), 202);
		(void)put(desk, digest, "Content-Range:3-4\n", "ng");
		break;
	default:
		fail();
	}
}

static void a_wrong_digest_keeps_nothing_in_any_form(void **state)
{
	struct desk *desk = *state;

	for (EACH_ALGORITHM(i)) {
		struct digest expected = digest_by(algorithms[i], STR("right"));
		struct digest sent = digest_by(algorithms[i], STR("wrong"));
		struct digest plain = digest_by(DIGEST_SHA256, STR("wrong"));

		for (int way = 0; way < 5; way++) {
			send_wrongly(desk, way, &expected);
			assert_int_equal(desk->asker.said.status, 400);
			assert_true(v2_said_code(&desk->asker, "DIGEST_INVALID"));
			check_no_blob(desk, &expected);
			check_no_blob(desk, &sent);
			check_no_blob(desk, &plain);
			assert_true(way == 0 || ask_status(desk) == 404);
		}
	}
	assert_int_equal(uploads_load(desk->asker.v2.uploads).sessions, 0);
	assert_int_equal(uploads_load(desk->asker.v2.uploads).bytes, 0);
}

static void a_digest_that_is_none_leaves_the_session(void **state)
{
	static const char *const wrong[] = {
		"",
		"?digest=",
		"?digest=sha256",
		"?digest=sha256:xyz",
		"?digest=sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
		"?digest=sha384:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"?digest=sha512:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"?digest=md5:d41d8cd98f00b204e9800998ecf8427e",
	};
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA256, STR("text"));

	assert_int_equal(start(desk), 202);
	assert_int_equal(patch(desk, NULL, "text"), 202);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(desk->url, sizeof(desk->url), "%s%s", desk->location, wrong[i]);
		assert_int_equal(v2_ask(&desk->asker, HTTP_PUT, desk->url), 400);
		assert_true(v2_said_code(&desk->asker, "DIGEST_INVALID"));
		if (i == 0)
			continue;
		(void)snprintf(desk->url, sizeof(desk->url), START "%s", wrong[i]);
		desk->asker.body = STR("text");
		assert_int_equal(v2_ask(&desk->asker, HTTP_POST, desk->url), 400);
	}
	(void)put(desk, &digest, NULL, "");
	check_kept(desk, &digest, STR("text"));
}

static void an_algorithm_is_named_beforehand_or_not(void **state)
{
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA512, STR("long"));

	assert_int_equal(v2_ask(&desk->asker, HTTP_POST, START "?digest-algorithm=md5"), 400);
	assert_int_equal(v2_ask(&desk->asker, HTTP_POST, START "?digest-algorithm=sha256"), 202);
	assert_int_equal(v2_ask(&desk->asker, HTTP_POST, START "?digest-algorithm=sha512"), 202);
	(void)snprintf(desk->location, sizeof(desk->location), "%s",
		       v2_said(&desk->asker, "Location"));
	assert_int_equal(patch(desk, NULL, "long"), 202);
	(void)put(desk, &digest, NULL, "");
	check_kept(desk, &digest, STR("long"));
}

static void a_range_that_is_not_the_body_adds_nothing(void **state)
{
	static const struct {
		const char *range;
		bool chunked;
		const char *code;
	} wrong[] = {
		{"Content-Range:0-2\n", false, "SIZE_INVALID"},
		{"Content-Range:0-9\n", false, "SIZE_INVALID"},
		{"Content-Range:0-2\n", true, "SIZE_INVALID"},
		{"Content-Range:0-9\n", true, "SIZE_INVALID"},
		{"Content-Range:3-0\n", false, "RANGE_INVALID"},
		{"Content-Range:0-\n", false, "RANGE_INVALID"},
		{"Content-Range:0-3x\n", false, "RANGE_INVALID"},
		{"Content-Range:-4\n", false, "RANGE_INVALID"},
		{"Content-Range:0-99999999999999999999\n", false, "RANGE_INVALID"},
		{"Content-Range:items 0-3\n", false, "RANGE_INVALID"},
	};
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA256, STR("text"));

	assert_int_equal(start(desk), 202);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		desk->asker.chunked = wrong[i].chunked;
		assert_int_equal(patch(desk, wrong[i].range, "text"), 400);
		assert_true(v2_said_code(&desk->asker, wrong[i].code));
		desk->asker.chunked = wrong[i].chunked;
		assert_int_equal(put(desk, &digest, wrong[i].range, "text"), 400);
	}
	assert_int_equal(ask_status(desk), 204);
	assert_string_equal(v2_said(&desk->asker, "Range"), "0-0");
	(void)put(desk, &digest, "Content-Range:0-3\n", "text");
	check_kept(desk, &digest, STR("text"));
}

static void a_client_that_vanishes_goes_on_where_it_was(void **state)
{
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA256, STR("half, whole"));

	assert_int_equal(start(desk), 202);
	desk->asker.chunked = desk->asker.vanishes = true;
	(void)patch(desk, "Content-Range:0-4\n", "half");
	assert_int_equal(ask_status(desk), 204);
	assert_string_equal(v2_said(&desk->asker, "Range"), "0-3");
	desk->asker.vanishes = true;
	(void)put(desk, &digest, NULL, ", ");
	assert_int_equal(ask_status(desk), 204);
	assert_string_equal(v2_said(&desk->asker, "Range"), "0-5");
	check_no_blob(desk, &digest);
	(void)put(desk, &digest, "Content-Range:6-10\n", "whole");
	check_kept(desk, &digest, STR("half, whole"));
}

/* What goes straight into the store has no session to stay in. */
static void a_client_that_vanishes_in_a_whole_body_leaves_no_blob(void **state)
{
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA256, STR("whole"));
	struct digest half = digest_by(DIGEST_SHA256, STR("wh"));

	desk->asker.body = STR("wh");
	desk->asker.vanishes = true;
	(void)v2_ask(&desk->asker, HTTP_POST, with_digest(desk, START, &digest));
	check_no_blob(desk, &digest);
	check_no_blob(desk, &half);
	assert_int_equal(start(desk), 202);
	desk->asker.vanishes = true;
	(void)put(desk, &digest, NULL, "wh");
	check_no_blob(desk, &half);
	assert_int_equal(ask_status(desk), 204);
	(void)put(desk, &digest, NULL, "whole");
	check_kept(desk, &digest, STR("whole"));
}

static void blobs_of_nothing_and_next_to_nothing_are_blobs(void **state)
{
	static const char *const texts[] = {"", "{}"};
	struct desk *desk = *state;

	for (EACH_ALGORITHM(i)) {
		for (size_t n = 0; n < 2; n++) {
			struct digest digest = digest_by(algorithms[i], TEXT(texts[n]));

			desk->asker.body = TEXT(texts[n]);
			(void)v2_ask(&desk->asker, HTTP_POST, with_digest(desk, START, &digest));
			check_kept(desk, &digest, TEXT(texts[n]));
			assert_int_equal(start(desk), 202);
			(void)put(desk, &digest, NULL, texts[n]);
			check_kept(desk, &digest, TEXT(texts[n]));
			assert_int_equal(start(desk), 202);
			assert_int_equal(patch(desk, NULL, texts[n]), 202);
			(void)put(desk, &digest, NULL, "");
			check_kept(desk, &digest, TEXT(texts[n]));
		}
	}
}

static void two_sessions_may_bring_the_same_blob(void **state)
{
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA256, STR("same"));
	char first[sizeof(desk->location)];

	assert_int_equal(start(desk), 202);
	assert_int_equal(patch(desk, NULL, "same"), 202);
	memcpy(first, desk->location, sizeof(first));
	assert_int_equal(start(desk), 202);
	assert_int_equal(patch(desk, NULL, "same"), 202);
	(void)put(desk, &digest, NULL, "");
	check_kept(desk, &digest, STR("same"));
	memcpy(desk->location, first, sizeof(first));
	(void)put(desk, &digest, NULL, "");
	check_kept(desk, &digest, STR("same"));
}

static void a_session_is_nothing_elsewhere_or_after_its_end(void **state)
{
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA256, STR("text"));
	char elsewhere[512];

	assert_int_equal(start(desk), 202);
	(void)snprintf(elsewhere, sizeof(elsewhere), "/v2/tools/other/blobs/uploads/%s",
		       desk->location + strlen(START));
	assert_int_equal(v2_ask(&desk->asker, HTTP_GET, elsewhere), 404);
	assert_int_equal(v2_ask(&desk->asker, HTTP_PATCH, elsewhere), 404);
	assert_int_equal(v2_ask(&desk->asker, HTTP_DELETE, elsewhere), 404);
	assert_true(v2_said_code(&desk->asker, "BLOB_UPLOAD_UNKNOWN"));
	assert_int_equal(v2_ask(&desk->asker, HTTP_PUT, with_digest(desk, elsewhere, &digest)),
			 404);
	assert_int_equal(v2_ask(&desk->asker, HTTP_DELETE, desk->location), 204);
	assert_int_equal(v2_ask(&desk->asker, HTTP_DELETE, desk->location), 404);
	assert_int_equal(ask_status(desk), 404);
	assert_int_equal(patch(desk, NULL, "text"), 404);
	assert_int_equal(put(desk, &digest, NULL, "text"), 404);
	check_no_blob(desk, &digest);
}

static void a_session_that_is_written_is_refused_to_others(void **state)
{
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA256, STR("text"));
	struct uploads_session *held;
	struct err err = {0};

	assert_int_equal(start(desk), 202);
	assert_int_equal(uploads_take(desk->asker.v2.uploads, STR("tools/app"),
				      TEXT(desk->location + strlen(START)), &held, &err),
			 1);
	assert_int_equal(patch(desk, NULL, "text"), 409);
	assert_true(v2_said_code(&desk->asker, "BLOB_UPLOAD_INVALID"));
	assert_int_equal(put(desk, &digest, NULL, "text"), 409);
	assert_int_equal(v2_ask(&desk->asker, HTTP_DELETE, desk->location), 409);
	assert_int_equal(ask_status(desk), 204);
	uploads_release(held);
	(void)put(desk, &digest, NULL, "text");
	check_kept(desk, &digest, STR("text"));
}

/* Where no writer is free, a body that is all there is gathered first. */
static void a_body_is_kept_while_all_writers_wait_for_their_clients(void **state)
{
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA512, STR("text"));

	while (uploads_enter(desk->asker.v2.uploads, false))
		;
	desk->asker.body = STR("text");
	(void)v2_ask(&desk->asker, HTTP_POST, with_digest(desk, START, &digest));
	check_kept(desk, &digest, STR("text"));
	assert_int_equal(start(desk), 202);
	(void)put(desk, &digest, NULL, "text");
	check_kept(desk, &digest, STR("text"));
	assert_int_equal(uploads_load(desk->asker.v2.uploads).bytes, 0);
}

/* The blob as another repository has it. */
static void stock(struct desk *desk, const char *start_url, const struct digest *digest,
		  struct str bytes)
{
	desk->asker.body = bytes;
	assert_int_equal(v2_ask(&desk->asker, HTTP_POST, with_digest(desk, start_url, digest)),
			 201);
}

static unsigned mount(struct desk *desk, const struct digest *digest, const char *rest)
{
	char text[DIGEST_TEXT_MAX];

	(void)snprintf(desk->url, sizeof(desk->url), START "?mount=%s%s",
		       digest_format(digest, text), rest);
	return v2_ask(&desk->asker, HTTP_POST, desk->url);
}

static void a_blob_is_mounted_from_where_it_may_be_read(void **state)
{
	struct desk *desk = *state;

	for (EACH_ALGORITHM(i)) {
		const char *text = algorithms[i] == DIGEST_SHA256 ? "mounted" : "mounted, too";
		struct digest named = digest_by(algorithms[i], TEXT(text));
		struct digest nameless = digest_by(algorithms[i], TEXT(text + 1));

		stock(desk, "/v2/base/blobs/uploads/", &named, TEXT(text));
		stock(desk, "/v2/base/blobs/uploads/", &nameless, TEXT(text + 1));
		(void)mount(desk, &named, "&from=base");
		check_kept(desk, &named, TEXT(text));
		(void)mount(desk, &nameless, "");
		check_kept(desk, &nameless, TEXT(text + 1));
		(void)mount(desk, &named, ""); /* it is here already */
		check_kept(desk, &named, TEXT(text));
	}
	assert_int_equal(uploads_load(desk->asker.v2.uploads).sessions, 0);
}

/* A collection has read the records, and none that it read named the blob. */
static void what_is_mounted_while_it_is_collected_stays(void **state)
{
	const struct collect_options options = {.names = collect_no_names};
	struct desk *desk = *state;

	for (EACH_ALGORITHM(i)) {
		const char *text = algorithms[i] == DIGEST_SHA256 ? "nearly gone" : "as nearly";
		struct digest digest = digest_by(algorithms[i], TEXT(text));
		AUTO(collector) struct collector *collector = NULL;
		struct collect_result result;
		struct meta *meta;
		struct err err = {0};

		stock(desk, "/v2/base/blobs/uploads/", &digest, TEXT(text));
		check_ok(collect_open(desk->fixture->store, &options, &collector, &err), &err);
		check_ok(collect_mark(collector, &meta, &err), &err);
		assert_int_equal(mount(desk, &digest, "&from=base"), 201);
		check_ok(collect_sweep(collector, &result, &err), &err);
		check_kept(desk, &digest, TEXT(text));
	}
}

static void a_mount_that_cannot_be_is_an_upload(void **state)
{
	struct desk *desk = *state;
	struct digest digest = digest_by(DIGEST_SHA256, STR("hidden"));
	struct digest nowhere = digest_by(DIGEST_SHA256, STR("nowhere"));
	struct digest sha512 = digest_by(DIGEST_SHA512, STR("hidden"));

	stock(desk, "/v2/secret/app/blobs/uploads/", &digest, STR("hidden"));
	desk->asker.secret = "secret/app";
	assert_int_equal(mount(desk, &digest, "&from=secret/app"), 202);
	assert_int_equal(mount(desk, &digest, ""), 202);
	assert_int_equal(mount(desk, &digest, "&from=base"), 202);
	assert_int_equal(mount(desk, &digest, "&from=..%2f"), 202);
	assert_int_equal(mount(desk, &sha512, "&from=secret/app"), 202);
	assert_int_equal(mount(desk, &nowhere, ""), 202);
	assert_false(has_record(desk, STR("tools/app"), &digest));
	assert_int_equal(v2_ask(&desk->asker, HTTP_POST, START "?mount=sha256:x&from=base"), 202);
	(void)snprintf(desk->location, sizeof(desk->location), "%s",
		       v2_said(&desk->asker, "Location"));
	(void)put(desk, &digest, NULL, "hidden");
	check_kept(desk, &digest, STR("hidden"));
}

/* The fixture's store with a map of so many bytes. */
static void shrink(struct desk *desk, uint64_t map_bytes)
{
	struct store_options options = {.path = desk->fixture->path, .map_bytes = map_bytes};
	struct uploads_options uploads = {0};
	struct err err = {0};

	uploads_close(desk->asker.v2.uploads);
	store_close(desk->fixture->store);
	desk->fixture->store = NULL;
	check_ok(store_open(&options, &desk->fixture->store, &err), &err);
	uploads.store = desk->asker.v2.store = desk->fixture->store;
	check_ok(uploads_open(&uploads, &desk->asker.v2.uploads, &err), &err);
}

static void a_full_map_is_507_and_the_session_waits_for_a_larger_one(void **state)
{
	struct desk *desk = *state;
	auto_free char *bytes = calloc(1, 4 << 20);
	struct str all = {bytes, 4 << 20};
	struct digest small = digest_by(DIGEST_SHA256, STR("small"));
	struct digest digest;
	struct err err = {0};

	assert_non_null(bytes);
	for (size_t i = 0; i < all.len; i += 4096)
		memcpy(bytes + i, &i, sizeof(i));
	digest = digest_by(DIGEST_SHA256, all);
	stock(desk, "/v2/base/blobs/uploads/", &small, STR("small"));
	shrink(desk, 2 << 20);
	assert_int_equal(start(desk), 202);
	desk->asker.body = all;
	assert_int_equal(v2_ask(&desk->asker, HTTP_PATCH, desk->location), 202);
	assert_int_equal(put(desk, &digest, NULL, ""), 507);
	assert_non_null(strstr(buf_str(&desk->asker.said.body).ptr, "{\"errors\":["));
	check_err(vacancy_check(uploads_vacancy(desk->asker.v2.uploads), &err), &err, ERR_FULL);
	desk->asker.body = all;
	assert_int_equal(v2_ask(&desk->asker, HTTP_POST, with_digest(desk, START, &digest)), 507);
	assert_true(has_record(desk, STR("base"), &small));
	shrink(desk, STORE_FIXTURE_MAP);
	check_ok(vacancy_check(uploads_vacancy(desk->asker.v2.uploads), &err), &err);
	assert_int_equal(ask_status(desk), 204);
	assert_string_equal(v2_said(&desk->asker, "Range"), "0-4194303");
	(void)put(desk, &digest, NULL, "");
	check_kept(desk, &digest, all);
}

#define DESK_TEST(test) cmocka_unit_test_setup_teardown(test, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(a_blob_comes_in_one_post),
		DESK_TEST(a_blob_comes_in_one_put),
		DESK_TEST(a_blob_comes_in_chunks_the_last_with_the_put),
		DESK_TEST(a_blob_streams_without_ranges_or_length),
		DESK_TEST(what_is_out_of_order_is_416_and_not_added),
		DESK_TEST(a_wrong_digest_keeps_nothing_in_any_form),
		DESK_TEST(a_digest_that_is_none_leaves_the_session),
		DESK_TEST(an_algorithm_is_named_beforehand_or_not),
		DESK_TEST(a_range_that_is_not_the_body_adds_nothing),
		DESK_TEST(a_client_that_vanishes_goes_on_where_it_was),
		DESK_TEST(a_client_that_vanishes_in_a_whole_body_leaves_no_blob),
		DESK_TEST(blobs_of_nothing_and_next_to_nothing_are_blobs),
		DESK_TEST(two_sessions_may_bring_the_same_blob),
		DESK_TEST(a_session_is_nothing_elsewhere_or_after_its_end),
		DESK_TEST(a_session_that_is_written_is_refused_to_others),
		DESK_TEST(a_body_is_kept_while_all_writers_wait_for_their_clients),
		DESK_TEST(a_blob_is_mounted_from_where_it_may_be_read),
		DESK_TEST(what_is_mounted_while_it_is_collected_stays),
		DESK_TEST(a_mount_that_cannot_be_is_an_upload),
		DESK_TEST(a_full_map_is_507_and_the_session_waits_for_a_larger_one),
	};

	return cmocka_run_group_tests_name("registry/v2_upload", tests, NULL, NULL);
}

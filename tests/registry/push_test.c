/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes to Debian's docker-registry, and what comes back from it: see live_registry.h. */
#include "layers/blob.h"
#include "registry/closure.h"
#include "registry/push.h"
#include "tests/registry/live.h"

#include <fcntl.h>

/* What was told of a push. */
struct told {
	int blobs;
	int held;
	int mounted;
	int documents;
	int documents_held;
};

static void told_hear(void *ctx, const struct push_event *event)
{
	struct told *told = ctx;

	told->blobs += event->kind == PUSH_BLOB_DONE;
	told->held += event->kind == PUSH_BLOB_HELD;
	told->mounted += event->kind == PUSH_BLOB_MOUNTED;
	told->documents += event->kind == PUSH_DOCUMENT;
	told->documents_held += event->kind == PUSH_DOCUMENT_HELD;
	assert_true(event->done <= event->size);
}

/* Push the sample from its maker's store, as repository:tag of the registry. */
static int push(struct live *live, const struct push_spec *asked, const char *name,
		struct told *told, struct err *err)
{
	struct push_spec spec = *asked;
	struct reference reference;
	struct digest digest;
	char text[256];
	int result;

	*told = (struct told){0};
	(void)snprintf(text, sizeof(text), "%s/%s", live->registry.host, name);
	check_ok(reference_parse(str_of(text), &reference, err), err);
	spec.reference = &reference;
	spec.event = told_hear;
	spec.event_ctx = told;
	result = push_image(live->pulling->made->store, &spec, &digest, err);
	if (result == 0)
		assert_true(digest_equal(&digest, &spec.manifest));
	return result;
}

static void an_image_comes_back_as_it_went(void **state)
{
	struct live *live = *state;
	struct push_spec spec = {.manifest = live->pulling->image.manifest};
	struct err err = {0};
	struct told told;

	live_registry_start(&live->registry, live->dir, "", "");
	check_ok(push(live, &spec, "acme/tool:1.0", &told, &err), &err);
	assert_int_equal(told.blobs, SAMPLE_LAYERS + 1);
	assert_int_equal(told.documents, 1);
	pulling_refer(live->pulling, "%s/acme/tool:1.0", live->registry.host);
	check_ok(pulling_run(live->pulling, &err), &err);
	pulling_check_whole(live->pulling);
	assert_true(digest_equal(&live->pulling->tag.target, &live->pulling->image.manifest));
}

static void what_is_there_is_not_sent(void **state)
{
	struct live *live = *state;
	struct push_spec spec = {.manifest = live->pulling->image.manifest};
	struct err err = {0};
	struct told told;

	live_registry_start(&live->registry, live->dir, "", "");
	check_ok(push(live, &spec, "acme/tool:1.0", &told, &err), &err);
	check_ok(push(live, &spec, "acme/tool:1.0", &told, &err), &err);
	assert_int_equal(told.documents_held, 1);
	assert_int_equal(told.blobs + told.held + told.documents, 0);
	check_ok(push(live, &spec, "acme/tool:2.0", &told, &err), &err);
	assert_int_equal(told.documents, 1);
	assert_int_equal(told.blobs, 0);
	assert_int_equal(told.held, SAMPLE_LAYERS + 1);
}

static void a_password_opens_the_door(void **state)
{
	struct live *live = *state;
	struct push_spec spec = {.manifest = live->pulling->image.manifest};
	auto_secret struct secret password = {0};
	struct err err = {0};
	struct told told;

	live_start_with_password(live);
	check_err(push(live, &spec, "acme/tool:1.0", &told, &err), &err, ERR_UNAUTHORIZED);
	spec.user = STR("me");
	spec.password = &password;
	check_ok(secret_put(&password, STR("wrong"), &err), &err);
	check_err(push(live, &spec, "acme/tool:1.0", &told, &err), &err, ERR_UNAUTHORIZED);
	assert_int_equal(told.blobs, 0);
	check_ok(secret_put(&password, STR("secret"), &err), &err);
	check_ok(push(live, &spec, "acme/tool:1.0", &told, &err), &err);
	assert_int_equal(told.blobs, SAMPLE_LAYERS + 1);
}

static void a_certificate_is_trusted_only_when_named(void **state)
{
	struct live *live = *state;
	struct push_spec spec = {.manifest = live->pulling->image.manifest};
	struct err err = {0};
	struct told told;

	live_start_with_tls(live);
	check_err(push(live, &spec, "acme/tool:1.0", &told, &err), &err, ERR_REMOTE);
	assert_non_null(strstr(err.text, "certificate is not trusted"));
	spec.ca_file = live->ca;
	check_ok(push(live, &spec, "acme/tool:1.0", &told, &err), &err);
	assert_int_equal(told.blobs, SAMPLE_LAYERS + 1);
}

/* The store that pulled knows where the blobs are. */
static void blobs_of_another_repository_are_mounted(void **state)
{
	struct live *live = *state;
	struct push_spec spec = {.manifest = live->pulling->image.manifest};
	struct store *made = live->pulling->made->store;
	struct err err = {0};
	struct told told;
	int result;

	live_registry_start(&live->registry, live->dir, "", "");
	check_ok(push(live, &spec, "acme/tool:1.0", &told, &err), &err);
	pulling_refer(live->pulling, "%s/acme/tool:1.0", live->registry.host);
	check_ok(pulling_run(live->pulling, &err), &err);
	live->pulling->made->store = live->pulling->store;
	result = push(live, &spec, "other/name:1.0", &told, &err);
	live->pulling->made->store = made;
	check_ok(result, &err);
	assert_int_equal(told.mounted, SAMPLE_LAYERS + 1);
	assert_int_equal(told.blobs, 0);
}

/* An index of the sample and of a manifest that is not in the store. */
static void make_index(struct live *live, const struct digest *absent, struct digest *out)
{
	auto_buf struct buf manifest = BUF_INIT(MANIFEST_MAX);
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct store *store = live->pulling->made->store;
	char name[DIGEST_TEXT_MAX];
	char other[DIGEST_TEXT_MAX];
	struct err err = {0};

	check_ok(blob_read_all(store, &live->pulling->image.manifest, &manifest, &err), &err);
	check_ok(buf_addf(&text, &err,
			  "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX
			  "\",\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
			  "\",\"digest\":\"%s\",\"size\":%zu}%s%s%s]}",
			  digest_format(&live->pulling->image.manifest, name), manifest.len,
			  absent ? ",{\"mediaType\":\"" MEDIA_OCI_MANIFEST
				   "\",\"size\":5,\"digest\":\""
				 : "",
			  absent ? digest_format(absent, other) : "", absent ? "\"}" : ""),
		 &err);
	check_ok(blob_put(store, buf_str(&text), out, &err), &err);
}

static void an_index_takes_its_images_along(void **state)
{
	struct live *live = *state;
	struct push_spec spec = {0};
	struct err err = {0};
	struct told told;

	live_registry_start(&live->registry, live->dir, "", "");
	make_index(live, NULL, &spec.manifest);
	check_ok(push(live, &spec, "acme/tool:1.0", &told, &err), &err);
	assert_int_equal(told.blobs, SAMPLE_LAYERS + 1);
	assert_int_equal(told.documents, 2);
	pulling_refer(live->pulling, "%s/acme/tool:1.0", live->registry.host);
	check_ok(pulling_run(live->pulling, &err), &err);
	pulling_check_whole(live->pulling);
	assert_true(digest_equal(&live->pulling->tag.target, &spec.manifest));
}

static void an_index_without_its_images_is_refused(void **state)
{
	struct live *live = *state;
	struct push_spec spec = {0};
	struct digest absent;
	struct err err = {0};
	struct told told;

	live_registry_start(&live->registry, live->dir, "", "");
	digest_of(STR("absent"), &absent);
	make_index(live, &absent, &spec.manifest);
	check_err(push(live, &spec, "acme/tool:1.0", &told, &err), &err, ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "neither in the store nor in the registry"));
}

static void names_that_cannot_be_pushed_to_are_refused(void **state)
{
	struct live *live = *state;
	struct push_spec spec = {.manifest = live->pulling->image.manifest};
	struct reference reference;
	struct digest digest;
	struct err err = {0};

	live->registry.logfd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	check_ok(reference_parse(STR("oci:/tmp/x"), &reference, &err), &err);
	spec.reference = &reference;
	check_err(push_image(live->pulling->made->store, &spec, &digest, &err), &err, ERR_INVALID);
	check_ok(reference_parse(STR("127.0.0.1:1/a@sha256:"
				     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852"
				     "b855"),
				 &reference, &err),
		 &err);
	check_err(push_image(live->pulling->made->store, &spec, &digest, &err), &err, ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_image_comes_back_as_it_went),
		TEST(what_is_there_is_not_sent),
		TEST(a_password_opens_the_door),
		TEST(a_certificate_is_trusted_only_when_named),
		TEST(blobs_of_another_repository_are_mounted),
		TEST(an_index_takes_its_images_along),
		TEST(an_index_without_its_images_is_refused),
		TEST(names_that_cannot_be_pushed_to_are_refused),
	};

	if (geteuid() != 0 || !live_registry_can_run())
		return 125;
	return cmocka_run_group_tests_name("registry/push", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Images that are named by a sha512: see shelf.h. */
#include "layers/blob.h"
#include "registry/pull.h"
#include "tests/registry/shelf.h"
#include "tests/registry/stock.h"

#include <stdio.h>

/* The sha512 of a manifest, as the end of a reference: "@sha512:..". */
static void call(struct store *store, const struct digest *manifest, char out[256])
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	char name[DIGEST_TEXT_MAX];
	struct digest digest;
	struct err err = {0};

	check_ok(blob_read_all(store, manifest, &text, &err), &err);
	digest = stock_digest(buf_str(&text), DIGEST_SHA512);
	(void)snprintf(out, 256, "@%s", digest_format(&digest, name));
}

static int pull(struct shelf *shelf, const char *name, struct tag *out, struct err *err)
{
	struct reference reference;
	const struct pull_spec spec = {
		.reference = &reference, .bare = true, .cancel = &shelf->cancel};
	char text[512];

	(void)snprintf(text, sizeof(text), "%s/acme/tool%s", shelf->host, name);
	check_ok(reference_parse(str_of(text), &reference, err), err);
	return pull_image(shelf->to->store, &spec, out, err);
}

static void an_image_goes_and_comes_by_its_sha512(void **state)
{
	struct shelf *shelf = *state;
	struct push_spec spec = {0};
	struct blob_info info;
	char name[256];
	struct err err = {0};
	struct tag tag;

	shelf_make(shelf->from->store, "i/image", NULL, &spec.manifest);
	call(shelf->from->store, &spec.manifest, name);
	check_ok(shelf_send(shelf, &spec, name, &err), &err);
	assert_non_null(shelf_find(shelf, str_of(name + 1)));
	check_ok(pull(shelf, name, &tag, &err), &err);
	assert_true(digest_equal(&tag.target, &spec.manifest)); /* the store has one name for it */
	assert_int_equal(blob_find(shelf->to->store, &spec.manifest, &info, &err), 1);
}

static void bytes_of_another_sha512_are_refused(void **state)
{
	struct shelf *shelf = *state;
	struct push_spec spec = {0};
	struct digest other;
	char name[256];
	struct err err = {0};
	struct tag tag;

	shelf_make(shelf->from->store, "i/image", NULL, &spec.manifest);
	shelf_make(shelf->from->store, "o/other", NULL, &other);
	call(shelf->from->store, &spec.manifest, name);
	check_ok(shelf_send(shelf, &spec, name, &err), &err);
	shelf_find(shelf, str_of(name + 1))->text.ptr[1] = ' ';
	check_err(pull(shelf, name, &tag, &err), &err, ERR_CORRUPT);
	spec.manifest = other;
	check_err(shelf_send(shelf, &spec, name, &err), &err, ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_image_goes_and_comes_by_its_sha512),
		TEST(bytes_of_another_sha512_are_refused),
	};

	return cmocka_run_group_tests_name("registry/sha512", tests, NULL, NULL);
}

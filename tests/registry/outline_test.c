/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/outline.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A32 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define D256 "\"digest\":\"sha256:" A32 A32 "\",\"size\":7"
#define D512 "\"digest\":\"sha512:" A32 A32 A32 A32 "\",\"size\":9"
#define V2 "{\"schemaVersion\":2,"

static void parse(const char *text, struct outline *out)
{
	struct err err = {0};

	check_ok(outline_parse(str_of(text), out, &err), &err);
}

static void an_artifact_is_told_with_what_it_is_about(void **state)
{
	auto_outline struct outline outline = {0};

	(void)state;
	parse(V2 "\"mediaType\":\"" MEDIA_OCI_MANIFEST
		 "\",\"artifactType\":\"text/x-sbom\",\"config\":{\"mediaType\":\"text/y\"," D256
		 "},\"layers\":[{" D512 "}],\"subject\":{" D512
		 "},\"annotations\":{\"a\":\"b\"},\"x\":{\"y\":[1]}}",
	      &outline);
	assert_false(outline.index);
	assert_true(str_equal(outline.media_type, STR(MEDIA_OCI_MANIFEST)));
	assert_true(str_equal(outline.artifact_type, STR("text/x-sbom")));
	assert_true(outline.has_subject);
	assert_int_equal(outline.subject.digest.algorithm, DIGEST_SHA512);
	assert_int_equal(json_object_size(outline.annotations), 1);
	assert_int_equal(outline.count, 2);
	assert_int_equal(outline.items[0].what.size, 7);
	assert_int_equal(outline.items[1].what.digest.algorithm, DIGEST_SHA512);
}

static void the_type_of_the_config_stands_for_a_missing_one(void **state)
{
	auto_outline struct outline manifest = {0};
	auto_outline struct outline index = {0};

	(void)state;
	parse(V2 "\"config\":{\"mediaType\":\"text/y\"," D256 "}}", &manifest);
	assert_true(str_equal(manifest.artifact_type, STR("text/y")));
	assert_true(str_equal(outline_type(&manifest), STR(MEDIA_OCI_MANIFEST)));
	parse(V2 "\"manifests\":[]}", &index);
	assert_int_equal(index.artifact_type.len, 0);
	assert_int_equal(index.count, 0);
	assert_true(str_equal(outline_type(&index), STR(MEDIA_OCI_INDEX)));
}

static void layers_of_their_maker_alone_are_told_apart(void **state)
{
	auto_outline struct outline outline = {0};

	(void)state;
	parse(V2 "\"config\":{" D256
		 "},\"layers\":[{\"mediaType\":\"application/vnd.oci.image.layer.nondistributable."
		 "v1.tar\"," D256 "},{\"mediaType\":\"application/vnd.docker.image.rootfs.foreign."
		 "diff.tar.gzip\"," D256 "}]}",
	      &outline);
	assert_int_equal(outline.items[0].kind, OUTLINE_BLOB);
	assert_int_equal(outline.items[1].kind, OUTLINE_FOREIGN);
	assert_int_equal(outline.items[2].kind, OUTLINE_FOREIGN);
}

static void check_refused(const char *text, enum err_kind kind)
{
	struct outline outline = {.count = 42};
	struct err err = {0};

	check_err(outline_parse(str_of(text), &outline, &err), &err, kind);
	assert_int_equal(outline.count, 42);
}

static void what_is_no_manifest_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"{",
		"[]",
		"7",
		V2 "\"config\":{}}",
		V2 "\"layers\":[]}",
		V2 "\"config\":{" D256 "},\"layers\":{}}",
		V2 "\"config\":{" D256 "},\"config\":{" D256 "}}",
		V2 "\"config\":{" D256 "},\"manifests\":[]}",
		V2 "\"mediaType\":\"" MEDIA_OCI_INDEX "\",\"config\":{" D256 "}}",
		V2 "\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"manifests\":[]}",
		V2 "\"manifests\":[7]}",
		V2 "\"manifests\":[{\"digest\":\"sha256:a\",\"size\":7}]}",
		V2 "\"manifests\":[{" D256 "}],\"subject\":7}",
		V2 "\"manifests\":[{" D256 "}],\"subject\":{}}",
		V2 "\"manifests\":[],\"annotations\":{\"a\":7}}",
		V2 "\"manifests\":[{\"digest\":\"sha256:" A32 A32 "\",\"size\":-1}]}",
		V2 "\"manifests\":[{\"digest\":\"sha256:" A32 A32 "\",\"size\":1.5}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		check_refused(wrong[i], ERR_INVALID);
	check_refused("{\"schemaVersion\":1,\"fsLayers\":[]}", ERR_UNSUPPORTED);
	check_refused(V2 "\"manifests\":[{\"digest\":\"blake3:abc\",\"size\":7}]}",
		      ERR_UNSUPPORTED);
}

/* A text of `count` times a piece, between two others. */
static char *repeated(const char *head, const char *piece, size_t count, const char *tail)
{
	size_t len = strlen(piece);
	char *text = malloc(strlen(head) + count * len + strlen(tail) + 1);
	char *at;

	assert_non_null(text);
	at = stpcpy(text, head);
	for (size_t i = 0; i < count; i++)
		at = stpcpy(at, piece);
	(void)stpcpy(at, tail);
	return text;
}

static void a_bomb_of_brackets_is_not_unpacked(void **state)
{
	auto_free char *wide =
		repeated(V2 "\"manifests\":[],\"x\":[0", ",[]", OUTLINE_VALUES_MAX, "]}");
	auto_free char *deep = repeated(V2 "\"manifests\":[],\"x\":", "[", 1000, "");
	auto_free char *many =
		repeated(V2 "\"manifests\":[{" D256 "}", ",{" D256 "}", OUTLINE_ITEMS_MAX, "]}");
	auto_free char *quoted =
		repeated(V2 "\"manifests\":[],\"x\":\"\\\"", "[,{", OUTLINE_VALUES_MAX, "\"}");
	auto_outline struct outline outline = {0};

	(void)state;
	check_refused(wide, ERR_LIMIT);
	check_refused(deep, ERR_INVALID);
	check_refused(many, ERR_LIMIT);
	parse(quoted, &outline); /* within a string they are bytes */
}

/* Of a legal manifest below 4 MiB, too, so it has to be told. */
static void the_limit_of_values_is_said(void **state)
{
	auto_free char *wide =
		repeated(V2 "\"manifests\":[],\"x\":[0", ",1", OUTLINE_VALUES_MAX, "]}");
	auto_outline struct outline outline = {0};
	struct err err = {0};

	(void)state;
	check_err(outline_parse(str_of(wide), &outline, &err), &err, ERR_LIMIT);
	assert_non_null(strstr(err.text, "more than 100000 values of JSON"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_artifact_is_told_with_what_it_is_about),
		cmocka_unit_test(the_type_of_the_config_stands_for_a_missing_one),
		cmocka_unit_test(layers_of_their_maker_alone_are_told_apart),
		cmocka_unit_test(what_is_no_manifest_is_refused),
		cmocka_unit_test(a_bomb_of_brackets_is_not_unpacked),
		cmocka_unit_test(the_limit_of_values_is_said),
	};

	return cmocka_run_group_tests_name("registry/outline", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/manifest.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define D(hex) "\"digest\":\"sha256:" hex "\",\"size\":7"
#define CONFIG "\"config\":{\"mediaType\":\"" MEDIA_OCI_CONFIG "\"," D(A64) "}"
#define V2 "{\"schemaVersion\":2,"
#define ENTRY(hex, platform) "{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\"," D(hex) platform "}"
#define ON(os, arch) ",\"platform\":{\"os\":\"" os "\",\"architecture\":\"" arch "\"}"
#define ON_V(arch, variant) \
	",\"platform\":{\"os\":\"linux\",\"architecture\":\"" arch "\",\"variant\":\"" variant "\"}"

static void parse_reads_both_families(void **state)
{
	static const char *const fine[] = {
		V2 CONFIG ",\"layers\":[{" D(B64) "}]}",
		V2 "\"mediaType\":\"" MEDIA_DOCKER_MANIFEST "\",\"config\":{\"mediaType\":"
		   "\"application/vnd.docker.container.image.v1+json\"," D(
			   A64) "},\"layers\":["
				"{\"mediaType\":\"" MEDIA_DOCKER_LAYER_GZIP "\"," D(B64) "}]}",
		/* A media type that lies, one nobody knows, members nobody knows. */
		V2 CONFIG ",\"layers\":[{\"mediaType\":\"" MEDIA_OCI_LAYER_TAR
			  "\"," D(B64) ",\"urls\":[]}],\"x\":{},\"annotations\":{\"a\":\"b\"}}",
		V2 CONFIG ",\"layers\":[{\"mediaType\":\"text/x-strange\"," D(B64) "}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		auto_manifest struct manifest manifest = {0};
		struct err err = {0};
		bool index = true;

		check_ok(manifest_parse(str_of(fine[i]), &manifest, &err), &err);
		assert_int_equal(manifest.layer_count, 1);
		assert_int_equal(manifest.layers[0].size, 7);
		assert_int_equal(manifest.layers[0].digest.bytes[0], 0xbb);
		assert_int_equal(manifest.config.digest.bytes[0], 0xaa);
		check_ok(manifest_is_index(str_of(fine[i]), &index, &err), &err);
		assert_false(index);
	}
}

static void an_image_may_have_no_layers(void **state)
{
	static const char *const fine[] = {V2 CONFIG ",\"layers\":[]}", V2 CONFIG "}",
					   V2 CONFIG ",\"layers\":null}"};

	(void)state;
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		auto_manifest struct manifest manifest = {0};
		struct err err = {0};

		check_ok(manifest_parse(str_of(fine[i]), &manifest, &err), &err);
		assert_int_equal(manifest.layer_count, 0);
	}
}

static void parse_refuses_what_is_no_image(void **state)
{
	static const struct {
		enum err_kind kind;
		const char *text;
	} wrong[] = {
		{ERR_CORRUPT, ""},
		{ERR_CORRUPT, "<html>Too Many Requests</html>"},
		{ERR_CORRUPT, "[]"},
		{ERR_CORRUPT, "{}"},
		{ERR_CORRUPT, "{\"schemaVersion\":\"2\"}"},
		{ERR_CORRUPT, V2 "\"layers\":[]}"},
		{ERR_CORRUPT, V2 CONFIG ",\"layers\":{}}"},
		{ERR_CORRUPT, V2 CONFIG ",\"layers\":[7]}"},
		{ERR_CORRUPT, V2 CONFIG ",\"layers\":[{}]}"},
		{ERR_CORRUPT, V2 CONFIG ",\"layers\":[{\"digest\":\"sha256:" B64 "\"}]}"},
		{ERR_CORRUPT,
		 V2 CONFIG ",\"layers\":[{\"digest\":\"sha256:" B64 "\",\"size\":-1}]}"},
		{ERR_CORRUPT,
		 V2 CONFIG ",\"layers\":[{\"digest\":\"sha256:" B64 "\",\"size\":1.5}]}"},
		{ERR_CORRUPT, V2 CONFIG ",\"layers\":[{\"digest\":\"../../etc\",\"size\":1}]}"},
		{ERR_CORRUPT, V2 CONFIG ",\"config\":{" D(B64) "},\"layers\":[]}"},
		{ERR_CORRUPT, V2 CONFIG ",\"manifests\":[],\"layers\":[]}"},
		{ERR_CORRUPT, V2 "\"mediaType\":\"" MEDIA_OCI_INDEX "\"," CONFIG ",\"layers\":[]}"},
		{ERR_UNSUPPORTED, "{\"schemaVersion\":1,\"fsLayers\":[]}"},
		{ERR_UNSUPPORTED, "{\"schemaVersion\":3}"},
		{ERR_UNSUPPORTED, V2 "\"manifests\":[]}"},
		{ERR_UNSUPPORTED,
		 V2 "\"config\":{\"mediaType\":\"application/vnd.oci.empty.v1+json\"," D(
			 A64) "},\"layers\":[]}"},
		{ERR_UNSUPPORTED,
		 V2 CONFIG ",\"layers\":[{\"mediaType\":\"application/vnd.docker.image."
			   "rootfs.foreign.diff.tar.gzip\"," D(B64) "}]}"},
		{ERR_UNSUPPORTED,
		 V2 CONFIG ",\"layers\":[{\"mediaType\":\"application/vnd.oci.image.layer."
			   "nondistributable.v1.tar+gzip\"," D(B64) "}]}"},
		{ERR_UNSUPPORTED, V2 CONFIG ",\"layers\":[{\"mediaType\":\"" MEDIA_OCI_LAYER_GZIP
					    "+encrypted\"," D(B64) "}]}"},
		{ERR_CORRUPT,
		 V2 CONFIG ",\"layers\":[{\"digest\":\"sha512:" A64 "\",\"size\":1}]}"},
		{ERR_UNSUPPORTED,
		 V2 CONFIG ",\"layers\":[{\"digest\":\"multihash+base58:QmR_=-\",\"size\":1}]}"},
		{ERR_CORRUPT, V2 CONFIG ",\"layers\":[{\"digest\":\"sha256:A\",\"size\":1}]}"},
		{ERR_CORRUPT, V2 CONFIG ",\"layers\":[{\"digest\":\"blake3:a/b\",\"size\":1}]}"},
		{ERR_CORRUPT, V2 CONFIG ",\"layers\":[{\"digest\":\"blake3:\",\"size\":1}]}"},
		{ERR_LIMIT,
		 V2 "\"config\":{\"digest\":\"sha256:" A64 "\",\"size\":9000000},\"layers\":[]}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct manifest manifest = {0};
		struct err err = {0};

		if (manifest_parse(str_of(wrong[i].text), &manifest, &err) == 0 ||
		    err.kind != wrong[i].kind)
			fail_msg("%s: kind %d: %s", wrong[i].text, err.kind, err.text);
		assert_null(manifest.document);
	}
}

static void counts_have_ceilings(void **state)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_MAX);
	struct manifest manifest = {0};
	struct err err = {0};

	(void)state;
	check_ok(buf_add(&text, STR(V2 CONFIG ",\"layers\":[{" D(B64) "}"), &err), &err);
	for (size_t i = 0; i < MANIFEST_LAYERS_MAX; i++)
		check_ok(buf_add(&text, STR(",{" D(B64) "}"), &err), &err);
	check_ok(buf_add(&text, STR("]}"), &err), &err);
	check_err(manifest_parse(buf_str(&text), &manifest, &err), &err, ERR_LIMIT);
}

static uint8_t chosen(const char *index, const char *platform)
{
	struct platform wanted;
	struct descriptor entry;
	struct err err = {0};
	bool is_index;

	check_ok(platform_parse(str_of(platform), &wanted, &err), &err);
	check_ok(manifest_is_index(str_of(index), &is_index, &err), &err);
	assert_true(is_index);
	check_ok(manifest_choose(str_of(index), &wanted, &entry, &err), &err);
	assert_int_equal(entry.size, 7);
	return entry.digest.bytes[0];
}

static void choose_takes_the_platform(void **state)
{
	static const char index[] = V2
		"\"mediaType\":\"" MEDIA_DOCKER_LIST
		"\",\"manifests\":[" ENTRY(B64, ON("unknown", "unknown")) "," ENTRY(
			B64, ON("windows",
				"amd64")) "," ENTRY(A64, ON("linux",
							    "amd64")) "," ENTRY(B64,
										ON("linux",
										   "amd64")) "]}";

	(void)state;
	assert_int_equal(chosen(index, "linux/amd64"), 0xaa);
	assert_int_equal(chosen(index, "windows/amd64"), 0xbb);
}

static void choose_takes_the_newest_variant_that_runs(void **state)
{
	static const char index[] = V2 "\"manifests\":[" ENTRY(B64, ON_V("arm", "v5")) "," ENTRY(
		A64,
		ON_V("arm",
		     "v6")) "," ENTRY(B64,
				      ON_V("arm64",
					   "v8")) "," ENTRY(A64,
							    ON_V("amd64",
								 "v3")) "," ENTRY(B64,
										  ON("linux",
										     "amd64")) "]}";

	(void)state;
	assert_int_equal(chosen(index, "linux/arm/v7"), 0xaa);
	assert_int_equal(chosen(index, "linux/arm/v5"), 0xbb);
	assert_int_equal(chosen(index, "linux/arm64"), 0xbb);
	assert_int_equal(chosen(index, "linux/amd64"), 0xbb);
	assert_int_equal(chosen(index, "linux/amd64/v3"), 0xaa);
}

static void the_only_entry_needs_no_platform(void **state)
{
	(void)state;
	assert_int_equal(chosen(V2 "\"manifests\":[" ENTRY(A64, "") "]}", "linux/amd64"), 0xaa);
	assert_int_equal(chosen(V2 "\"manifests\":[{\"mediaType\":\"text/x-sbom\"," D(
					B64) "}," ENTRY(A64, ",\"platform\":null") "]}",
				"linux/amd64"),
			 0xaa);
}

static void choose_says_what_there_is(void **state)
{
	static const struct {
		enum err_kind kind;
		const char *text;
		const char *words;
	} wrong[] = {
		{ERR_NOT_FOUND,
		 V2 "\"manifests\":[" ENTRY(A64, ON("linux", "s390x")) "," ENTRY(
			 B64, ON("unknown", "unknown")) "]}",
		 "no image for linux/amd64; there is linux/s390x"},
		{ERR_NOT_FOUND, V2 "\"manifests\":[]}", "none at all"},
		{ERR_CORRUPT, V2 "\"manifests\":[{\"platform\":{}}]}",
		 "manifests[0].digest: missing"},
		{ERR_CORRUPT, V2 "\"manifests\":[" ENTRY(A64, ",\"platform\":7") "]}", "platform"},
	};
	struct platform wanted;
	struct err err = {0};

	(void)state;
	check_ok(platform_parse(STR("linux/amd64"), &wanted, &err), &err);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct descriptor entry;

		check_err(manifest_choose(str_of(wrong[i].text), &wanted, &entry, &err), &err,
			  wrong[i].kind);
		if (!strstr(err.text, wrong[i].words))
			fail_msg("%s", err.text);
	}
}

static void indexes_in_an_index_are_told_one_by_one(void **state)
{
	static const char index[] = V2 "\"manifests\":[" ENTRY(
		B64, ON("linux", "s390x")) ",{},{\"mediaType\":\"" MEDIA_OCI_INDEX
					   "\"," D(A64) "},{\"mediaType\":\"" MEDIA_DOCKER_LIST
							"\"," D(B64) "}]}";
	struct descriptor entry;
	struct err err = {0};

	(void)state;
	assert_int_equal(manifest_index_in(str_of(index), 0, &entry, &err), 1);
	assert_int_equal(entry.digest.bytes[0], 0xaa);
	assert_int_equal(entry.size, 7);
	assert_int_equal(manifest_index_in(str_of(index), 1, &entry, &err), 1);
	assert_int_equal(entry.digest.bytes[0], 0xbb);
	assert_int_equal(manifest_index_in(str_of(index), 2, &entry, &err), 0);
	check_err(manifest_index_in(STR("{\"manifests\":{}}"), 0, &entry, &err), &err, ERR_CORRUPT);
}

static void one_odd_entry_spoils_no_index(void **state)
{
	static const char index[] = V2 "\"manifests\":[{\"digest\":\"blake3:abc\",\"size\":7" ON(
		"linux", "amd64") "}," ENTRY(B64,
					     ON("a b", "c/d")) "," ENTRY(A64,
									 ON("linux", "amd64")) "]}";

	(void)state;
	assert_int_equal(chosen(index, "linux/amd64"), 0xaa);
}

static void a_layers_type_is_told_in_a_word(void **state)
{
	static const struct {
		const char *type;
		const char *word;
	} cases[] = {{MEDIA_OCI_LAYER_GZIP, "gzip"}, {MEDIA_OCI_LAYER_ZSTD, "zstd"},
		     {MEDIA_OCI_LAYER_TAR, "tar"},   {MEDIA_DOCKER_LAYER_GZIP, "gzip"},
		     {"application/x-else", "?"},    {"", "?"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(manifest_layer_word(str_of(cases[i].type)), cases[i].word);
	assert_string_equal(manifest_layer_type(LAYER_GZIP), MEDIA_OCI_LAYER_GZIP);
	assert_string_equal(manifest_layer_type(LAYER_ZSTD), MEDIA_OCI_LAYER_ZSTD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_reads_both_families),
		cmocka_unit_test(an_image_may_have_no_layers),
		cmocka_unit_test(parse_refuses_what_is_no_image),
		cmocka_unit_test(counts_have_ceilings),
		cmocka_unit_test(choose_takes_the_platform),
		cmocka_unit_test(choose_takes_the_newest_variant_that_runs),
		cmocka_unit_test(the_only_entry_needs_no_platform),
		cmocka_unit_test(choose_says_what_there_is),
		cmocka_unit_test(indexes_in_an_index_are_told_one_by_one),
		cmocka_unit_test(one_odd_entry_spoils_no_index),
		cmocka_unit_test(a_layers_type_is_told_in_a_word),
	};

	return cmocka_run_group_tests_name("registry/manifest", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What repositories hold, while it is collected. */
#include "bake/fsck.h"
#include "layers/base/clock.h"
#include "layers/lease.h"
#include "layers/use.h"
#include "registry/holding.h"
#include "registry/tag.h"
#include "tests/bake/gc_scene.h"
#include "tests/registry/v2_desk.h"

#define CONFIG                                                                                 \
	"{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"type\":\"layers\",\"diff_" \
	"ids\":[]}}"
static bool holds(struct store *store, const char *repository, const struct stock *stock)
{
	AUTO(meta) struct meta *meta = NULL;
	struct repository_item item;
	struct err err = {0};
	int found;

	check_ok(meta_begin(store, META_READ, &meta, &err), &err);
	found = repository_find(meta, str_of(repository), REPOSITORY_BLOB, &stock->digest, &item,
				&err);
	check_ok(found, &err);
	return found == 1;
}

static struct stock put(struct v2_desk *desk, const char *reference, const char *text,
			enum digest_algorithm algorithm)
{
	struct stock stock = stock_absent(text, algorithm);
	char target[512];

	(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s",
		       *reference ? reference : stock.name);
	(void)v2_ask(desk, HTTP_PUT, target, NULL, str_of(text));
	v2_check_status(desk, 201);
	return stock;
}

/* An index in an index of an image: all that was pushed for it. */
struct family {
	struct stock config;
	struct stock layer;
	struct stock manifest;
	struct stock inner;
	struct stock outer;
};

static struct family push(struct v2_desk *desk, enum digest_algorithm algorithm)
{
	struct family family = {
		.config = v2_stock_blob(desk, "a", CONFIG, algorithm),
		.layer = v2_stock_blob(desk, "a", "a layer", algorithm),
	};
	char text[2048];

	(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"config\":%s,\"layers\":[%s]}",
		       stock_descriptor(&family.config, MEDIA_OCI_CONFIG),
		       stock_descriptor(&family.layer, MEDIA_OCI_LAYER_TAR));
	family.manifest = put(desk, "", text, algorithm);
	(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"manifests\":[%s]}",
		       stock_descriptor(&family.manifest, MEDIA_OCI_MANIFEST));
	family.inner = put(desk, "", text, algorithm);
	(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"manifests\":[%s]}",
		       stock_descriptor(&family.inner, MEDIA_OCI_INDEX));
	family.outer = put(desk, "", text, algorithm);
	return family;
}

static void delete_manifest(struct v2_desk *desk, const struct stock *stock)
{
	char target[512];

	(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", stock->name);
	(void)v2_ask(desk, HTTP_DELETE, target, NULL, STR(""));
	v2_check_status(desk, 202);
}

/* Without a tag, too; until it is deleted. The blobs came long ago. */
static void what_was_pushed_stays_with_all_that_it_leads_to(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct store *store = desk.v2.store;
		struct family family = push(&desk, v2_both[i]);

		assert_int_equal(collect(store).records, 0);
		assert_true(stored(store, &family.config) && holds(store, "a", &family.config));
		assert_true(stored(store, &family.layer) && holds(store, "a", &family.layer));
		assert_true(stored(store, &family.manifest) && stored(store, &family.outer));
		delete_manifest(&desk, &family.inner);
		delete_manifest(&desk, &family.manifest);
		assert_int_equal(collect(store).records, 0); /* the outer one leads to all */
		assert_true(stored(store, &family.layer) && holds(store, "a", &family.layer));
		delete_manifest(&desk, &family.outer);
		assert_int_equal(collect(store).records, 2);
		assert_false(stored(store, &family.layer) || holds(store, "a", &family.layer));
		assert_false(stored(store, &family.manifest) || stored(store, &family.outer));
	}
}

static void a_blob_that_nothing_names_goes_in_time(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_v2_desk struct v2_desk desk = v2_desk_of(state);
		struct store *store = desk.v2.store;
		struct stock old = v2_stock_blob(&desk, "a", "old", v2_both[i]);
		struct stock asked = v2_stock_blob(&desk, "a", "asked for", v2_both[i]);
		struct stock fresh = stock_put(store, "fresh", v2_both[i]);
		struct stock shared = v2_stock_blob(&desk, "a", "shared", v2_both[i]);
		struct repository_item item =
			stock_item(&fresh, REPOSITORY_BLOB, REPOSITORY_PUSHED);
		struct repository_item held =
			stock_item(&shared, REPOSITORY_BLOB, REPOSITORY_MIRRORED);
		struct meta *meta;
		struct err err = {0};

		item.at_ms = clock_now_ms();
		check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
		check_ok(repository_put(meta, STR("a"), &item, &err), &err);
		check_ok(repository_put(meta, STR("docker.io/x"), &held, &err), &err);
		check_ok(meta_commit(meta, &err), &err);
		item = stock_item(&asked, REPOSITORY_BLOB, REPOSITORY_PUSHED);
		repository_note(store, &item);
		assert_int_equal(collect_as(store, true).records, 2);
		assert_true(holds(store, "a", &old) && stored(store, &old));
		assert_int_equal(collect(store).records, 2);
		assert_false(holds(store, "a", &old) || stored(store, &old));
		assert_true(holds(store, "a", &asked) && stored(store, &asked));
		assert_true(holds(store, "a", &fresh) && stored(store, &fresh));
		assert_false(holds(store, "a", &shared));
		assert_true(holds(store, "docker.io/x", &shared) && stored(store, &shared));
		use_forget(store, &asked.blob);
	}
}

static struct family tag_baked(struct v2_desk *desk, const char *reference)
{
	struct store *store = desk->v2.store;
	struct family family = {
		.config = stock_put(store, CONFIG, DIGEST_SHA256),
		.layer = stock_put(store, "a baked layer", DIGEST_SHA256),
	};
	struct tag tag = {.at_ms = 1};
	struct meta *meta;
	struct err err = {0};
	char text[2048];

	(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"config\":%s,\"layers\":[%s]}",
		       stock_descriptor(&family.config, MEDIA_OCI_CONFIG),
		       stock_descriptor(&family.layer, MEDIA_OCI_LAYER_TAR));
	family.manifest = stock_put(store, text, DIGEST_SHA256);
	tag.target = tag.manifest = family.manifest.digest;
	platform_host(&tag.platform);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(tag_put(meta, str_of(reference), &tag, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	return family;
}

static void untag(struct store *store, const char *reference)
{
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	assert_int_equal(tag_del(meta, str_of(reference), &err), 1);
	check_ok(meta_commit(meta, &err), &err);
}

static void what_was_baked_goes_with_its_last_tag(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct family family = tag_baked(&desk, "localhost/a:1");

	(void)tag_baked(&desk, "localhost/a:2");
	untag(store, "localhost/a:1");
	assert_int_equal(collect(store).records, 0);
	assert_int_equal(v2_get(&desk, "/v2/a/manifests/2"), 200);
	untag(store, "localhost/a:2");
	assert_int_equal(collect_as(store, true).records, 3);
	assert_int_equal(collect(store).records, 3);
	assert_false(holds(store, "a", &family.layer) || stored(store, &family.layer));
	assert_false(stored(store, &family.manifest));
	assert_int_equal(v2_get(&desk, "/v2/a/tags/list"), 404);
}

/* A client found the layer there, and pushed an image on it. */
static void what_was_pushed_on_a_baked_layer_keeps_it(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct family family = tag_baked(&desk, "localhost/a:1");
	char text[2048];

	(void)snprintf(text, sizeof(text),
		       "{\"schemaVersion\":2,\"config\":%s,\"layers\":[%s],\"x\":1}",
		       stock_descriptor(&family.config, MEDIA_OCI_CONFIG),
		       stock_descriptor(&family.layer, MEDIA_OCI_LAYER_TAR));
	(void)put(&desk, "mine", text, DIGEST_SHA256);
	untag(store, "localhost/a:1");
	assert_int_equal(collect(store).records, 1); /* the manifest that was baked */
	assert_true(holds(store, "a", &family.layer) && stored(store, &family.layer));
	assert_true(holds(store, "a", &family.config));
}

/* What goes of this store, if it may take nothing at all. */
static struct gc_result press(struct store *store, bool dry_run)
{
	struct gc_options options = {.store = store, .policy = GC_POLICY_INIT, .dry_run = dry_run};
	struct gc_result result;
	struct err err = {0};

	options.policy.max_bytes = 1;
	check_ok(gc_run(&options, &result, &err), &err);
	return result;
}

static void what_is_mirrored_goes_where_the_store_is_too_large(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct family pushed = push(&desk, DIGEST_SHA256);
	struct stock mirrored = stock_put(store, "of another registry", DIGEST_SHA256);
	struct repository_item item = stock_item(&mirrored, REPOSITORY_BLOB, REPOSITORY_MIRRORED);
	struct meta *meta;
	struct err err = {0};

	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(repository_put(meta, STR("docker.io/x"), &item, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(press(store, true).mirrored, item.size);
	assert_true(holds(store, "docker.io/x", &mirrored) && stored(store, &mirrored));
	assert_int_equal(press(store, false).mirrored, item.size);
	assert_false(holds(store, "docker.io/x", &mirrored) || stored(store, &mirrored));
	assert_true(holds(store, "a", &pushed.layer) && stored(store, &pushed.manifest));
	assert_int_equal(press(store, false).mirrored, 0);
}

static void a_record_that_cannot_be_read_ends_a_collection(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	const struct gc_options options = {.store = desk.v2.store, .policy = GC_POLICY_INIT};
	struct stock old = v2_stock_blob(&desk, "a", "old", DIGEST_SHA256);
	struct stock nobodys = stock_put(desk.v2.store, "nobody's", DIGEST_SHA256);
	struct gc_result result;
	struct meta *meta;
	struct err err = {0};
	char key[512];

	(void)snprintf(key, sizeof(key), "b!m!%s", old.name);
	check_ok(meta_begin(desk.v2.store, META_WRITE, &meta, &err), &err);
	check_ok(meta_put_text(meta, "repositories", str_of(key), STR("{\"v\":1}"), &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	check_err(gc_run(&options, &result, &err), &err, ERR_CORRUPT);
	assert_true(stored(desk.v2.store, &nobodys));
}

static void what_a_lease_names_is_relied_on(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct stock old = v2_stock_blob(&desk, "a", "old", DIGEST_SHA256);
	AUTO(lease) struct lease *lease = NULL;
	struct err err = {0};

	check_ok(lease_open(desk.v2.store, &lease, &err), &err);
	check_ok(lease_add(lease, &old.blob, &err), &err);
	check_ok(lease_rest(lease, &err), &err);
	assert_int_equal(collect(desk.v2.store).records, 0);
	assert_true(holds(desk.v2.store, "a", &old) && stored(desk.v2.store, &old));
}

struct findings {
	size_t held;
	size_t all;
};

static void find(void *ctx, const struct fsck_finding *finding)
{
	struct findings *findings = ctx;

	findings->all++;
	findings->held += finding->kind == FSCK_HELD && strcmp(finding->name, "a") == 0;
}

static struct findings check(struct store *store)
{
	struct findings findings = {0};
	const struct fsck_options options = {
		.store = store, .bytes_only = true, .tell = find, .ctx = &findings};
	struct fsck_result result;
	struct err err = {0};

	check_ok(fsck_run(&options, &result, &err), &err);
	return findings;
}

static void a_record_of_what_is_gone_is_found_and_removed(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct stock nowhere = stock_absent("nowhere", DIGEST_SHA512);
	struct repository_item item = stock_item(&nowhere, REPOSITORY_BLOB, REPOSITORY_PUSHED);
	struct meta *meta;
	struct err err = {0};

	(void)push(&desk, DIGEST_SHA512);
	assert_int_equal(check(store).all, 0);
	check_ok(meta_begin(store, META_WRITE, &meta, &err), &err);
	check_ok(repository_put(meta, STR("a"), &item, &err), &err);
	check_ok(meta_commit(meta, &err), &err);
	assert_int_equal(check(store).held, 1);
	assert_false(holds(store, "a", &nowhere));
	assert_int_equal(check(store).all, 0);
}

static bool is_there(struct v2_desk *desk, const struct stock *stock)
{
	char target[512];

	(void)snprintf(target, sizeof(target), "/v2/a/blobs/%s", stock->name);
	return v2_ask(desk, HTTP_HEAD, target, NULL, STR("")) == 200;
}

/*
 * Whoever is told that his blob is there may name it, and who is told that his
 * manifest was taken finds all that it names.
 */
static void no_manifest_that_was_taken_loses_a_blob(void **state)
{
	auto_v2_desk struct v2_desk desk = v2_desk_of(state);
	struct store *store = desk.v2.store;
	struct collecting collecting;

	collecting_begin(&collecting, store);
	for (int i = 0; i < ROUNDS; i++) {
		struct stock config;
		struct stock manifest;
		char bytes[64];
		char text[1024];
		char target[512];
		bool told;

		(void)snprintf(bytes, sizeof(bytes), "{\"n\":%d}", i);
		config = v2_stock_blob(&desk, "a", bytes, v2_both[i / 2 % 2]);
		(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"config\":%s}",
			       stock_descriptor(&config, "text/x"));
		manifest = stock_absent(text, v2_both[i / 2 % 2]);
		(void)snprintf(target, sizeof(target), "/v2/a/manifests/%s", manifest.name);
		told = i % 2 && is_there(&desk, &config);
		(void)v2_ask(&desk, HTTP_PUT, target, NULL, str_of(text));
		if (desk.response.status != 201) { /* it was collected: its record is years old */
			assert_false(told);
			v2_check_refused(&desk, 404, "MANIFEST_BLOB_UNKNOWN");
			continue;
		}
		assert_int_equal(v2_get(&desk, target), 200);
		assert_true(holds(store, "a", &config) && stored(store, &config));
		if (i % 3 == 0)
			delete_manifest(&desk, &manifest);
	}
	collecting_end(&collecting);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_open, store_fixture_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_pushed_stays_with_all_that_it_leads_to),
		TEST(a_blob_that_nothing_names_goes_in_time),
		TEST(what_was_baked_goes_with_its_last_tag),
		TEST(what_was_pushed_on_a_baked_layer_keeps_it),
		TEST(what_is_mirrored_goes_where_the_store_is_too_large),
		TEST(a_record_that_cannot_be_read_ends_a_collection),
		TEST(what_a_lease_names_is_relied_on),
		TEST(a_record_of_what_is_gone_is_found_and_removed),
		TEST(no_manifest_that_was_taken_loses_a_blob),
	};

	return cmocka_run_group_tests_name("bake/gc_repositories", tests, NULL, NULL);
}

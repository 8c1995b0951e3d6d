/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/copy.h"
#include "bake/listing.h"
#include "layers/text.h"
#include "tests/bake/stage.h"

#include <sys/xattr.h>

static void read_list(const struct stage *stage, const char *source, bool image, struct buf *list)
{
	const struct context_sources sources = {
		.fd = stage->scene.contextfd,
		.paths = &source,
		.count = 1,
		.image = image,
		.store = image ? NULL : stage->fixture->store,
	};
	struct err err = {0};

	check_ok(listing_read(&sources, NULL, NULL, list, &err), &err);
}

static struct digest keep(const struct stage *stage, struct str list)
{
	struct digest kept;
	struct err err = {0};

	check_ok(listing_keep(stage->fixture->store, list, &kept, &err), &err);
	return kept;
}

static struct digest keep_now(const struct stage *stage, const char *source, bool image)
{
	auto_buf struct buf list = BUF_INIT(LISTING_BYTES_MAX);

	read_list(stage, source, image, &list);
	return keep(stage, buf_str(&list));
}

static json_t *compare(const struct stage *stage, const struct digest *kept, struct str now)
{
	json_t *differences = json_array();
	struct err err = {0};

	check_ok(listing_compare(stage->fixture->store, kept, now, differences, &err), &err);
	return differences;
}

static json_t *compare_now(const struct stage *stage, const struct digest *kept, const char *source,
			   bool image)
{
	auto_buf struct buf list = BUF_INIT(LISTING_BYTES_MAX);

	read_list(stage, source, image, &list);
	return compare(stage, kept, buf_str(&list));
}

static const char *side(const json_t *differences, size_t at, const char *key)
{
	return json_string_value(json_object_get(json_array_get(differences, at), key));
}

static void check_told(const json_t *differences, size_t at, const char *name, const char *was,
		       const char *is)
{
	assert_string_equal(side(differences, at, "what"), "file");
	assert_string_equal(side(differences, at, "name"), name);
	assert_string_equal(was, side(differences, at, "was"));
	assert_string_equal(is, side(differences, at, "is"));
}

static void set_attribute(const struct stage *stage, const char *path, const char *value)
{
	char full[64];

	(void)snprintf(full, sizeof(full), "%s/%s", stage->scene.path, path);
	if (setxattr(full, "user.note", value, strlen(value), 0) < 0)
		skip(); /* a file system without attributes */
}

static void a_file_of_the_root_is_named_without_a_slash(void **state)
{
	struct stage *stage = *state;
	struct digest kept;
	AUTO(json) json_t *told = NULL;

	scene_dir(&stage->scene, "context/d", 0755);
	scene_file(&stage->scene, "context/d/g", "one", 0644);
	scene_file(&stage->scene, "context/f", "one", 0644);
	kept = keep_now(stage, ".", false);
	assert_int_equal(fchmodat(stage->scene.fd, "context/d/g", 0600, 0), 0);
	assert_int_equal(fchmodat(stage->scene.fd, "context/f", 0755, 0), 0);
	told = compare_now(stage, &kept, ".", false);
	assert_int_equal(json_array_size(told), 2);
	check_told(told, 0, "d/g", "0644, 3 bytes", "0600, 3 bytes");
	check_told(told, 1, "f", "0644, 3 bytes", "0755, 3 bytes");
}

/* A digest is of more than the bytes, so it is told only where they alone differ. */
static void other_bytes_are_told_by_digest_alone(void **state)
{
	struct stage *stage = *state;
	struct digest kept;
	AUTO(json) json_t *told = NULL;

	scene_file(&stage->scene, "context/f", "one", 0644);
	kept = keep_now(stage, "f", false);
	scene_file(&stage->scene, "context/f", "two", 0644);
	told = compare_now(stage, &kept, "f", false);
	assert_int_equal(json_array_size(told), 1);
	assert_int_equal(strlen(side(told, 0, "was")), strlen("0644, 3 bytes, 0123456789ab"));
	assert_int_equal(strncmp(side(told, 0, "is"), "0644, 3 bytes, ", 15), 0);
	assert_string_not_equal(side(told, 0, "was"), side(told, 0, "is"));
}

static void an_attribute_is_told_from_bytes(void **state)
{
	struct stage *stage = *state;
	struct digest kept;
	AUTO(json) json_t *told = NULL;
	AUTO(json) json_t *nothing = NULL;

	scene_dir(&stage->scene, "context/d", 0755);
	scene_dir(&stage->scene, "context/d/below", 0755);
	scene_file(&stage->scene, "context/d/f", "one", 0644);
	kept = keep_now(stage, "d", false);
	set_attribute(stage, "context/d/f", "a");
	set_attribute(stage, "context/d/below", "a");
	told = compare_now(stage, &kept, "d", false);
	assert_int_equal(json_array_size(told), 2);
	assert_string_equal(side(told, 0, "was"), "0755, a directory");
	assert_int_equal(strncmp(side(told, 0, "is"), "0755, a directory, attributes ", 30), 0);
	assert_string_equal(side(told, 1, "was"), "0644, 3 bytes");
	assert_int_equal(strncmp(side(told, 1, "is"), "0644, 3 bytes, attributes ", 26), 0);
	kept = keep_now(stage, "d", false);
	nothing = compare_now(stage, &kept, "d", false);
	assert_int_equal(json_array_size(nothing), 0);
}

static void bytes_below_an_attribute_are_told(void **state)
{
	struct stage *stage = *state;
	struct digest kept;
	AUTO(json) json_t *told = NULL;

	scene_file(&stage->scene, "context/f", "one", 0644);
	set_attribute(stage, "context/f", "a");
	kept = keep_now(stage, "f", false);
	scene_file(&stage->scene, "context/f", "two", 0644);
	told = compare_now(stage, &kept, "f", false);
	assert_int_equal(json_array_size(told), 1);
	assert_non_null(strstr(side(told, 0, "was"), ", attributes "));
	assert_string_equal(strstr(side(told, 0, "was"), ", attributes "),
			    strstr(side(told, 0, "is"), ", attributes "));
	assert_string_not_equal(side(told, 0, "was"), side(told, 0, "is"));
}

static void an_owner_counts_in_an_image_alone(void **state)
{
	struct stage *stage = *state;
	struct digest of_image;
	struct digest of_context;
	AUTO(json) json_t *told = NULL;
	AUTO(json) json_t *nothing = NULL;

	if (geteuid() != 0)
		skip();
	scene_file(&stage->scene, "context/f", "one", 0644);
	scene_link(&stage->scene, "context/l", "a, owner 5:5");
	of_image = keep_now(stage, ".", true);
	of_context = keep_now(stage, ".", false);
	assert_int_equal(fchownat(stage->scene.fd, "context/f", 5, 6, 0), 0);
	assert_int_equal(fchownat(stage->scene.fd, "context/l", 7, 8, AT_SYMLINK_NOFOLLOW), 0);
	told = compare_now(stage, &of_image, ".", true);
	assert_int_equal(json_array_size(told), 2);
	check_told(told, 0, "/f", "0644, 3 bytes, owner 0:0", "0644, 3 bytes, owner 5:6");
	check_told(told, 1, "/l", "a link to a, owner 5:5, owner 0:0",
		   "a link to a, owner 5:5, owner 7:8");
	nothing = compare_now(stage, &of_context, ".", false);
	assert_int_equal(json_array_size(nothing), 0);
}

/* Only its content is copied: that it has another mode now makes no step run. */
static void a_directory_that_is_a_source_is_no_file(void **state)
{
	struct stage *stage = *state;
	struct digest kept;
	AUTO(json) json_t *nothing = NULL;

	scene_dir(&stage->scene, "context/d", 0755);
	scene_file(&stage->scene, "context/d/f", "one", 0644);
	kept = keep_now(stage, "d", false);
	assert_int_equal(fchmodat(stage->scene.fd, "context/d", 0700, 0), 0);
	nothing = compare_now(stage, &kept, "d", false);
	assert_int_equal(json_array_size(nothing), 0);
}

#define OLD "d\0000755, a directory\0/f\0000644, 3 bytes, 0123456789ab\0d/g\0a link to x\0"

/* It tells neither attributes nor owners, and that is no difference. */
static void an_older_listing_is_read(void **state)
{
	struct stage *stage = *state;
	struct digest kept = keep(stage, STR(OLD));
	AUTO(json)
	json_t *same = compare(stage, &kept,
			       STR("/\0002\0f\0000644, 3 bytes, 0123456789ab, attributes "
				   "ba9876543210\0d/g\0a link to x\0"));
	AUTO(json)
	json_t *other = compare(stage, &kept,
				STR("/\0002\0f\0000644, 3 bytes, ba9876543210, attributes "
				    "ba9876543210\0d/g\0a link to y\0"));

	assert_int_equal(json_array_size(same), 0);
	assert_int_equal(json_array_size(other), 2);
	check_told(other, 0, "f", "0644, 3 bytes, 0123456789ab", "0644, 3 bytes, ba9876543210");
	check_told(other, 1, "d/g", "a link to x", "a link to y");
}

/* What lies in the store may be anything: words that are none are told as they are. */
static void damaged_words_are_told_whole(void **state)
{
	struct stage *stage = *state;
	struct digest kept =
		keep(stage, STR("/\0002\0a\0000644\0b\0000644,\0c\0000644, 1 bytes,\0d"));
	AUTO(json) json_t *told = compare(stage, &kept, STR("/\0002\0"));

	assert_int_equal(json_array_size(told), 3);
	assert_string_equal(side(told, 0, "was"), "0644");
	assert_string_equal(side(told, 1, "was"), "0644,");
	assert_string_equal(side(told, 2, "was"), "0644, 1 bytes,");
}

static void a_hundred_differences_are_enough(void **state)
{
	struct stage *stage = *state;
	auto_buf struct buf list = BUF_INIT(LISTING_BYTES_MAX);
	struct digest kept = keep(stage, STR("/\0002\0"));
	AUTO(json) json_t *told = NULL;
	struct err err = {0};

	for (size_t i = 0; i < LISTING_DIFFERENCES_MAX + 10; i++)
		check_ok(buf_addf(&list, &err, "%zu%c0644, 1 bytes%c", i, 0, 0), &err);
	told = compare(stage, &kept, buf_str(&list));
	assert_int_equal(json_array_size(told), LISTING_DIFFERENCES_MAX);
}

static void sources_that_changed_are_not_kept(void **state)
{
	struct stage *stage = *state;
	auto_buf struct buf list = BUF_INIT(LISTING_BYTES_MAX);
	const char *source = "f";
	const struct context_sources sources = {
		.fd = stage->scene.contextfd, .paths = &source, .count = 1};
	struct digest content;
	struct err err = {0};

	scene_file(&stage->scene, "context/f", "one", 0644);
	check_ok(context_digest(&sources, NULL, &content, &err), &err);
	check_ok(listing_read(&sources, &content, NULL, &list, &err), &err);
	scene_file(&stage->scene, "context/f", "two", 0644);
	assert_int_equal(listing_read(&sources, &content, NULL, &list, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
}

/* A copy of an image's files, with a list of them. */
static void copy_listed(const struct stage *stage, const char *source, struct buf *list)
{
	const struct copy_spec spec = {
		.sources = {.fd = stage->scene.contextfd,
			    .paths = &source,
			    .count = 1,
			    .image = true,
			    .list = list},
		.destination = "/to/",
		.workdir = "/",
	};
	struct err err = {0};

	check_ok(copy_into(stage->scene.rootfd, &spec, &err), &err);
}

static void fill_image(const struct stage *stage)
{
	scene_dir(&stage->scene, "context/d", 0755);
	scene_dir(&stage->scene, "context/d/below", 0700);
	scene_file(&stage->scene, "context/d/below/f", "one", 0640);
	scene_link(&stage->scene, "context/d/l", "below/f");
	assert_int_equal(
		linkat(stage->scene.fd, "context/d/below/f", stage->scene.fd, "context/d/twin", 0),
		0);
	assert_int_equal(mknodat(stage->scene.fd, "context/d/pipe", S_IFIFO | 0600, 0), 0);
}

/* Else all files of an image would seem to differ. */
static void a_copy_lists_what_is_read(void **state)
{
	struct stage *stage = *state;
	auto_buf struct buf copied = BUF_INIT(LISTING_BYTES_MAX);
	auto_buf struct buf read = BUF_INIT(LISTING_BYTES_MAX);
	struct err err = {0};

	if (geteuid() != 0)
		skip();
	fill_image(stage);
	check_ok(listing_begin(&copied, &err), &err);
	copy_listed(stage, "d", &copied);
	read_list(stage, "d", true, &read);
	assert_int_equal(copied.len, read.len);
	assert_memory_equal(copied.ptr, read.ptr, read.len);
	copied.len = read.len = 0;
	check_ok(listing_begin(&copied, &err), &err);
	copy_listed(stage, "/", &copied);
	read_list(stage, "/", true, &read);
	assert_int_equal(copied.len, read.len);
	assert_memory_equal(copied.ptr, read.ptr, read.len);
}

static void a_list_that_grows_too_long_stops_no_copy(void **state)
{
	struct stage *stage = *state;
	auto_buf struct buf list = BUF_INIT((size_t)40);
	struct err err = {0};

	if (geteuid() != 0)
		skip();
	fill_image(stage);
	check_ok(listing_begin(&list, &err), &err);
	copy_listed(stage, "d", &list);
	assert_int_equal(list.len, 0);
	scene_check_file(&stage->scene, "root/to/twin", "one", 0640);
}

#define staged(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		staged(a_file_of_the_root_is_named_without_a_slash),
		staged(other_bytes_are_told_by_digest_alone),
		staged(an_attribute_is_told_from_bytes),
		staged(bytes_below_an_attribute_are_told),
		staged(an_owner_counts_in_an_image_alone),
		staged(a_directory_that_is_a_source_is_no_file),
		staged(an_older_listing_is_read),
		staged(damaged_words_are_told_whole),
		staged(a_hundred_differences_are_enough),
		staged(sources_that_changed_are_not_kept),
		staged(a_copy_lists_what_is_read),
		staged(a_list_that_grows_too_long_stops_no_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

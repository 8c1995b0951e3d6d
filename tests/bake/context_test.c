/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/context.h"
#include "tests/bake/scene.h"

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>

static struct digest digest_source(const struct scene *scene, const char *source)
{
	struct digest digest;
	struct err err = {0};

	check_ok(context_digest(&(struct context_sources){.fd = scene->contextfd,
							  .paths = &source,
							  .count = 1},
				NULL, &digest, &err),
		 &err);
	return digest;
}

static void make_tree(const struct scene *scene, const char *at)
{
	char path[128];

	scene_dir(scene, at, 0755);
	(void)snprintf(path, sizeof(path), "%s/sub", at);
	scene_dir(scene, path, 0755);
	(void)snprintf(path, sizeof(path), "%s/sub/f", at);
	scene_file(scene, path, "data", 0644);
	(void)snprintf(path, sizeof(path), "%s/1.txt", at);
	scene_file(scene, path, "one", 0644);
	(void)snprintf(path, sizeof(path), "%s/2.txt", at);
	scene_file(scene, path, "two", 0600);
	(void)snprintf(path, sizeof(path), "%s/l", at);
	scene_link(scene, path, "1.txt");
}

static void place_and_time_do_not_count(void **state)
{
	const struct timespec old[] = {{1000, 5}, {1000, 5}};
	struct scene *scene = *state;
	struct digest a;
	struct digest b;

	make_tree(scene, "context/a");
	scene_dir(scene, "context/deep", 0755);
	make_tree(scene, "context/deep/b");
	assert_int_equal(utimensat(scene->fd, "context/deep/b/1.txt", old, 0), 0);
	assert_int_equal(utimensat(scene->fd, "context/deep/b/sub", old, 0), 0);
	assert_int_equal(fchmodat(scene->fd, "context/deep/b", 0700, 0), 0); /* the top's own */
	assert_int_equal(fchownat(scene->fd, "context/deep/b/sub/f", 123, 456, 0),
			 geteuid() ? -1 : 0);
	a = digest_source(scene, "a");
	b = digest_source(scene, "deep/b");
	assert_true(digest_equal(&a, &b));
	b = digest_source(scene, "/a/");
	assert_true(digest_equal(&a, &b));
	b = digest_source(scene, "a/.");
	assert_true(digest_equal(&a, &b));
	b = digest_source(scene, "../../a");
	assert_true(digest_equal(&a, &b));
	b = digest_source(scene, "deep/../a");
	assert_true(digest_equal(&a, &b));
}

static void of_a_whole_directory_its_own_mode_counts_too(void **state)
{
	struct scene *scene = *state;
	const char *source = "a";
	struct context_sources sources = {
		.fd = scene->contextfd, .paths = &source, .count = 1, .whole = true};
	struct digest before;
	struct digest after;
	struct err err = {0};

	make_tree(scene, "context/a");
	check_ok(context_digest(&sources, NULL, &before, &err), &err);
	assert_int_equal(fchmodat(scene->fd, "context/a", 0700, 0), 0);
	check_ok(context_digest(&sources, NULL, &after, &err), &err);
	assert_false(digest_equal(&before, &after));
	source = "/"; /* a root is where its owner put it */
	check_ok(context_digest(&sources, NULL, &before, &err), &err);
	assert_int_equal(fchmodat(scene->fd, "context", 0711, 0), 0);
	check_ok(context_digest(&sources, NULL, &after, &err), &err);
	assert_true(digest_equal(&before, &after));
}

static void a_mode_counts_as_chmod_makes_it(void **state)
{
	static const char *const chmods[] = {"0644", "u=rwX,go=rX", "u+w", NULL};
	const char *source = "a";
	struct scene *scene = *state;

	make_tree(scene, "context/a");
	for (size_t i = 0; i < sizeof(chmods) / sizeof(chmods[0]); i++) {
		struct context_sources sources = {
			.fd = scene->contextfd, .paths = &source, .count = 1, .chmod = chmods[i]};
		struct digest before;
		struct digest after;
		struct err err = {0};

		check_ok(context_digest(&sources, NULL, &before, &err), &err);
		assert_int_equal(fchmodat(scene->fd, "context/a/sub", 0775, 0), 0);
		assert_int_equal(fchmodat(scene->fd, "context/a/1.txt", 0664, 0), 0);
		check_ok(context_digest(&sources, NULL, &after, &err), &err);
		assert_int_equal(digest_equal(&before, &after), i < 2);
		assert_int_equal(fchmodat(scene->fd, "context/a/sub", 0755, 0), 0);
		assert_int_equal(fchmodat(scene->fd, "context/a/1.txt", 0744, 0), 0);
		check_ok(context_digest(&sources, NULL, &after, &err), &err);
		assert_int_equal(digest_equal(&before, &after), i == 0); /* X is of what runs */
		assert_int_equal(fchmodat(scene->fd, "context/a/1.txt", 0644, 0), 0);
	}
}

static void every_visible_change_counts(void **state)
{
	struct scene *scene = *state;
	struct digest seen[10];
	size_t n = 0;

	make_tree(scene, "context/a");
	seen[n++] = digest_source(scene, "a");
	assert_int_equal(fchmodat(scene->fd, "context/a/sub", 0700, 0), 0);
	seen[n++] = digest_source(scene, "a");
	assert_int_equal(fchmodat(scene->fd, "context/a/sub/f", 0755, 0), 0);
	seen[n++] = digest_source(scene, "a");
	assert_int_equal(renameat(scene->fd, "context/a/2.txt", scene->fd, "context/a/3.txt"), 0);
	seen[n++] = digest_source(scene, "a");
	scene_file(scene, "context/a/1.txt", "One", 0644);
	seen[n++] = digest_source(scene, "a");
	assert_int_equal(unlinkat(scene->fd, "context/a/l", 0), 0);
	seen[n++] = digest_source(scene, "a");
	scene_link(scene, "context/a/l", "3.txt");
	seen[n++] = digest_source(scene, "a");
	scene_dir(scene, "context/a/empty", 0755);
	seen[n++] = digest_source(scene, "a");
	assert_int_equal(linkat(scene->fd, "context/a/1.txt", scene->fd, "context/a/4.txt", 0), 0);
	seen[n++] = digest_source(scene, "a");
	assert_int_equal(unlinkat(scene->fd, "context/a/4.txt", 0), 0);
	scene_file(scene, "context/a/4.txt", "One", 0644);
	seen[n++] = digest_source(scene, "a");
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++)
			assert_false(digest_equal(&seen[i], &seen[j]));
	}
}

static void names_and_contents_do_not_run_together(void **state)
{
	/* one name ends with the digest of nothing */
	static const char *const trees[][4] = {
		{"a", "bc"},
		{"ab", "c"},
		{"a", "b", "c", ""},
		{"a", "", "b", "c"},
		{"a", "", "b", ""},
		{"ae3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855b", ""},
		{"a\nb", ""},
	};
	struct scene *scene = *state;
	struct digest seen[sizeof(trees) / sizeof(trees[0])];
	char path[128];

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		(void)snprintf(path, sizeof(path), "context/%zu", i);
		scene_dir(scene, path, 0755);
		for (size_t j = 0; j < 4 && trees[i][j]; j += 2) {
			(void)snprintf(path, sizeof(path), "context/%zu/%s", i, trees[i][j]);
			scene_file(scene, path, trees[i][j + 1], 0644);
		}
		(void)snprintf(path, sizeof(path), "%zu", i);
		seen[i] = digest_source(scene, path);
		for (size_t j = 0; j < i; j++)
			assert_false(digest_equal(&seen[i], &seen[j]));
	}
}

static void other_directories_do_not_count(void **state)
{
	struct scene *scene = *state;
	struct digest before;
	struct digest after;

	make_tree(scene, "context/a");
	before = digest_source(scene, "a");
	make_tree(scene, "context/other");
	(void)digest_source(scene, "other");
	after = digest_source(scene, "a");
	assert_true(digest_equal(&before, &after));
}

static void attributes_count(void **state)
{
	/* revision 2, cap_net_raw+ep */
	static const unsigned char capability[20] = {1, 0, 0, 2, 0, 0x20};
	struct scene *scene = *state;
	struct digest plain;
	struct digest marked;
	char path[64];

	scene_file(scene, "context/f", "x", 0755);
	plain = digest_source(scene, "f");
	(void)snprintf(path, sizeof(path), "%s/context/f", scene->path);
	if (setxattr(path, "user.a", "b", 1, 0) < 0)
		skip(); /* no attributes in /tmp */
	marked = digest_source(scene, "f");
	assert_false(digest_equal(&plain, &marked));
	assert_int_equal(removexattr(path, "user.a"), 0);
	if (setxattr(path, "security.capability", capability, sizeof(capability), 0) < 0)
		skip(); /* not root */
	marked = digest_source(scene, "f");
	assert_false(digest_equal(&plain, &marked));
}

static void holes_and_zeros_are_the_same(void **state)
{
	struct scene *scene = *state;
	auto_free char *zeros = calloc(1, 300000);
	auto_close int sparse =
		openat(scene->contextfd, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	auto_close int full = openat(scene->contextfd, "full", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct digest a;
	struct digest b;

	assert_non_null(zeros);
	assert_int_equal(fchmod(sparse, 0644) | fchmod(full, 0644), 0);
	assert_int_equal(ftruncate(sparse, 600003), 0);
	assert_int_equal(pwrite(sparse, "data", 4, 300000), 4);
	assert_int_equal(write(full, zeros, 300000), 300000);
	assert_int_equal(write(full, "data", 4), 4);
	assert_int_equal(write(full, zeros, 299999), 299999);
	a = digest_source(scene, "sparse");
	b = digest_source(scene, "full");
	assert_true(digest_equal(&a, &b));
	assert_int_equal(ftruncate(sparse, 600004), 0);
	a = digest_source(scene, "sparse");
	assert_false(digest_equal(&a, &b));
	assert_int_equal(ftruncate(sparse, (off_t)1 << 40), 0); /* takes no time */
	(void)digest_source(scene, "sparse");
}

static void links_stay_inside(void **state)
{
	struct scene *scene = *state;
	struct digest file;
	struct digest followed;
	struct digest none;
	const char *source = "p/x";
	struct err err = {0};

	scene_file(scene, "context/f", "inside", 0644);
	scene_dir(scene, "context/etc", 0755);
	scene_file(scene, "context/etc/passwd", "inside", 0644);
	scene_link(scene, "context/l", "f");
	scene_link(scene, "context/abs", "/etc/passwd");
	scene_link(scene, "context/up", "../../../../../etc/passwd");
	scene_link(scene, "context/p", "/proc/self/cwd");
	file = digest_source(scene, "f");
	followed = digest_source(scene, "l");
	assert_true(digest_equal(&file, &followed));
	followed = digest_source(scene, "abs");
	assert_true(digest_equal(&file, &followed));
	followed = digest_source(scene, "up");
	assert_true(digest_equal(&file, &followed));
	check_err(context_digest(&(struct context_sources){.fd = scene->contextfd,
							   .paths = &source,
							   .count = 1},
				 NULL, &none, &err),
		  &err, ERR_NOT_FOUND);
}

static void check_refused(const struct scene *scene, const char *source, enum err_kind kind,
			  const char *says)
{
	struct digest digest;
	struct err err = {0};

	check_err(context_digest(&(struct context_sources){.fd = scene->contextfd,
							   .paths = &source,
							   .count = 1},
				 NULL, &digest, &err),
		  &err, kind);
	if (!strstr(err.text, says))
		fail_msg("said \"%s\", not \"%s\"", err.text, says);
}

static void what_is_missing_is_named_with_its_neighbour(void **state)
{
	struct scene *scene = *state;

	make_tree(scene, "context/src");
	scene_link(scene, "context/dangling", "nowhere");
	check_refused(scene, "scr", ERR_NOT_FOUND,
		      "COPY: scr is not in the context; did you mean src? (the context is /tmp/");
	check_refused(scene, "src/1.tx", ERR_NOT_FOUND, "did you mean src/1.txt?");
	check_refused(scene, "src/sbu/f", ERR_NOT_FOUND, "did you mean src/sub/f?");
	check_refused(scene, "src/sbu/zzz", ERR_NOT_FOUND, "did you mean src/sub?");
	check_refused(scene, "src/1.txt/x", ERR_NOT_FOUND, "src/1.txt/x is not in the context");
	check_refused(scene, "src/1.txt/x", ERR_NOT_FOUND, "1.txt is no directory");
	check_refused(scene, "dangling", ERR_NOT_FOUND,
		      "dangling is a link whose target is missing");
	scene_link(scene, "context/src/far", "../nowhere");
	check_refused(scene, "src/far", ERR_NOT_FOUND, "far is a link whose target is missing");
	scene_link(scene, "context/out", "../../nowhere");
	check_refused(scene, "out", ERR_NOT_FOUND, "out is a link that leads elsewhere");
	scene_link(scene, "context/ring", "ring");
	check_refused(scene, "ring", ERR_REFUSED, "too many symlinks");
	check_refused(scene, "zzzzzzz", ERR_NOT_FOUND, "zzzzzzz is not in the context");
}

static void fifos_count_and_sockets_are_left_out(void **state)
{
	struct scene *scene = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct digest digest;
	struct digest empty;
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	scene_dir(scene, "context/a", 0755);
	scene_dir(scene, "context/b", 0755);
	assert_int_equal(mkfifoat(scene->fd, "context/a/pipe", 0644), 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/context/b/sock",
		       scene->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	scene_dir(scene, "context/none", 0755);
	empty = digest_source(scene, "none");
	digest = digest_source(scene, "b");
	assert_true(digest_equal(&digest, &empty));
	digest = digest_source(scene, "a");
	assert_false(digest_equal(&digest, &empty));
	digest = digest_source(scene, "a/pipe");
	check_refused(scene, "b/sock", ERR_REFUSED,
		      "sock: COPY takes files, directories and links, this is a socket");
}

static void devices_of_a_context_are_refused(void **state)
{
	struct scene *scene = *state;

	scene_dir(scene, "context/a", 0755);
	if (mknodat(scene->fd, "context/a/null", S_IFCHR | 0666, makedev(1, 3)) < 0)
		skip();
	check_refused(scene, "a", ERR_REFUSED,
		      "null: COPY takes files, directories and links, this is a device");
}

static void an_ignore_file_is_judged_at_once(void **state)
{
	struct scene *scene = *state;
	struct err err = {0};

	check_ok(context_check(scene->contextfd, &err), &err);
	scene_file(scene, "context/.dockerignore", "", 0644);
	check_ok(context_check(scene->contextfd, &err), &err);
	scene_file(scene, "context/.dockerignore", "f\n", 0644);
	check_ok(context_check(scene->contextfd, &err), &err);
	scene_file(scene, "context/.dockerignore", "f\n\na[\n", 0644);
	check_err(context_check(scene->contextfd, &err), &err, ERR_REFUSED);
	assert_string_equal(err.text,
			    ".dockerignore line 3: a[ is no pattern: a [ or a \\ in it has no end");
}

static void an_ignore_file_may_be_a_link_inside_the_context(void **state)
{
	struct scene *scene = *state;

	scene_file(scene, "context/f", "f", 0644);
	scene_file(scene, "context/.gitignore", "f\n", 0644);
	scene_link(scene, "context/.dockerignore", ".gitignore");
	check_refused(scene, "f", ERR_NOT_FOUND, "f is hidden by .dockerignore line 1");
	assert_int_equal(unlinkat(scene->contextfd, ".dockerignore", 0), 0);
	scene_link(scene, "context/.dockerignore", "../of-all-projects");
	scene_file(scene, "of-all-projects", "f\n", 0644);
	check_refused(scene, "f", ERR_REFUSED, ".dockerignore is a link that leads out");
}

static void several_sources_are_in_order(void **state)
{
	static const char *const ab[] = {"a", "b"};
	static const char *const ba[] = {"b", "a"};
	struct scene *scene = *state;
	struct digest first;
	struct digest second;
	struct err err = {0};

	scene_file(scene, "context/a", "a", 0644);
	scene_file(scene, "context/b", "b", 0644);
	check_ok(context_digest(
			 &(struct context_sources){.fd = scene->contextfd, .paths = ab, .count = 2},
			 NULL, &first, &err),
		 &err);
	check_ok(context_digest(
			 &(struct context_sources){.fd = scene->contextfd, .paths = ba, .count = 2},
			 NULL, &second, &err),
		 &err);
	assert_false(digest_equal(&first, &second));
	check_err(context_digest(&(struct context_sources){.fd = -1, .paths = ab, .count = 2}, NULL,
				 &second, &err),
		  &err, ERR_INVALID);
}

static void names_of_any_bytes_are_read(void **state)
{
	struct scene *scene = *state;
	char name[300] = "context/d/";

	scene_dir(scene, "context/d", 0755);
	scene_file(scene, "context/d/\xff\xfe", "x", 0644);
	memset(name + 10, 'n', 255);
	scene_file(scene, name, "x", 0644);
	(void)digest_source(scene, "d");
}

static void depth_has_a_ceiling(void **state)
{
	struct scene *scene = *state;
	int at = openat(scene->contextfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < CONTEXT_DEPTH_MAX + 1; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0755), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(at);
		at = next;
	}
	(void)close(at);
	check_refused(scene, "d", ERR_LIMIT, "nested deeper than");
}

static void a_cancel_ends_it(void **state)
{
	struct scene *scene = *state;
	const char *source = "a";
	struct cancel cancel;
	struct digest digest;
	struct err err = {0};

	make_tree(scene, "context/a");
	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	check_err(context_digest(&(struct context_sources){.fd = scene->contextfd,
							   .paths = &source,
							   .count = 1},
				 &cancel, &digest, &err),
		  &err, ERR_CANCELLED);
	cancel_done(&cancel);
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(place_and_time_do_not_count),
		SCENE_TEST(of_a_whole_directory_its_own_mode_counts_too),
		SCENE_TEST(a_mode_counts_as_chmod_makes_it),
		SCENE_TEST(every_visible_change_counts),
		SCENE_TEST(names_and_contents_do_not_run_together),
		SCENE_TEST(other_directories_do_not_count),
		SCENE_TEST(attributes_count),
		SCENE_TEST(holes_and_zeros_are_the_same),
		SCENE_TEST(links_stay_inside),
		SCENE_TEST(what_is_missing_is_named_with_its_neighbour),
		SCENE_TEST(fifos_count_and_sockets_are_left_out),
		SCENE_TEST(devices_of_a_context_are_refused),
		SCENE_TEST(an_ignore_file_is_judged_at_once),
		SCENE_TEST(an_ignore_file_may_be_a_link_inside_the_context),
		SCENE_TEST(several_sources_are_in_order),
		SCENE_TEST(names_of_any_bytes_are_read),
		SCENE_TEST(depth_has_a_ceiling),
		SCENE_TEST(a_cancel_ends_it),
	};

	return cmocka_run_group_tests_name("bake/context", tests, NULL, NULL);
}

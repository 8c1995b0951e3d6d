/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of its context a COPY takes: wildcards, .dockerignore, --exclude, --parents. */
#include "bake/copy.h"
#include "tests/bake/scene.h"

#include <sys/sysmacros.h>

/* context/NAME for each, directories where a slash ends it; the list ends with NULL. */
static void make(const struct scene *scene, const char *const *names)
{
	for (; *names; names++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "context/%s", *names);
		if (path[strlen(path) - 1] == '/') {
			path[strlen(path) - 1] = '\0';
			scene_dir(scene, path, 0755);
		} else {
			scene_file(scene, path, *names, 0644);
		}
	}
}

static char listing[4096];

static int list_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *below = strstr(path, "/root/");
	size_t len = strlen(listing);

	(void)ftw;
	if (below)
		(void)snprintf(listing + len, sizeof(listing) - len, "%s%s\n", below + 6,
			       type == FTW_D          ? "/"
			       : S_ISLNK(st->st_mode) ? "@"
						      : "");
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All that the root holds, sorted, a blank behind each. */
static void check_root(const struct scene *scene, const char *expected)
{
	char path[64];
	char *lines[128];
	char got[4096] = "";
	size_t count = 0;
	char *save;

	listing[0] = '\0';
	(void)snprintf(path, sizeof(path), "%s/root", scene->path);
	assert_int_equal(nftw(path, list_entry, 16, FTW_PHYS), 0);
	for (char *line = strtok_r(listing, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		lines[count++] = line;
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < count; i++)
		(void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", lines[i]);
	assert_string_equal(got, expected);
}

struct choice {
	const char *source;
	const char *destination;
	const char *excludes[4];
	bool parents;
};

static int try_copy(const struct scene *scene, const struct choice *choice, struct err *err)
{
	struct digest digest;
	struct copy_spec spec = {
		.sources =
			{
				.fd = scene->contextfd,
				.paths = &choice->source,
				.count = 1,
				.excludes = choice->excludes,
				.parents = choice->parents,
			},
		.destination = choice->destination,
		.workdir = "/",
		.content = &digest,
	};

	while (choice->excludes[spec.sources.exclude_count])
		spec.sources.exclude_count++;
	if (context_digest(&spec.sources, NULL, &digest, err) < 0)
		return -1;
	return copy_into(scene->rootfd, &spec, err); /* what is copied is what was named */
}

static void copy(const struct scene *scene, const struct choice choice)
{
	struct err err = {0};

	check_ok(try_copy(scene, &choice, &err), &err);
}

static void check_refused(const struct scene *scene, const struct choice choice, enum err_kind kind,
			  const char *says)
{
	struct err err = {0};

	check_err(try_copy(scene, &choice, &err), &err, kind);
	if (!strstr(err.text, says))
		fail_msg("said \"%s\", not \"%s\"", err.text, says);
}

static void wildcards_take_all_that_match_in_order(void **state)
{
	static const char *const names[] = {"a.c", "b.c", "c.h",   "d/", "d/x.c",
					    "d/y", "e/",  "e/x.c", ".h", NULL};
	struct scene *scene = *state;

	make(scene, names);
	scene_link(scene, "context/l.c", "d/y");
	copy(scene, (struct choice){"*.c", "/top/"});
	check_root(scene, "top/ top/a.c top/b.c top/l.c ");
	scene_check_file(scene, "root/top/l.c", "d/y", 0644); /* a source is followed */
	copy(scene, (struct choice){"*/x.c", "/below/"});
	scene_check_file(scene, "root/below/x.c", "e/x.c", 0644); /* the later one wins */
	copy(scene, (struct choice){"[de]", "/both"});
	check_root(scene, "below/ below/x.c both/ both/x.c both/y top/ top/a.c top/b.c top/l.c ");
	copy(scene, (struct choice){"?.h", "/one"});
	scene_check_file(scene, "root/one", "c.h", 0644);
	check_refused(scene, (struct choice){"*.c", "/two"}, ERR_REFUSED,
		      "/two is no directory; end it with /");
}

static void a_wildcard_without_a_match_is_no_error(void **state)
{
	static const char *const names[] = {"a", "d/", NULL};
	struct scene *scene = *state;

	make(scene, names);
	copy(scene, (struct choice){"nomatch*", "/"});
	copy(scene, (struct choice){"no/such/*", "/"});
	copy(scene, (struct choice){"d/*", "/x/"});
	copy(scene, (struct choice){"a/*", "/x/"});
	check_root(scene, "");
}

static void names_with_brackets_are_reached(void **state)
{
	static const char *const names[] = {"arr[0].txt", "a*b", "axb", NULL};
	struct scene *scene = *state;

	make(scene, names);
	copy(scene, (struct choice){"arr[[]0].txt", "/r/"});
	copy(scene, (struct choice){"a[*]b", "/r/"});
	check_root(scene, "r/ r/a*b r/arr[0].txt ");
}

static void names_that_a_wildcard_found_are_in_the_digest(void **state)
{
	static const char *const names[] = {"a1", NULL};
	struct scene *scene = *state;
	const char *source = "a*";
	const struct context_sources sources = {
		.fd = scene->contextfd, .paths = &source, .count = 1};
	struct digest before;
	struct digest after;
	struct err err = {0};

	make(scene, names);
	check_ok(context_digest(&sources, NULL, &before, &err), &err);
	assert_int_equal(renameat(scene->fd, "context/a1", scene->fd, "context/a2"), 0);
	check_ok(context_digest(&sources, NULL, &after, &err), &err);
	assert_false(digest_equal(&before, &after));
}

static void what_is_ignored_is_not_there(void **state)
{
	static const char *const names[] = {"keep/",       "keep/a",     "log/",   "log/x.log",
					    "log/sub/",    "log/sub/in", "secret", "z.log",
					    "log/sub/out", NULL};
	struct scene *scene = *state;

	make(scene, names);
	scene_file(scene, "context/.dockerignore",
		   "# what nobody needs\nlog\n!log/sub/in\n*.log\nsecret\n.dockerignore\n", 0644);
	copy(scene, (struct choice){".", "/"});
	check_root(scene, "keep/ keep/a log/ log/sub/ log/sub/in ");
	check_refused(scene, (struct choice){"secret", "/x"}, ERR_NOT_FOUND,
		      "secret is hidden by .dockerignore line 5 (secret) (the context is /tmp/");
	check_refused(scene, (struct choice){"log/x.lgo", "/x"}, ERR_NOT_FOUND,
		      "log/x.lgo is not in the context; did you mean log/x.log?");
	check_refused(scene, (struct choice){"log/x.log", "/x"}, ERR_NOT_FOUND,
		      "log/x.log is hidden by .dockerignore line 2 (log)");
	copy(scene, (struct choice){"*.log", "/x"});
	copy(scene, (struct choice){"log/sub", "/sub"});
	copy(scene, (struct choice){"log/sub/in", "/in"});
	check_root(scene, "in keep/ keep/a log/ log/sub/ log/sub/in sub/ sub/in ");
	scene_link(scene, "context/door", "secret");
	check_refused(scene, (struct choice){"door", "/x"}, ERR_NOT_FOUND,
		      "door is hidden by .dockerignore line 5");
}

static void a_hidden_directory_that_shows_nothing_is_not_there(void **state)
{
	static const char *const names[] = {"log/", "log/x", NULL};
	struct scene *scene = *state;

	make(scene, names);
	scene_file(scene, "context/.dockerignore", "log\n!log/y\n", 0644);
	check_refused(scene, (struct choice){"log", "/l"}, ERR_NOT_FOUND,
		      "log is hidden by .dockerignore line 1 (log)");
}

static void one_file_of_all_is_shown(void **state)
{
	static const char *const names[] = {"source.txt", "other.txt", "d/", "d/source.txt", NULL};
	struct scene *scene = *state;

	make(scene, names);
	scene_file(scene, "context/.dockerignore", "**\n!./source.txt\n", 0644);
	copy(scene, (struct choice){".", "/"});
	check_root(scene, "source.txt ");
}

static void only_what_is_shown_below_a_hidden_directory_is_taken(void **state)
{
	static const char *const names[] = {"testdir/", "testdir/test1.txt", "testdir/test2.txt",
					    "test3.txt", NULL};
	struct scene *scene = *state;

	make(scene, names);
	scene_file(scene, "context/.dockerignore", "test*\n!*/test1*\n.dockerignore\n", 0644);
	copy(scene, (struct choice){".", "/"});
	check_root(scene, "testdir/ testdir/test1.txt ");
}

static void folders_are_hidden_however_they_are_written(void **state)
{
	static const char *const names[] = {"folder1/", "folder1/f", "folder2/", "folder2/f",
					    "folder3/", "folder3/f", "folder4/", "folder4/f",
					    "folder5/", "folder5/f", NULL};
	struct scene *scene = *state;

	make(scene, names);
	scene_file(scene, "context/.dockerignore",
		   "/folder1/\n/folder2\nfolder3/\nfolder4\n.dockerignore\n", 0644);
	copy(scene, (struct choice){".", "/"});
	check_root(scene, "folder5/ folder5/f ");
}

static void an_image_is_not_filtered_by_its_dockerignore(void **state)
{
	static const char *const names[] = {"keep", "other", NULL};
	struct scene *scene = *state;
	const char *source = ".";
	struct copy_spec spec = {
		.sources = {.fd = scene->contextfd, .paths = &source, .count = 1, .image = true},
		.destination = "/",
		.workdir = "/",
	};
	struct err err = {0};

	make(scene, names);
	scene_file(scene, "context/.dockerignore", "*\n!keep\n", 0644);
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	check_root(scene, ".dockerignore keep other ");
}

static void excludes_are_relative_to_the_source(void **state)
{
	static const char *const names[] = {
		"src/",       "src/a.c",       "src/a.o",  "src/sub/",  "src/sub/b.o", "src/sub/c",
		"src/sub/d/", "src/sub/d/e.o", "src/doc/", "src/doc/x", "src/doc/y",   NULL};
	struct scene *scene = *state;

	make(scene, names);
	copy(scene, (struct choice){"src", "/", {"*.o", "sub/d"}});
	check_root(scene, "a.c doc/ doc/x doc/y sub/ sub/b.o sub/c ");
	copy(scene, (struct choice){"src", "/deep", {"**/*.o", "doc", "!doc/x"}});
	check_root(scene, "a.c deep/ deep/a.c deep/doc/ deep/doc/x deep/sub/ deep/sub/c "
			  "deep/sub/d/ doc/ doc/x doc/y sub/ sub/b.o sub/c ");
}

static void excludes_hold_for_what_a_wildcard_matched(void **state)
{
	static const char *const names[] = {"home.txt", "home.c", "hom/", "hom/a.txt", NULL};
	struct scene *scene = *state;

	make(scene, names);
	copy(scene, (struct choice){"hom*", "/my/", {"*.txt"}});
	check_root(scene, "my/ my/home.c ");
	copy(scene, (struct choice){"home.txt", "/my/", {"*.txt"}}); /* it is named */
	check_root(scene, "my/ my/home.c my/home.txt ");
	copy(scene, (struct choice){"ho?", "/none", {"*"}}); /* the directory is made */
	copy(scene, (struct choice){"ho?", "/none", {"hom"}});
	copy(scene, (struct choice){"ho*", "/some/", {"hom", "!hom/a.txt", "*.c"}});
	check_root(scene, "my/ my/home.c my/home.txt none/ some/ some/a.txt some/home.txt ");
}

static void parents_are_kept_below_the_pivot(void **state)
{
	static const char *const names[] = {"x/",     "x/y/",    "x/y/a.txt", "x/y/b.c", "x/z/",
					    "x/z/w/", "x/z/w/f", "x/q.txt",   NULL};
	struct scene *scene = *state;

	make(scene, names);
	assert_int_equal(fchmodat(scene->fd, "context/x/y", 0700, 0), 0);
	copy(scene, (struct choice){"./x/./y/*.txt", "/p/", {NULL}, true});
	check_root(scene, "p/ p/y/ p/y/a.txt ");
	assert_int_equal(scene_stat(scene, "root/p/y").st_mode & 07777, 0700); /* the source's */
	copy(scene, (struct choice){"x/z/w/f", "/p", {NULL}, true});
	check_root(scene, "p/ p/x/ p/x/z/ p/x/z/w/ p/x/z/w/f p/y/ p/y/a.txt ");
	copy(scene, (struct choice){"./**/*.txt", "/q", {"x/y"}, true});
	copy(scene, (struct choice){"x/./z", "/r", {NULL}, true});
	check_root(scene, "p/ p/x/ p/x/z/ p/x/z/w/ p/x/z/w/f p/y/ p/y/a.txt q/ q/x/ q/x/q.txt "
			  "r/ r/z/ r/z/w/ r/z/w/f ");
	check_refused(scene, (struct choice){"x/none", "/s", {NULL}, true}, ERR_NOT_FOUND,
		      "x/none is not in the context");
	check_refused(scene, (struct choice){"nx/./y", "/s", {NULL}, true}, ERR_NOT_FOUND,
		      "nx/./y is not in the context");
	copy(scene, (struct choice){"x/none*", "/s/", {NULL}, true});
	scene_link(scene, "context/door", "x");
	check_refused(scene, (struct choice){"door/q.txt", "/t", {NULL}, true}, ERR_REFUSED,
		      "a directory in it is a symlink");
	copy(scene, (struct choice){"door/./q.txt", "/t/", {NULL}, true});
	assert_true(scene_has(scene, "root/t/q.txt"));
}

static void fifos_are_made_again(void **state)
{
	struct scene *scene = *state;

	scene_dir(scene, "context/d", 0755);
	assert_int_equal(mkfifoat(scene->fd, "context/d/pipe", 0600), 0);
	assert_int_equal(fchmodat(scene->fd, "context/d/pipe", 0622, 0), 0);
	copy(scene, (struct choice){"d", "/e"});
	assert_int_equal(scene_stat(scene, "root/e/pipe").st_mode, S_IFIFO | 0622);
	copy(scene, (struct choice){"d/pipe", "/named"});
	assert_int_equal(scene_stat(scene, "root/named").st_mode, S_IFIFO | 0622);
}

static void an_images_owners_and_devices_are_kept(void **state)
{
	struct scene *scene = *state;
	const char *source = "d";
	struct copy_spec spec = {
		.sources = {.fd = scene->contextfd, .paths = &source, .count = 1, .image = true},
		.destination = "/new/dir",
		.workdir = "/",
		.first_id = 100000,
	};
	struct err err = {0};
	struct stat st;

	scene_dir(scene, "context/d", 0755);
	scene_dir(scene, "context/d/sub", 0711);
	scene_file(scene, "context/d/f", "x", 0640);
	if (mknodat(scene->fd, "context/d/null", S_IFCHR | 0666, makedev(1, 3)) < 0)
		skip();
	assert_int_equal(fchownat(scene->fd, "context/d/f", 100, 200, 0), 0);
	assert_int_equal(fchownat(scene->fd, "context/d/sub", 101, 201, 0), 0);
	assert_int_equal(fchownat(scene->fd, "context/d/null", 5, 6, 0), 0);
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	st = scene_stat(scene, "root/new/dir/f");
	assert_int_equal(st.st_uid, 100100);
	assert_int_equal(st.st_gid, 100200);
	assert_int_equal(scene_stat(scene, "root/new/dir/sub").st_uid, 100101);
	assert_int_equal(scene_stat(scene, "root/new").st_uid, 100000);
	assert_int_equal(scene_stat(scene, "root/new/dir").st_uid, 100000);
	st = scene_stat(scene, "root/new/dir/null");
	assert_int_equal(st.st_rdev, makedev(1, 3));
	assert_int_equal(st.st_uid, 100005);
	spec.chown = "7";
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	assert_int_equal(scene_stat(scene, "root/new/dir/f").st_gid, 100007);
}

static void a_device_that_means_a_whiteout_is_refused(void **state)
{
	struct scene *scene = *state;
	const char *source = "d";
	struct copy_spec spec = {
		.sources = {.fd = scene->contextfd, .paths = &source, .count = 1, .image = true},
		.destination = "/e",
		.workdir = "/",
	};
	struct err err = {0};

	scene_dir(scene, "context/d", 0755);
	assert_int_equal(mknodat(scene->fd, "context/d/w", S_IFCHR | 0600, 0), 0);
	check_err(copy_into(scene->rootfd, &spec, &err), &err, ERR_REFUSED);
	assert_string_equal(err.text, "COPY: /e/w: is a character device 0:0, which a layer "
				      "cannot hold");
}

static void names_of_an_images_owners_are_in_its_digest(void **state)
{
	struct scene *scene = *state;
	const char *source = "f";
	struct context_sources sources = {
		.fd = scene->contextfd, .paths = &source, .count = 1, .image = true};
	struct digest before;
	struct digest after;
	struct err err = {0};

	scene_file(scene, "context/f", "x", 0640);
	check_ok(context_digest(&sources, NULL, &before, &err), &err);
	assert_int_equal(fchownat(scene->fd, "context/f", 100, 200, 0), 0);
	check_ok(context_digest(&sources, NULL, &after, &err), &err);
	assert_false(digest_equal(&before, &after));
	sources.image = false; /* a context's owners are nobody's business */
	check_ok(context_digest(&sources, NULL, &before, &err), &err);
	assert_int_equal(fchownat(scene->fd, "context/f", 0, 0, 0), 0);
	check_ok(context_digest(&sources, NULL, &after, &err), &err);
	assert_true(digest_equal(&before, &after));
}

static void symbolic_modes_are_of_each_file(void **state)
{
	struct scene *scene = *state;
	const char *source = "d";
	struct copy_spec spec = {
		.sources = {.fd = scene->contextfd,
			    .paths = &source,
			    .count = 1,
			    .chmod = "u=rwX,go=rX"},
		.destination = "/new/dir",
		.workdir = "/",
	};
	mode_t before = umask(0077);
	struct err err = {0};

	scene_dir(scene, "context/d", 0700);
	scene_dir(scene, "context/d/sub", 0700);
	scene_file(scene, "context/d/text", "x", 0600);
	scene_file(scene, "context/d/tool", "x", 0700);
	scene_link(scene, "context/d/l", "tool");
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	assert_int_equal(scene_stat(scene, "root/new").st_mode & 07777, 0755);
	assert_int_equal(scene_stat(scene, "root/new/dir/sub").st_mode & 07777, 0755);
	assert_int_equal(scene_stat(scene, "root/new/dir/text").st_mode & 07777, 0644);
	assert_int_equal(scene_stat(scene, "root/new/dir/tool").st_mode & 07777, 0755);
	assert_int_equal(scene_stat(scene, "root/new/dir/l").st_mode & 07777, 0777);
	(void)umask(before);
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(wildcards_take_all_that_match_in_order),
		SCENE_TEST(a_wildcard_without_a_match_is_no_error),
		SCENE_TEST(names_with_brackets_are_reached),
		SCENE_TEST(names_that_a_wildcard_found_are_in_the_digest),
		SCENE_TEST(what_is_ignored_is_not_there),
		SCENE_TEST(a_hidden_directory_that_shows_nothing_is_not_there),
		SCENE_TEST(one_file_of_all_is_shown),
		SCENE_TEST(only_what_is_shown_below_a_hidden_directory_is_taken),
		SCENE_TEST(folders_are_hidden_however_they_are_written),
		SCENE_TEST(an_image_is_not_filtered_by_its_dockerignore),
		SCENE_TEST(excludes_are_relative_to_the_source),
		SCENE_TEST(excludes_hold_for_what_a_wildcard_matched),
		SCENE_TEST(parents_are_kept_below_the_pivot),
		SCENE_TEST(fifos_are_made_again),
		SCENE_TEST(an_images_owners_and_devices_are_kept),
		SCENE_TEST(a_device_that_means_a_whiteout_is_refused),
		SCENE_TEST(names_of_an_images_owners_are_in_its_digest),
		SCENE_TEST(symbolic_modes_are_of_each_file),
	};

	if (geteuid() != 0)
		return 125; /* owners are root's to give */
	return cmocka_run_group_tests_name("bake/copy_choice", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/copy.h"

#include "bake/context.h"
#include "tests/bake/scene.h"

#include <sys/xattr.h>

#define SKIPPED 125

static struct copy_spec make_spec(const struct scene *scene, const char *const *sources,
				  size_t count, const char *destination)
{
	return (struct copy_spec){
		.sources = {.fd = scene->contextfd, .paths = sources, .count = count},
		.destination = destination,
		.workdir = "/",
	};
}

static void copy(const struct scene *scene, const char *source, const char *destination)
{
	struct copy_spec spec = make_spec(scene, &source, 1, destination);
	struct err err = {0};

	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
}

static void copy_flags(const struct scene *scene, const char *source, const char *destination,
		       const char *chown, const char *chmod)
{
	struct copy_spec spec = make_spec(scene, &source, 1, destination);
	struct err err = {0};

	spec.chown = chown;
	spec.sources.chmod = chmod;
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
}

static void check_refused(const struct scene *scene, const struct copy_spec *spec,
			  enum err_kind kind, const char *says)
{
	struct err err = {0};

	check_err(copy_into(scene->rootfd, spec, &err), &err, kind);
	if (!strstr(err.text, says))
		fail_msg("said \"%s\", not \"%s\"", err.text, says);
}

static void check_owner(const struct scene *scene, const char *path, uid_t uid, gid_t gid)
{
	struct stat st = scene_stat(scene, path);

	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
}

static void check_mode(const struct scene *scene, const char *path, mode_t mode)
{
	assert_int_equal(scene_stat(scene, path).st_mode & 07777, mode);
}

static void a_file_goes_where_the_destination_says(void **state)
{
	struct scene *scene = *state;
	const char *source = "f";
	struct copy_spec spec = make_spec(scene, &source, 1, "w");
	struct err err = {0};

	scene_file(scene, "context/f", "data", 0640);
	copy(scene, "f", "/name");
	scene_check_file(scene, "root/name", "data", 0640);
	copy(scene, "f", "/dir/");
	scene_check_file(scene, "root/dir/f", "data", 0640);
	check_mode(scene, "root/dir", 0755);
	copy(scene, "f", "/dir"); /* exists by now */
	copy(scene, "f", "/a/b/c");
	scene_check_file(scene, "root/a/b/c", "data", 0640);
	copy(scene, "f", "/a/b/c/../../x/./y");
	scene_check_file(scene, "root/a/x/y", "data", 0640);
	copy(scene, "f", "../../../up");
	scene_check_file(scene, "root/up", "data", 0640);
	spec.workdir = "/work/dir";
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	scene_check_file(scene, "root/work/dir/w", "data", 0640);
	spec.destination = ".";
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	scene_check_file(scene, "root/work/dir/f", "data", 0640);
	assert_int_equal(unlinkat(scene->fd, "root/work/dir/f", 0), 0);
	spec.destination = "./";
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	scene_check_file(scene, "root/work/dir/f", "data", 0640);
	assert_int_equal(unlinkat(scene->fd, "root/work/dir/f", 0), 0);
	spec.destination = "";
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	scene_check_file(scene, "root/work/dir/f", "data", 0640);
	copy(scene, "f", "/");
	scene_check_file(scene, "root/f", "data", 0640);
}

static void a_directory_gives_its_contents(void **state)
{
	struct scene *scene = *state;

	scene_dir(scene, "context/d", 0700);
	scene_dir(scene, "context/d/sub", 0750);
	scene_file(scene, "context/d/sub/f", "deep", 0600);
	scene_file(scene, "context/d/x", "x", 0755);
	scene_link(scene, "context/d/l", "../elsewhere");
	copy(scene, "d", "/new");
	check_mode(scene, "root/new", 0755); /* not the source's */
	check_mode(scene, "root/new/sub", 0750);
	scene_check_file(scene, "root/new/sub/f", "deep", 0600);
	scene_check_file(scene, "root/new/x", "x", 0755);
	scene_check_link(scene, "root/new/l", "../elsewhere");
	copy(scene, "d/", "/slash");
	scene_check_file(scene, "root/slash/x", "x", 0755);
	copy(scene, "d/.", "/again/");
	scene_check_file(scene, "root/again/x", "x", 0755);
	copy(scene, "/", "/all");
	scene_check_file(scene, "root/all/d/x", "x", 0755);
}

static void an_existing_top_keeps_all_and_nested_ones_follow_the_source(void **state)
{
	const struct timespec old[] = {{5000, 0}, {5000, 0}};
	struct scene *scene = *state;

	scene_dir(scene, "root/tmp", 01777);
	scene_dir(scene, "root/tmp/sub", 0711);
	scene_dir(scene, "root/tmp/only", 0700);
	scene_file(scene, "root/tmp/sub/old", "old", 0600);
	assert_int_equal(fchownat(scene->fd, "root/tmp", 7, 8, 0), 0);
	assert_int_equal(fchownat(scene->fd, "root/tmp/sub", 7, 8, 0), 0);
	assert_int_equal(utimensat(scene->fd, "root/tmp", old, 0), 0);
	scene_dir(scene, "context/d", 0700);
	scene_dir(scene, "context/d/sub", 0750);
	scene_file(scene, "context/d/sub/new", "new", 0644);
	assert_int_equal(utimensat(scene->fd, "context/d/sub", old, 0), 0);
	copy(scene, "d", "tmp");
	check_mode(scene, "root/tmp", 01777);
	check_owner(scene, "root/tmp", 7, 8);
	assert_int_equal(scene_stat(scene, "root/tmp").st_mtim.tv_sec, 5000);
	check_mode(scene, "root/tmp/sub", 0750);
	check_owner(scene, "root/tmp/sub", 0, 0);
	assert_int_equal(scene_stat(scene, "root/tmp/sub").st_mtim.tv_sec, 5000);
	check_mode(scene, "root/tmp/only", 0700);
	scene_check_file(scene, "root/tmp/sub/old", "old", 0600);
	scene_check_file(scene, "root/tmp/sub/new", "new", 0644);
}

/* Those of the top stay, those below it are the source's. */
static void attributes_of_directories_follow_the_source_below_the_top(void **state)
{
	struct scene *scene = *state;
	char source[64];
	char top[64];
	char below[64];
	char got[8];

	scene_dir(scene, "context/d", 0755);
	scene_dir(scene, "context/d/sub", 0755);
	scene_dir(scene, "root/x", 0755);
	scene_dir(scene, "root/x/sub", 0755);
	(void)snprintf(source, sizeof(source), "%s/context/d", scene->path);
	(void)snprintf(top, sizeof(top), "%s/root/x", scene->path);
	(void)snprintf(below, sizeof(below), "%s/root/x/sub", scene->path);
	assert_int_equal(setxattr(source, "user.a", "1", 1, 0), 0);
	(void)strncat(source, "/sub", sizeof(source) - strlen(source) - 1);
	assert_int_equal(setxattr(source, "user.a", "2", 1, 0), 0);
	copy(scene, "d", "/x");
	assert_int_equal(getxattr(top, "user.a", got, sizeof(got)), -1);
	assert_int_equal(getxattr(below, "user.a", got, sizeof(got)), 1);
	assert_int_equal(got[0], '2');
}

static void a_whole_directory_becomes_itself(void **state)
{
	const struct timespec old[] = {{5000, 0}, {5000, 0}};
	struct scene *scene = *state;
	const char *source = "d";
	struct copy_spec spec = make_spec(scene, &source, 1, "/bound");
	struct digest named;
	struct err err = {0};

	scene_dir(scene, "context/d", 0711);
	scene_file(scene, "context/d/f", "f", 0644);
	assert_int_equal(utimensat(scene->fd, "context/d", old, 0), 0);
	spec.sources.whole = true;
	check_ok(context_digest(&spec.sources, NULL, &named, &err), &err);
	spec.content = &named;
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	check_mode(scene, "root/bound", 0711);
	check_owner(scene, "root/bound", 0, 0);
	assert_int_equal(scene_stat(scene, "root/bound").st_mtim.tv_sec, 5000);
	scene_check_file(scene, "root/bound/f", "f", 0644);
}

static void what_is_there_is_replaced_never_written_through(void **state)
{
	struct scene *scene = *state;
	const char *source = "d";
	struct copy_spec spec = make_spec(scene, &source, 1, "/x");

	scene_file(scene, "root/victim", "safe", 0600);
	scene_dir(scene, "root/x", 0755);
	scene_link(scene, "root/x/f", "../victim");
	assert_int_equal(linkat(scene->fd, "root/victim", scene->fd, "root/x/g", 0), 0);
	scene_dir(scene, "context/d", 0755);
	scene_file(scene, "context/d/f", "new", 0644);
	scene_file(scene, "context/d/g", "new", 0644);
	copy(scene, "d", "/x");
	scene_check_file(scene, "root/victim", "safe", 0600);
	scene_check_file(scene, "root/x/f", "new", 0644);
	scene_check_file(scene, "root/x/g", "new", 0644);
	copy(scene, "d/f", "/x/"); /* joined below the destination: replaced as well */
	/* directory over file, file over directory */
	scene_dir(scene, "context/d/k", 0755);
	scene_file(scene, "root/x/k", "file", 0644);
	check_refused(scene, &spec, ERR_REFUSED, "/x/k: is no directory");
	assert_int_equal(unlinkat(scene->fd, "root/x/k", 0), 0);
	assert_int_equal(unlinkat(scene->fd, "root/x/f", 0), 0);
	scene_dir(scene, "root/x/f", 0755);
	check_refused(scene, &spec, ERR_REFUSED, "/x/f: is a directory and cannot become a file");
	spec.destination = "/victim";
	check_refused(scene, &spec, ERR_REFUSED, "/victim is no directory");
	spec.destination = "/victim/below";
	check_refused(scene, &spec, ERR_REFUSED, "/victim is no directory");
}

static void the_destination_is_resolved_to_its_last_part(void **state)
{
	struct scene *scene = *state;

	scene_file(scene, "context/f", "new", 0644);
	scene_file(scene, "root/t", "old", 0600);
	scene_link(scene, "root/link", "/t");
	copy(scene, "f", "/link");
	scene_check_link(scene, "root/link", "/t");
	scene_check_file(scene, "root/t", "new", 0644);
	/* a link that leads nowhere yet, through directories that are missing */
	scene_link(scene, "root/run", "../../var/run/dir");
	copy(scene, "f", "/run/f");
	scene_check_file(scene, "root/var/run/dir/f", "new", 0644);
	scene_link(scene, "root/leaf", "var/leaf");
	copy(scene, "f", "/leaf");
	scene_check_file(scene, "root/var/leaf", "new", 0644);
}

static void a_link_copied_twice_stays_what_it_was(void **state)
{
	struct scene *scene = *state;

	scene_file(scene, "context/ctx0", "data", 0644);
	scene_link(scene, "context/linkS", "ctx0");
	copy(scene, "/", "/dest/");
	scene_check_link(scene, "root/dest/linkS", "ctx0");
	copy(scene, "linkS", "/dest/linkS");
	copy(scene, "linkS", "/dest/linkS");
	scene_check_link(scene, "root/dest/linkS", "ctx0");
	scene_check_file(scene, "root/dest/ctx0", "data", 0644);
}

static void directory_links_of_the_root_are_followed_inside_it(void **state)
{
	struct scene *scene = *state;

	scene_dir(scene, "root/usr", 0755);
	scene_dir(scene, "root/usr/lib", 0755);
	scene_link(scene, "root/lib", "usr/lib");
	scene_dir(scene, "context/d", 0755);
	scene_dir(scene, "context/d/lib", 0755);
	scene_dir(scene, "context/d/lib/sub", 0755);
	scene_file(scene, "context/d/lib/a", "a", 0644);
	scene_file(scene, "context/d/lib/sub/b", "b", 0644);
	assert_int_equal(linkat(scene->fd, "context/d/lib/a", scene->fd, "context/d/lib/sub/c", 0),
			 0);
	copy(scene, "d", "/");
	scene_check_link(scene, "root/lib", "usr/lib");
	scene_check_file(scene, "root/usr/lib/a", "a", 0644);
	scene_check_file(scene, "root/usr/lib/sub/b", "b", 0644);
	assert_int_equal(scene_stat(scene, "root/usr/lib/a").st_ino,
			 scene_stat(scene, "root/usr/lib/sub/c").st_ino);
	copy(scene, "d/lib/a", "/lib/x/y");
	scene_check_file(scene, "root/usr/lib/x/y", "a", 0644);
}

static void nothing_leaves_the_root(void **state)
{
	static const char *const links[][2] = {
		{"root/abs", "/"},
		{"root/e", "/../../etc"},
		{"root/up", "../../../../../../"},
		{"root/p", "/proc/self/root"},
		{"root/chain", "up/../abs/../e/../outside"},
	};
	struct scene *scene = *state;
	char expected[128];

	scene_file(scene, "context/f", "mine", 0644);
	scene_dir(scene, "outside", 0755);
	for (size_t i = 0; i < 5; i++) {
		scene_link(scene, links[i][0], links[i][1]);
		(void)snprintf(expected, sizeof(expected), "%s/made/here", links[i][0] + 4);
		copy(scene, "f", expected);
	}
	scene_check_file(scene, "root/made/here", "mine", 0644); /* abs and up */
	scene_check_file(scene, "root/etc/made/here", "mine", 0644);
	scene_check_file(scene, "root/proc/self/root/made/here", "mine", 0644);
	scene_check_file(scene, "root/outside/made/here", "mine", 0644);
	assert_false(scene_has(scene, "outside/made"));
	assert_int_equal(faccessat(AT_FDCWD, "/made", F_OK, 0), -1);
	assert_int_equal(faccessat(AT_FDCWD, "/etc/made", F_OK, 0), -1);
}

static void rings_of_links_end(void **state)
{
	struct scene *scene = *state;
	const char *source = "f";
	struct copy_spec spec = make_spec(scene, &source, 1, "/a/x");

	scene_file(scene, "context/f", "x", 0644);
	scene_link(scene, "root/a", "b");
	scene_link(scene, "root/b", "a");
	check_refused(scene, &spec, ERR_REFUSED, "too many symlinks");
}

static void hard_links_within_a_source_are_kept(void **state)
{
	static const char *const both[] = {"d/a", "d/b"};
	struct scene *scene = *state;
	struct copy_spec spec = make_spec(scene, both, 2, "/two/");
	struct err err = {0};

	scene_dir(scene, "context/d", 0755);
	scene_dir(scene, "context/d/sub", 0755);
	scene_file(scene, "context/d/a", "data", 0644);
	assert_int_equal(linkat(scene->fd, "context/d/a", scene->fd, "context/d/b", 0), 0);
	assert_int_equal(linkat(scene->fd, "context/d/a", scene->fd, "context/d/sub/c", 0), 0);
	copy(scene, "d", "/new");
	assert_int_equal(scene_stat(scene, "root/new/a").st_nlink, 3);
	assert_int_equal(scene_stat(scene, "root/new/a").st_ino,
			 scene_stat(scene, "root/new/sub/c").st_ino);
	copy(scene, "d", "/new"); /* over itself */
	assert_int_equal(scene_stat(scene, "root/new/a").st_nlink, 3);
	check_ok(copy_into(scene->rootfd, &spec, &err), &err); /* two sources: two files */
	assert_int_equal(scene_stat(scene, "root/two/a").st_nlink, 1);
}

static void owners_are_given_to_all_that_is_made(void **state)
{
	struct scene *scene = *state;

	scene_dir(scene, "root/etc", 0755);
	scene_file(scene, "root/etc/passwd", "root:x:0:0::/root:/bin/sh\nada:x:1815:1852::/:/x\n",
		   0644);
	scene_file(scene, "root/etc/group", "staff:x:50:\n", 0644);
	scene_dir(scene, "context/d", 0755);
	scene_file(scene, "context/d/f", "x", 04755);
	scene_link(scene, "context/d/l", "f");
	assert_int_equal(fchownat(scene->fd, "context/d/f", 33, 44, 0), 0);
	assert_int_equal(fchmodat(scene->fd, "context/d/f", 04755, 0), 0);
	copy(scene, "d", "/plain");
	check_owner(scene, "root/plain/f", 0, 0);
	check_mode(scene, "root/plain/f", 04755);
	copy_flags(scene, "d", "/new/dir", "ada", NULL);
	check_owner(scene, "root/new", 1815, 1852);
	check_owner(scene, "root/new/dir", 1815, 1852);
	check_owner(scene, "root/new/dir/f", 1815, 1852);
	check_owner(scene, "root/new/dir/l", 1815, 1852);
	check_mode(scene, "root/new/dir/f", 04755);
	copy_flags(scene, "d/f", "/num", "12:staff", NULL);
	check_owner(scene, "root/num", 12, 50);
}

static void ids_are_those_of_the_machine(void **state)
{
	struct scene *scene = *state;
	const char *source = "d";
	struct copy_spec spec = make_spec(scene, &source, 1, "/new/dir");
	struct err err = {0};

	spec.first_id = 200000;
	scene_dir(scene, "context/d", 0755);
	scene_dir(scene, "context/d/sub", 0755);
	scene_file(scene, "context/d/f", "x", 0644);
	scene_link(scene, "context/d/l", "f");
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	check_owner(scene, "root/new", 200000, 200000);
	check_owner(scene, "root/new/dir/sub", 200000, 200000);
	check_owner(scene, "root/new/dir/l", 200000, 200000);
	spec.chown = "12:34";
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	check_owner(scene, "root/new/dir/f", 200012, 200034);
}

static void modes_are_given_and_parents_can_be_entered(void **state)
{
	struct scene *scene = *state;
	mode_t before = umask(0077);

	scene_dir(scene, "context/d", 0755);
	scene_dir(scene, "context/d/sub", 0755);
	scene_file(scene, "context/d/f", "x", 0600);
	scene_link(scene, "context/d/l", "f");
	copy_flags(scene, "d/f", "/new/dir/f", "1:2", "0640");
	check_mode(scene, "root/new", 0750);
	check_mode(scene, "root/new/dir", 0750);
	check_mode(scene, "root/new/dir/f", 0640);
	check_owner(scene, "root/new", 1, 2);
	copy_flags(scene, "d", "/tree", NULL, "640");
	check_mode(scene, "root/tree", 0750);
	check_mode(scene, "root/tree/sub", 0640); /* the mode that was asked for */
	check_mode(scene, "root/tree/f", 0640);
	copy_flags(scene, "d/f", "/suid", NULL, "06755");
	check_mode(scene, "root/suid", 06755);
	copy(scene, "d", "/plain");
	check_mode(scene, "root/plain", 0755);
	check_mode(scene, "root/plain/sub", 0755);
	(void)umask(before);
}

static void times_attributes_and_holes_are_kept(void **state)
{
	/* revision 2, cap_net_raw+ep */
	static const unsigned char capability[20] = {1, 0, 0, 2, 0, 0x20};
	const struct timespec old[] = {{1000, 11}, {2000, 22}};
	struct scene *scene = *state;
	auto_close int fd = openat(scene->contextfd, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	char path[64];
	char got[64];
	struct stat st;

	assert_int_equal(ftruncate(fd, 10 << 20), 0);
	assert_int_equal(pwrite(fd, "x", 1, 5 << 20), 1);
	(void)snprintf(path, sizeof(path), "%s/root/g", scene->path);
	assert_int_equal(fsetxattr(fd, "user.a", "bc", 2, 0), 0);
	assert_int_equal(fsetxattr(fd, "security.capability", capability, 20, 0), 0);
	assert_int_equal(futimens(fd, old), 0);
	copy_flags(scene, "f", "/g", "1:1", NULL);
	st = scene_stat(scene, "root/g");
	assert_int_equal(st.st_mtim.tv_sec, 2000);
	assert_int_equal(st.st_mtim.tv_nsec, 22);
	assert_int_equal(st.st_atim.tv_sec, 1000);
	assert_int_equal(st.st_size, 10 << 20);
	assert_int_equal(st.st_blocks, 8);
	assert_int_equal(getxattr(path, "user.a", got, sizeof(got)), 2);
	assert_int_equal(getxattr(path, "security.capability", got, sizeof(got)), 20);
	assert_memory_equal(got, capability, 20);
}

static void several_sources_need_a_directory(void **state)
{
	static const char *const two[] = {"a", "b"};
	struct scene *scene = *state;
	struct copy_spec spec = make_spec(scene, two, 2, "/x");
	struct err err = {0};

	scene_file(scene, "context/a", "a", 0644);
	scene_file(scene, "context/b", "b", 0644);
	check_refused(scene, &spec, ERR_REFUSED, "/x is no directory; end it with /");
	spec.destination = "/x/";
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	spec.destination = "/x";
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	scene_check_file(scene, "root/x/b", "b", 0644);
}

static void only_the_bytes_that_the_key_names_are_copied(void **state)
{
	static const char *const sources[] = {"d", "f"};
	struct scene *scene = *state;
	struct copy_spec spec = make_spec(scene, sources, 2, "/x/");
	struct digest digest;
	struct err err = {0};

	scene_dir(scene, "context/d", 0755);
	scene_dir(scene, "context/d/sub", 0755);
	scene_file(scene, "context/d/sub/g", "x", 0644);
	scene_link(scene, "context/d/l", "x");
	scene_file(scene, "context/f", "x", 0644);
	assert_int_equal(linkat(scene->fd, "context/d/sub/g", scene->fd, "context/d/h", 0), 0);
	check_ok(context_digest(&spec.sources, NULL, &digest, &err), &err);
	spec.content = &digest;
	check_ok(copy_into(scene->rootfd, &spec, &err), &err);
	scene_file(scene, "context/f", "y", 0644);
	check_refused(scene, &spec, ERR_UNAVAILABLE, "changed while it was copied");
}

static void a_missing_source_is_named(void **state)
{
	struct scene *scene = *state;
	const char *source = "fiel";
	struct copy_spec spec = make_spec(scene, &source, 1, "/x");

	scene_file(scene, "context/file", "x", 0644);
	check_refused(scene, &spec, ERR_NOT_FOUND,
		      "COPY: fiel is not in the context; did you mean file?");
	spec.sources.chmod = "u+q";
	check_refused(scene, &spec, ERR_REFUSED, "expected octal");
}

static void check_found(const struct scene *scene, const char *text, uid_t uid, gid_t gid)
{
	struct err err = {0};
	uid_t got_uid;
	gid_t got_gid;

	check_ok(copy_find_owner(scene->rootfd, text, &got_uid, &got_gid, &err), &err);
	assert_int_equal(got_uid, uid);
	assert_int_equal(got_gid, gid);
}

static void owners_are_looked_up_in_the_root(void **state)
{
	static const char *const unknown[] = {"bob", "ada:none", "bob:staff", "ada staff"};
	static const char *const wrong[] = {"", ":", "ada:"};
	struct scene *scene = *state;
	struct err err = {0};
	uid_t uid;
	gid_t gid;

	check_found(scene, "root", 0, 0); /* without any file */
	check_found(scene, "1000", 1000, 1000);
	check_found(scene, "1000:5", 1000, 5);
	check_found(scene, "root:7", 0, 7);
	check_found(scene, "7:root", 7, 0);
	check_found(scene, ":7", 0, 7);
	check_err(copy_find_owner(scene->rootfd, "ada", &uid, &gid, &err), &err, ERR_NOT_FOUND);
	scene_dir(scene, "root/etc", 0755);
	scene_file(scene, "root/etc/passwd", "junk\nada:x:1815:1852::/:/x\n", 0644);
	scene_file(scene, "root/etc/group", "staff:x:50:\n", 0644);
	check_found(scene, "ada", 1815, 1852);
	check_found(scene, "ada:staff", 1815, 50);
	check_found(scene, "ada:9", 1815, 9);
	check_found(scene, ":staff", 0, 50);
	check_found(scene, "1815", 1815, 1815); /* a number is no name */
	for (size_t i = 0; i < 4; i++)
		check_err(copy_find_owner(scene->rootfd, unknown[i], &uid, &gid, &err), &err,
			  ERR_NOT_FOUND);
	for (size_t i = 0; i < 3; i++)
		check_err(copy_find_owner(scene->rootfd, wrong[i], &uid, &gid, &err), &err,
			  ERR_REFUSED);
	check_err(copy_find_owner(scene->rootfd, "65536", &uid, &gid, &err), &err, ERR_LIMIT);
}

static void working_directories_are_made_once(void **state)
{
	struct scene *scene = *state;
	struct err err = {0};

	check_ok(copy_make_workdir(scene->rootfd, "/srv/dir", "1000", 0, &err), &err);
	check_owner(scene, "root/srv", 1000, 1000);
	check_owner(scene, "root/srv/dir", 1000, 1000);
	check_mode(scene, "root/srv/dir", 0755);
	check_ok(copy_make_workdir(scene->rootfd, "/srv/dir", "5", 0, &err), &err);
	check_owner(scene, "root/srv/dir", 1000, 1000); /* nothing changes */
	check_ok(copy_make_workdir(scene->rootfd, "/", "", 0, &err), &err);
	check_ok(copy_make_workdir(scene->rootfd, "/high", "7:8", 100, &err), &err);
	check_owner(scene, "root/high", 107, 108);
}

static void links_lead_to_working_directories_and_files_do_not(void **state)
{
	struct scene *scene = *state;
	struct err err = {0};

	scene_dir(scene, "root/srv", 0755);
	scene_link(scene, "root/l", "/srv");
	check_ok(copy_make_workdir(scene->rootfd, "/l/more", "", 0, &err), &err);
	assert_true(scene_has(scene, "root/srv/more"));
	scene_file(scene, "root/f", "x", 0644);
	check_err(copy_make_workdir(scene->rootfd, "/f", "", 0, &err), &err, ERR_REFUSED);
	check_err(copy_make_workdir(scene->rootfd, "/f/x", "", 0, &err), &err, ERR_REFUSED);
	check_err(copy_make_workdir(scene->rootfd, "/x", "nobody-here", 0, &err), &err,
		  ERR_NOT_FOUND);
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(a_file_goes_where_the_destination_says),
		SCENE_TEST(a_directory_gives_its_contents),
		SCENE_TEST(an_existing_top_keeps_all_and_nested_ones_follow_the_source),
		SCENE_TEST(attributes_of_directories_follow_the_source_below_the_top),
		SCENE_TEST(a_whole_directory_becomes_itself),
		SCENE_TEST(what_is_there_is_replaced_never_written_through),
		SCENE_TEST(the_destination_is_resolved_to_its_last_part),
		SCENE_TEST(a_link_copied_twice_stays_what_it_was),
		SCENE_TEST(directory_links_of_the_root_are_followed_inside_it),
		SCENE_TEST(nothing_leaves_the_root),
		SCENE_TEST(rings_of_links_end),
		SCENE_TEST(hard_links_within_a_source_are_kept),
		SCENE_TEST(owners_are_given_to_all_that_is_made),
		SCENE_TEST(ids_are_those_of_the_machine),
		SCENE_TEST(modes_are_given_and_parents_can_be_entered),
		SCENE_TEST(times_attributes_and_holes_are_kept),
		SCENE_TEST(several_sources_need_a_directory),
		SCENE_TEST(only_the_bytes_that_the_key_names_are_copied),
		SCENE_TEST(a_missing_source_is_named),
		SCENE_TEST(owners_are_looked_up_in_the_root),
		SCENE_TEST(working_directories_are_made_once),
		SCENE_TEST(links_lead_to_working_directories_and_files_do_not),
	};

	if (geteuid() != 0)
		return SKIPPED; /* owners and capabilities are root's to give */
	return cmocka_run_group_tests_name("bake/copy", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/layers/stacking.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_base_has_everything_that_is_in_it(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking,
		   "mkdir -m 1777 tmp; mkdir -p a/b; echo hi >a/f; ln a/f a/b/g; ln -s /no l\n"
		   "mkfifo p; mknod n c 1 3; chown 3:4 a/f; cp /bin/true su; chmod 4755 su\n"
		   "chown -h 5:6 l; setfattr -n user.note -v x a; touch -d @1000.5 a/f\n"
		   "setcap cap_net_raw+ep a/f");
	check_names(stacking, "a/\na/b/\na/b/g\na/f\nl\nn\np\nsu\ntmp/\n");
}

static void what_changes_nothing_is_no_layer(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "mkdir -p d/e; echo hi >d/e/f; ln -s x d/l; echo two >g; mkfifo p\n"
			     "touch -hd @1000 d/l p");
	stack_step(stacking, "true");
	assert_true(stacking->result.empty);
	stack_step(stacking, "chmod 700 d d/e; chmod 755 d d/e; chown 1 g; chown 0 g; touch d/e\n"
			     "mv d/e/f d/x; mv d/x d/e/f; rm d/l; ln -s x d/l; rm p; mkfifo p\n"
			     "touch new; rm new; mkdir nd; rmdir nd; touch -hd @1000 d/l p");
	assert_true(stacking->result.empty);
	check_names(stacking, "");
}

static void a_directory_moved_there_and_back_is_no_layer(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "mkdir -p d/e; for i in 1 2 3; do echo $i >d/e/$i; done");
	stack_step(stacking, "mv d t; mv t d"); /* copies everything: no redirects */
	assert_true(stacking->result.empty);
}

static void changed_bytes_of_the_same_size_and_second_are_seen(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "echo one >f; touch -d @1000 f");
	stack_step(stacking, "echo two >f; touch -d @1000 f");
	check_names(stacking, "f\n");
}

static void a_deletion_is_a_whiteout_where_there_was_something(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "mkdir -p d/sub; touch d/a d/b d/sub/c; touch x");
	stack_step(stacking, "rm d/a x; touch new; rm new; rm -r d/sub");
	check_names(stacking, "d/\nd/.wh.a\nd/.wh.sub\n.wh.x\n");
	stack_step(stacking, "rm -r d");
	check_names(stacking, ".wh.d\n");
}

/* stacker#627: three ways to lose the content of a directory. */
static void an_emptied_directory_is_not_a_deleted_one(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "mkdir a1 a2 a3; touch a1/file a2/file a3/file");
	stack_step(stacking, "rm -r a1; rm -r a2; mkdir a2; rm -r a3; mkdir a3; touch a3/newfile");
	check_names(stacking, ".wh.a1\na2/\na2/.wh.file\na3/\na3/.wh.file\na3/newfile\n");
}

/* buildkit#2614 */
static void a_directory_made_anew_over_a_whiteout_hides_what_was_there(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "mkdir d; touch d/a");
	stack_step(stacking, "rm -rf d");
	stack_step(stacking, "mkdir d; touch d/b");
	check_names(stacking, "d/\nd/b\n");
	stack_step(stacking, "rm -rf d; mkdir d; touch d/c");
	check_names(stacking, "d/\nd/.wh.b\nd/c\n");
}

static void an_opaque_directory_says_what_it_hides(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking,
		   "mkdir -p d/keep/deep d/gone/x d/same; echo hi >d/keep/deep/f\n"
		   "touch d/keep/deep/g d/keep/h d/gone/x/y d/same/z; touch -d @1000 d/same/z\n"
		   "chmod 750 d/same");
	stack_step(stacking, "cp -a d ../copy; rm -rf d; mv ../copy d; rm -r d/gone d/keep/deep/g\n"
			     "echo ho >d/keep/deep/f");
	check_names(stacking, "d/\nd/.wh.gone\nd/keep/\nd/keep/deep/\nd/keep/deep/f\n"
			      "d/keep/deep/.wh.g\n");
}

/* kaniko#2308: a whiteout below what is a symlink now breaks others. */
static void a_directory_that_becomes_a_symlink_has_no_whiteout(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "mkdir a; touch a/a");
	stack_step(stacking, "rm -rf a; mkdir b; ln -s b a");
	check_names(stacking, "a\nb/\n");
	stack_step(stacking, "rm a; mkdir a; touch a/n");
	check_names(stacking, "a/\na/n\n");
	stack_step(stacking, "rm -r a; echo file >a");
	check_names(stacking, "a\n");
	stack_step(stacking, "rm a; mkdir a");
	check_names(stacking, "a/\n");
}

static void parents_of_a_change_come_with_their_own_metadata(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "mkdir -m 1777 tmp; mkdir -p -m 700 a/b; chown 7:8 a/b; touch a/o");
	stack_step(stacking, "touch a/b/f tmp/g");
	check_names(stacking, "a/\na/b/\na/b/f\ntmp/\ntmp/g\n");
}

static void a_directory_with_another_mode_is_all_there_is(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "mkdir -p a/b/c; touch a/b/c/f");
	stack_step(stacking, "chmod 700 a/b");
	check_names(stacking, "a/\na/b/\n");
	stack_step(stacking, "setfattr -n user.x -v y a/b/c");
	check_names(stacking, "a/\na/b/\na/b/c/\n");
	stack_step(stacking, "chmod 711 .");
	check_names(stacking, "./\n");
	stack_step(stacking, "touch n");
}

/* moby#48140: no tar can link across layers. */
static void a_new_link_to_an_old_file_carries_the_file(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "head -c 100000 /dev/zero >f");
	stack_step(stacking, "ln f g");
	check_names(stacking, "f\ng\n");
	assert_true(stacking->tar.len < 150000);
	stack_step(stacking, "rm f");
	check_names(stacking, ".wh.f\n");
}

static void links_are_written_once_and_by_relative_names(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking,
		   "mkdir s z; echo data >s/b; ln s/b z/a; ln s/b s/c; ln -s t l; ln l l2\n"
		   "mkfifo p; ln p q; for i in $(seq 100); do echo $i >f$i; ln f$i g$i; done");
}

static void capabilities_survive_every_way(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "cp /bin/true t; setcap cap_net_raw+ep t; cp /bin/true u");
	stack_step(stacking, "setcap cap_chown+ep u; touch -d @5 t");
	check_names(stacking, "t\nu\n");
	stack_step(stacking, "chown 1 t"); /* which takes the capability */
	check_names(stacking, "t\n");
	stack_step(stacking, "setcap cap_chown+ep u");
	assert_true(stacking->result.empty);
}

static void names_may_be_any_bytes_and_long(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking,
		   "n=$(printf 'n%.0s' $(seq 255)); touch $n; ln $n h; ln -s $n s\n"
		   "touch \"$(printf 'bad\\377\\376')\" \"$(printf 'n\\303\\244me')\"\n"
		   "touch \"$(printf 'nfd-a\\314\\210')\" 'a\nb' 'a b' ./-x '\\*'\n"
		   "ln -s \"$(printf 't\\377')\" bl; ln -s \"$(printf 't\\303\\244')\" ul\n"
		   "ln \"$(printf 'bad\\377\\376')\" bh; ln \"$(printf 'n\\303\\244me')\" uh");
	stack_step(stacking, "n=$(printf 'n%.0s' $(seq 255)); rm h bl $n; touch $n; rm bad*");
	stack_step(stacking, "rm n*");
}

/* Longer than the kernel takes at once. */
static void paths_may_be_long(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "exec python3 -c '\n"
			     "import os\n"
			     "for i in range(20): os.mkdir(\"n\" * 255); os.chdir(\"n\" * 255)\n"
			     "open(\"deep\", \"w\"); os.link(\"deep\", \"deeper\")'");
	stack_step(stacking, "rm -r n*; touch n");
}

static void sockets_are_dropped(void **state)
{
	struct stacking *stacking = *state;
	auto_close int up = -1;
	struct err err;
	char path[128];

	assert_int_equal(mkdirat(stacking->root, "up", 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/up", stacking->path);
	run_script(
		path,
		"python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'; touch f");
	up = openat(stacking->root, "up", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check_ok(take_difference(stacking, up, -1, &err), &err);
	check_names(stacking, "f\n");
	assert_int_equal(faccessat(up, "s", F_OK, 0), -1);
}

/* A tar cannot link to a layer below: what it costs is told, once for all names. */
static void a_link_to_a_lower_file_is_a_copy_that_is_counted(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "mkdir d; head -c 100000 /dev/urandom >f; cp f d/e; ln f d/both\n"
			     "truncate -s 3000000 hole; printf x >>hole");
	assert_int_equal(stacking->result.linked_bytes, 0);
	stack_step(stacking, "ln f g; ln f d/h");
	assert_int_equal(stacking->result.linked_bytes, 100000);
	check_names(stacking, "d/\nd/h\nf\ng\n");
	stack_step(stacking, "ln d/e d/i; ln hole d/hole");
	assert_int_equal(stacking->result.linked_bytes, 104096);
	stack_step(stacking, "echo more >>d/e; ln d/e d/j; echo new >new; ln new newer");
	assert_int_equal(stacking->result.linked_bytes, 0);
	stack_step(stacking, "rm -rf d; mkdir d; ln new d/n; mv newer d/m");
	assert_int_equal(stacking->result.linked_bytes, 4);
}

static void large_holes_stay_holes(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "truncate -s 40M log; printf hi | dd of=log bs=1 status=none "
			     "seek=20000000 conv=notrunc\n"
			     "truncate -s 20M none; truncate -s 100K small");
	assert_true(stacking->tar.len < 400000);
	stack_step(stacking, "touch -d @5 log; touch -r none log; chown 1 none; chown 0 none");
	stack_step(stacking, "printf ho | dd of=log bs=1 status=none seek=20000000 conv=notrunc; "
			     "touch -d @9 log");
	check_names(stacking, "log\n");
}

static void the_data_of_large_files_start_a_chunk(void **state)
{
	struct stacking *stacking = *state;

	stack_step(stacking, "head -c 65535 /dev/zero >a; head -c 65536 /dev/zero >b; echo x >c");
	assert_string_equal(buf_str(&stacking->cuts).ptr, "66560\n"); /* two headers, a */
}

static void times_are_whole_seconds_and_clamped(void **state)
{
	struct stacking *stacking = *state;

	stacking->clamp = 5000;
	stack_step(stacking, "mkdir d; touch -d @1000.7 d/f; touch -d @5000 g; touch -d @-5 old");
}

/* What only became younger, and would not show it, is as it was. */
static void a_time_that_is_clamped_is_no_change(void **state)
{
	struct stacking *stacking = *state;
	auto_close int lower = -1;
	auto_close int up = -1;
	struct err err;

	run_script(stacking->path,
		   "mkdir low up; touch -d @5000 low/same low/again; touch -d @4999 low/other\n"
		   "touch -d @9000 up/same up/other; touch -d @5000 up/again");
	lower = openat(stacking->root, "low", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	up = openat(stacking->root, "up", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stacking->clamp = 5000;
	check_ok(take_difference(stacking, up, lower, &err), &err);
	check_names(stacking, "other\n");
}

static void the_content_digest_ignores_times_and_nothing_else(void **state)
{
	static const char *const same[] = {"mkdir d; echo hi >d/f; touch -d @5 d/f d",
					   "mkdir d; echo hi >d/f; touch -d @999.5 d/f"};
	static const char *const other[] = {
		"mkdir d; echo ho >d/f",
		"mkdir d; echo hi >d/f; chmod 600 d/f",
		"mkdir d; echo hi >d/f; chown 1 d",
		"mkdir d; echo hi >d/f; setfattr -n user.a -v b d/f",
		"mkdir d; echo hi >d/g",
		"mkdir d; ln -s hi d/f",
		"mkdir d; echo hi >d/f; ln d/f d/g",
		"mkdir d; echo hi >d/f; echo hi >d/g",
	};
	struct digest first;

	for (size_t i = 0; i < 2 + sizeof(other) / sizeof(other[0]); i++) {
		struct stacking *stacking = *state;

		stack_step(stacking, i < 2 ? same[i] : other[i - 2]);
		if (i == 0)
			first = stacking->result.content;
		assert_int_equal(digest_equal(&first, &stacking->result.content), i < 2);
		assert_int_equal(stacking_teardown(state) + stacking_setup(state), 0);
	}
}

static void owners_beyond_the_range_are_refused(void **state)
{
	struct stacking *stacking = *state;

	stack_refused(stacking, "mkdir d; touch d/f; chown 65536 d/f", ERR_UNSUPPORTED,
		      "d/f: its owner is 65536");
}

static void names_like_whiteouts_are_refused(void **state)
{
	struct stacking *stacking = *state;

	stack_refused(stacking, "mkdir d; touch d/.wh.x", ERR_UNSUPPORTED, "d/.wh.x: ");
}

static void redirects_and_metacopies_are_refused(void **state)
{
	static const char *const scripts[] = {
		"mkdir d; setfattr -n trusted.overlay.redirect -v /x d",
		"mkdir d; touch d/f; setfattr -n trusted.overlay.metacopy d/f",
	};

	for (size_t i = 0; i < 2; i++) {
		struct stacking *stacking = *state;

		stack_refused(stacking, scripts[i], ERR_UNSUPPORTED, "not the whole difference");
		assert_int_equal(stacking_teardown(state) + stacking_setup(state), 0);
	}
}

static void too_many_entries_are_refused(void **state)
{
	struct stacking *stacking = *state;

	stacking->max_entries = 3;
	stack_step(stacking, "mkdir d; touch d/f g");
	stack_refused(stacking, "touch d/1 d/2 d/3", ERR_LIMIT, "d/3: more than 3 entries");
}

/* A sink that disturbs what is being read, once. */
struct disturber {
	struct sink sink;
	int upperfd;
	const char *script;
	const char *path;
};

static int disturber_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct disturber *disturber = container_of(sink, struct disturber, sink);

	(void)bytes;
	(void)err;
	if (disturber->script)
		run_script(disturber->path, disturber->script);
	disturber->script = NULL;
	return 0;
}

static void what_changes_while_it_is_read_is_an_error(void **state)
{
	static const struct {
		const char *script;
		enum err_kind kind;
		const char *words;
	} cases[] = {
		{"echo more >>f", ERR_CONFLICT, "f: it changed while it was read"},
		{"truncate -s 5 f", ERR_CONFLICT, "f: it became shorter while it was read"},
		{"touch f", ERR_CONFLICT, "f: it changed while it was read"},
		{"rm g", ERR_OS, "g: stat: No such file or directory"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stacking *stacking = *state;
		struct disturber disturber = {{disturber_write}, .script = cases[i].script};
		const struct diff_out out = {.sink = &disturber.sink};
		auto_close int up = -1;
		struct diff_result result;
		struct err err = {0};
		char path[128];

		assert_int_equal(mkdirat(stacking->root, "up", 0755), 0);
		(void)snprintf(path, sizeof(path), "%s/up", stacking->path);
		run_script(path, "head -c 300000 /dev/zero >f; echo g >g; touch -d @5 f");
		up = openat(stacking->root, "up", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		disturber.path = path;
		check_err(diff_run(&(struct diff_spec){.upperfd = up, .lowerfd = -1}, &out, &result,
				   &err),
			  &err, cases[i].kind);
		assert_string_equal(err.text, cases[i].words);
		assert_int_equal(stacking_teardown(state) + stacking_setup(state), 0);
	}
}

static int refusing_write(struct sink *sink, struct str bytes, struct err *err)
{
	(void)sink;
	(void)bytes;
	return err_set(err, ERR_FULL, "no space left");
}

static void the_sinks_own_words_come_through(void **state)
{
	struct stacking *stacking = *state;
	struct sink sink = {refusing_write};
	const struct diff_out out = {.sink = &sink};
	struct diff_result result;
	struct err err = {0};

	stack_step(stacking, "touch f");
	check_err(diff_run(&(struct diff_spec){.upperfd = stacking->root, .lowerfd = -1}, &out,
			   &result, &err),
		  &err, ERR_FULL);
}

static void a_raised_cancel_ends_it(void **state)
{
	struct stacking *stacking = *state;
	struct cancel cancel;
	struct sink sink = {refusing_write};
	const struct diff_out out = {.sink = &sink};
	struct diff_result result;
	struct err err = {0};

	stack_step(stacking, "touch f");
	check_ok(cancel_init(&cancel, &err), &err);
	cancel_raise(&cancel);
	check_err(diff_run(&(struct diff_spec){.upperfd = stacking->root,
					       .lowerfd = -1,
					       .cancel = &cancel},
			   &out, &result, &err),
		  &err, ERR_CANCELLED);
	cancel_done(&cancel);
}

/* What no container sets, but what a host may have written into the directory. */
static void bookkeeping_leaves_the_sealed_directory(void **state)
{
	struct stacking *stacking = *state;
	auto_buf struct buf list = BUF_INIT(LISTING_MAX);
	auto_close int up = -1;
	char path[128];
	struct err err;

	assert_int_equal(mkdirat(stacking->root, "up", 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/up", stacking->path);
	run_script(path, "mkdir d; touch d/f; ln -s x d/l\n"
			 "for f in . d d/f d/l; do for a in trusted.overlay.origin trusted.ours\n"
			 "do setfattr -h -n $a -v x $f; done; done\n"
			 "setfattr -n user.overlay.opaque -v y d; setfattr -n "
			 "trusted.overlay.opaque -v y d");
	up = openat(stacking->root, "up", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check_ok(take_difference(stacking, up, -1, &err), &err);
	listing_add(up, LISTING_NO_TIMES, &list);
	assert_string_equal(
		list.ptr,
		". 040755 0:0\n"
		"d 040755 0:0\n"
		"d/f 100644 0:0 0 "
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
		"d/l 120777 0:0 -> x\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		stack_test(a_base_has_everything_that_is_in_it),
		stack_test(what_changes_nothing_is_no_layer),
		stack_test(a_directory_moved_there_and_back_is_no_layer),
		stack_test(changed_bytes_of_the_same_size_and_second_are_seen),
		stack_test(a_deletion_is_a_whiteout_where_there_was_something),
		stack_test(an_emptied_directory_is_not_a_deleted_one),
		stack_test(a_directory_made_anew_over_a_whiteout_hides_what_was_there),
		stack_test(an_opaque_directory_says_what_it_hides),
		stack_test(a_directory_that_becomes_a_symlink_has_no_whiteout),
		stack_test(parents_of_a_change_come_with_their_own_metadata),
		stack_test(a_directory_with_another_mode_is_all_there_is),
		stack_test(a_new_link_to_an_old_file_carries_the_file),
		stack_test(links_are_written_once_and_by_relative_names),
		stack_test(capabilities_survive_every_way),
		stack_test(names_may_be_any_bytes_and_long),
		stack_test(paths_may_be_long),
		stack_test(sockets_are_dropped),
		stack_test(a_link_to_a_lower_file_is_a_copy_that_is_counted),
		stack_test(large_holes_stay_holes),
		stack_test(the_data_of_large_files_start_a_chunk),
		stack_test(times_are_whole_seconds_and_clamped),
		stack_test(a_time_that_is_clamped_is_no_change),
		stack_test(the_content_digest_ignores_times_and_nothing_else),
		stack_test(owners_beyond_the_range_are_refused),
		stack_test(names_like_whiteouts_are_refused),
		stack_test(redirects_and_metacopies_are_refused),
		stack_test(too_many_entries_are_refused),
		stack_test(what_changes_while_it_is_read_is_an_error),
		stack_test(the_sinks_own_words_come_through),
		stack_test(a_raised_cancel_ends_it),
		stack_test(bookkeeping_leaves_the_sealed_directory),
	};

	if (geteuid() != 0)
		return 125; /* overlays, owners and devices are root's to make */
	return cmocka_run_group_tests_name("layers/diff", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/reference.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#define HEX64 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void familiar_names_become_canonical(void **state)
{
	static const char *const names[][2] = {
		{"debian", "docker.io/library/debian:latest"},
		{"debian:bookworm-slim", "docker.io/library/debian:bookworm-slim"},
		{"acme/tool", "docker.io/acme/tool:latest"},
		{"docker.io/debian", "docker.io/library/debian:latest"},
		{"index.docker.io/acme/tool:1", "docker.io/acme/tool:1"},
		{"ghcr.io/acme/agent-base:1.4", "ghcr.io/acme/agent-base:1.4"},
		{"GHCR.io/acme/a", "ghcr.io/acme/a:latest"},
		{"Docker.io/debian", "docker.io/library/debian:latest"},
		{"Index.Docker.io/debian", "docker.io/library/debian:latest"},
		{"localhost/a", "localhost/a:latest"},
		{"localhost:5000/a:b", "localhost:5000/a:b"},
		{"127.0.0.1:5000/a/b/c__d.e-f--g", "127.0.0.1:5000/a/b/c__d.e-f--g:latest"},
		{"[::1]:5000/a", "[::1]:5000/a:latest"},
		{"[2001:db8::1]/a", "[2001:db8::1]/a:latest"},
		{"debian@sha256:" HEX64, "docker.io/library/debian@sha256:" HEX64},
		{"h:1/a:t@sha256:" HEX64, "h:1/a:t@sha256:" HEX64},
		{"a:" HEX64, "docker.io/library/a:" HEX64},
		{"ocitool", "docker.io/library/ocitool:latest"},
		{"scratch:1", "docker.io/library/scratch:1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		auto_buf struct buf text = BUF_INIT(REFERENCE_TEXT_MAX);
		struct reference reference;
		struct reference again;
		struct err err = {0};

		check_ok(reference_parse(str_of(names[i][0]), &reference, &err), &err);
		check_ok(reference_format(&reference, &text, &err), &err);
		assert_string_equal(text.ptr, names[i][1]);
		assert_int_equal(reference.kind, REFERENCE_REGISTRY);
		check_ok(reference_parse(buf_str(&text), &again, &err), &err);
		assert_true(str_equal(reference.tag, again.tag));
	}
}

/* What a transport's reference says; canonical is NULL where it is the text itself. */
static void check_place(const char *given, enum reference_kind kind, const char *place,
			const char *name, const char *canonical)
{
	auto_buf struct buf text = BUF_INIT(REFERENCE_TEXT_MAX);
	struct reference reference;
	struct err err = {0};

	check_ok(reference_parse(str_of(given), &reference, &err), &err);
	assert_int_equal(reference.kind, kind);
	assert_true(str_equal(reference.path, str_of(place)));
	assert_true(str_equal(reference.tag, str_of(name)));
	check_ok(reference_format(&reference, &text, &err), &err);
	assert_string_equal(text.ptr, canonical ? canonical : given);
}

static void archives_are_files_with_a_name_in_them(void **state)
{
	(void)state;
	check_place("oci-archive:a.tar", REFERENCE_OCI_ARCHIVE, "a.tar", "", NULL);
	check_place("oci-archive:/srv/a.tar:1.0", REFERENCE_OCI_ARCHIVE, "/srv/a.tar", "1.0", NULL);
	check_place("oci-archive:-", REFERENCE_OCI_ARCHIVE, "-", "", NULL);
	check_place("docker-archive:/srv/a.tar", REFERENCE_DOCKER_ARCHIVE, "/srv/a.tar", "", NULL);
	check_place("docker-archive:a.tar:debian", REFERENCE_DOCKER_ARCHIVE, "a.tar",
		    "docker.io/library/debian:latest",
		    "docker-archive:a.tar:docker.io/library/debian:latest");
	check_place("docker-archive:-:h:5000/a/b:1", REFERENCE_DOCKER_ARCHIVE, "-", "h:5000/a/b:1",
		    NULL);
}

static void layouts_and_scratch_are_no_registries(void **state)
{
	static const struct {
		const char *text;
		const char *dir;
		const char *tag;
	} layouts[] = {
		{"oci:base", "base", ""},
		{"oci:/srv/base:12", "/srv/base", "12"},
		{"oci:/srv/a:b/c", "/srv/a:b/c", ""},
		{"oci:/srv/a:b/c:d", "/srv/a:b/c", "d"},
		{"oci:./Über Haus", "./Über Haus", ""},
	};
	struct reference reference;
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		check_place(layouts[i].text, REFERENCE_LAYOUT, layouts[i].dir, layouts[i].tag,
			    NULL);
	check_ok(reference_parse(STR("scratch"), &reference, &err), &err);
	assert_int_equal(reference.kind, REFERENCE_SCRATCH);
}

static void parse_refuses_what_is_no_reference(void **state)
{
	static const char *const wrong[] = {
		"",
		" debian",
		"debian ",
		"Debian",
		"acme/Tool",
		"Acme/tool",
		"debian:",
		"debian:-x",
		"debian:a b",
		"debian@",
		"debian@sha256:12",
		("debian@sha256:" HEX64 ":tag"),
		("debian@sha256:" HEX64 "@sha256:" HEX64),
		"a//b",
		"/a",
		"a/",
		"a/.b",
		"a/b-",
		"a/b___c",
		"a/b..c",
		"a/b._c",
		"-a.io/b",
		"a-.io/b",
		"a..io/b",
		"a.io:/b",
		"a.io:0/b",
		"a.io:65536/b",
		"a.io:5x/b",
		"[::1/b",
		"[::1]x/b",
		"[]:5/b",
		"a.io/",
		"https://a.io/b",
		"docker://debian",
		"deb\nian",
		"d\xc3\xa9",
		"oci:",
		"oci::tag",
		"oci:dir:",
		"oci-archive:",
		"oci-archive:a:b c",
		"docker-archive:",
		"docker-archive::debian",
		"docker-archive:a.tar:",
		"docker-archive:a.tar:Debian",
		("docker-archive:a.tar:debian@sha256:" HEX64),
		"..",
		"../a",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct reference reference = {.kind = 42};
		struct err err = {0};

		if (reference_parse(str_of(wrong[i]), &reference, &err) == 0)
			fail_msg("\"%s\" was taken", wrong[i]);
	}
}

static void a_name_is_not_taken_for_a_digest(void **state)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	struct err err = {0};

	(void)state;
	check_ok(reference_parse_name(STR("mine:1"), &name, &err), &err);
	check_err(reference_parse_name(STR("sha256:1"), &name, &err), &err, ERR_INVALID);
	assert_string_equal(err.text, "\"sha256:1\" is the beginning of a digest, and no name");
	check_err(reference_parse_name(STR("mine@sha256:" HEX64), &name, &err), &err, ERR_INVALID);
}

static void a_failure_leaves_the_output_alone(void **state)
{
	struct reference reference = {.kind = 42};
	struct err err = {0};

	(void)state;
	check_err(reference_parse(STR("A"), &reference, &err), &err, ERR_INVALID);
	assert_non_null(strstr(err.text, "lower case"));
	assert_int_equal(reference.kind, 42);
}

static void sources_of_other_tools_are_refused_by_name(void **state)
{
	struct reference reference;
	struct err err = {0};

	(void)state;
	check_err(reference_parse(STR("docker-daemon:a:1"), &reference, &err), &err,
		  ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "docker save"));
}

static void names_have_a_ceiling(void **state)
{
	char text[REFERENCE_TEXT_MAX + 16];
	struct reference reference;
	struct err err = {0};

	(void)state;
	memset(text, 'a', sizeof(text));
	check_err(reference_parse((struct str){text, 256}, &reference, &err), &err, ERR_INVALID);
	check_ok(reference_parse((struct str){text, 237}, &reference, &err), &err);
	check_err(reference_parse((struct str){text, sizeof(text)}, &reference, &err), &err,
		  ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(familiar_names_become_canonical),
		cmocka_unit_test(archives_are_files_with_a_name_in_them),
		cmocka_unit_test(layouts_and_scratch_are_no_registries),
		cmocka_unit_test(parse_refuses_what_is_no_reference),
		cmocka_unit_test(a_name_is_not_taken_for_a_digest),
		cmocka_unit_test(a_failure_leaves_the_output_alone),
		cmocka_unit_test(sources_of_other_tools_are_refused_by_name),
		cmocka_unit_test(names_have_a_ceiling),
	};

	return cmocka_run_group_tests_name("registry/reference", tests, NULL, NULL);
}

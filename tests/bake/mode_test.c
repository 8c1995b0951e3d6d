/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/mode_priv.h"
#include "tests/check.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void modes_are_what_chmod_makes_of_them(void **state)
{
	static const struct {
		const char *text;
		mode_t file;    /* of 0640 */
		mode_t dir;     /* of 02750 */
		mode_t program; /* of 04710 */
	} cases[] = {
		{"0", 0, 0, 0},
		{"644", 0644, 0644, 0644},
		{"07777", 07777, 07777, 07777},
		{"+x", 0751, 02751, 04711},
		{"u+x", 0740, 02750, 04710},
		{"a-w", 0440, 02550, 04510},
		{"u=rwX,go=rX", 0644, 02755, 0755},
		{"g=u", 0660, 02770, 04770},
		{"go=u-w", 0644, 02755, 04755},
		{"o+t", 01640, 03750, 05710},
		{"u+s,g-s", 04640, 04750, 04710},
		{"=r", 0444, 02444, 0444},
		{"a=", 0, 02000, 0},
		{"ug+rwx,o=", 0770, 02770, 04770},
		{"+X", 0640, 02751, 04711},
		{"u-r+x=w", 0240, 02250, 0210},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str text = str_of(cases[i].text);
		struct err err = {0};

		check_ok(mode_check(text, &err), &err);
		if (mode_apply(text, 0640, false) != cases[i].file ||
		    mode_apply(text, 02750, true) != cases[i].dir ||
		    mode_apply(text, 04710, false) != cases[i].program)
			fail_msg("%s: %o %o %o", cases[i].text, mode_apply(text, 0640, false),
				 mode_apply(text, 02750, true), mode_apply(text, 04710, false));
	}
}

static void what_is_no_mode_is_refused(void **state)
{
	static const char *const wrong[] = {"",     "8",         "10000", "0o644", "x",
					    "u",    "u+q",       "u+x,",  ",u+x",  "u+x g",
					    "+ugx", "rwxr-xr-x", "644x",  "-0644", "u=rw;"};

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct err err = {0};

		check_err(mode_check(str_of(wrong[i]), &err), &err, ERR_REFUSED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_are_what_chmod_makes_of_them),
		cmocka_unit_test(what_is_no_mode_is_refused),
	};

	return cmocka_run_group_tests_name("bake/mode", tests, NULL, NULL);
}

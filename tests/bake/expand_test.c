/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/expand.h"
#include "bake/state.h"
#include "tests/check.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* HOME=/root NAME=ada EMPTY= BLANKS="a  b" DOLLAR=$NAME, and values for patterns */
static void make_state(struct state *out)
{
	static const struct platform platform = {"linux", "amd64", ""};
	struct err err = {0};

	check_ok(state_from_scratch(&platform, out, &err), &err);
	check_ok(state_set_env(out, STR("HOME"), STR("/root"), &err), &err);
	check_ok(state_set_env(out, STR("NAME"), STR("ada"), &err), &err);
	check_ok(state_set_env(out, STR("EMPTY"), STR(""), &err), &err);
	check_ok(state_set_env(out, STR("BLANKS"), STR("a  b"), &err), &err);
	check_ok(state_set_env(out, STR("DOLLAR"), STR("$NAME"), &err), &err);
	check_ok(state_set_env(out, STR("P"), STR("a/b/c.tar.gz"), &err), &err);
	check_ok(state_set_env(out, STR("EXT"), STR(".gz"), &err), &err);
	check_ok(state_set_env(out, STR("STARS"), STR("*a*?"), &err), &err);
	check_ok(state_set_env(out, STR("BRACE"), STR("}x}"), &err), &err);
	check_ok(state_set_env(out, STR("UML"),
			       STR("\xc3\xbc"
				   "b"),
			       &err),
		 &err);
}

static const struct {
	const char *word;
	const char *value;
} word_cases[] = {
	/* names */
	{"", ""},
	{"plain", "plain"},
	{"$NAME", "ada"},
	{"${NAME}", "ada"},
	{"x$NAME", "xada"},
	{"${NAME}x", "adax"},
	{"$NAMEx", ""},
	{"$NAME.x", "ada.x"},
	{"$NAME/$NAME", "ada/ada"},
	{"$NAME$NAME", "adaada"},
	{"${NAME}${NAME}", "adaada"},
	{"$HOME/bin", "/root/bin"},
	{"$UNSET", ""},
	{"${UNSET}", ""},
	{"/path/$UNSET", "/path/"},
	{"$EMPTY", ""},
	{"a${EMPTY}b", "ab"},
	{"$BLANKS", "a  b"},
	{"$DOLLAR", "$NAME"},
	{"$_", ""},
	{"${_x1}", ""},
	{"$name", ""},
	{"$PATH", STATE_PATH_DEFAULT},
	/* positional and special names are unset */
	{"$1", ""},
	{"$1x", "x"},
	{"$12x", "x"},
	{"${12}x", "x"},
	{"$0", ""},
	{"$@@@", "@@"},
	{"$*x", "x"},
	{"$#", ""},
	{"$?", ""},
	{"$-", ""},
	{"$!", ""},
	{"$$NAME", "NAME"},
	{"${#}", ""},
	{"${@}y", "y"},
	/* dollars that name nothing */
	{"$", "$"},
	{"a$", "a$"},
	{"$.", "$."},
	{"$/x", "$/x"},
	{"$ x", "$ x"},
	{"$}", "$}"},
	{"\"$\"", "$"},
	{"$'x'", "$x"},
	{"$\"x\"", "$x"},
	/* single quotes */
	{"'x'", "x"},
	{"''", ""},
	{"'$NAME'", "$NAME"},
	{"'\\$NAME'", "\\$NAME"},
	{"'a\\'", "a\\"},
	{"'a\"b'", "a\"b"},
	{"a'b'c", "abc"},
	{"'a b'", "a b"},
	{"'a''b'", "ab"},
	/* double quotes */
	{"\"x\"", "x"},
	{"\"\"", ""},
	{"\"$NAME\"", "ada"},
	{"\"${NAME}x\"", "adax"},
	{"\"'$NAME'\"", "'ada'"},
	{"\"\\$NAME\"", "$NAME"},
	{"\"\\\\\"", "\\"},
	{"\"\\\"\"", "\""},
	{"\"a\\tb\"", "a\\tb"},
	{"\"a\\'b\"", "a\\'b"},
	{"\"a b\"", "a b"},
	{"\"a\"'b'", "ab"},
	{"\"$UNSET\"", ""},
	{"\"$BLANKS\"", "a  b"},
	{"\"a\\", NULL},
	/* escapes */
	{"abc\\tdef", "abctdef"},
	{"\\$NAME", "$NAME"},
	{"\\${NAME}", "${NAME}"},
	{"\\\\$NAME", "\\ada"},
	{"\\\\", "\\"},
	{"a\\", "a"},
	{"\\", ""},
	{"a\\ b", "a b"},
	{"\\'a", "'a"},
	{"\\\"a", "\"a"},
	{"\\n", "n"},
	/* other letters */
	{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
	{"${NAME}\xc3\xbc", "ada\xc3\xbc"},
	{"'\xe2\x82\xac'$NAME", "\xe2\x82\xac"
				"ada"},
	/* refused */
	{"'", NULL},
	{"'a", NULL},
	{"a'b\\'c'", NULL},
	{"\"", NULL},
	{"\"$NAME", NULL},
	{"\"a\\\"", NULL},
	{"${", NULL},
	{"${NAME", NULL},
	{"${}", NULL},
	{"${:x}", NULL},
	{"${{x}", NULL},
	{"${.}", NULL},
	{"${ NAME}", NULL},
	{"${NAME }", NULL},
	{"${!x}", NULL},
	{"${NAME:=x}", NULL},
	{"${NAME=x}", NULL},
	{"${NAME:x}", NULL},
	{"${NAME:#x}", NULL},
	{"${NAME:%x}", NULL},
	{"${NAME:/a/b}", NULL},
	{"${NAME:}", NULL},
	{"${NAME:", NULL},
	{"${NAME:-x", NULL},
	{"${NAME:-'x}", NULL},
	{"${NAME#x", NULL},
	{"${NAME/x}", NULL},
	{"${NAME/x/y", NULL},
	{"${-x}", NULL},
	{"${+x}", NULL},
	{"${UNSET?}", NULL},
	{"${UNSET:?no}", NULL},
	{"${EMPTY:?}", NULL},
	{"${NAME#\\d}", NULL},
	{"${NAME%a\\}", NULL},
	/* letters of all scripts are a name's */
	{"$NAME\xc3\xbc", ""},
	{"$\xc3\xbcx.y", ".y"},
	{"${\xc3\xbc}", ""},
	{"$NAME\xe2\x82\xac", "ada\xe2\x82\xac"},
	{"$NAME\xff", "ada\xff"},
	/* defaults */
	{"${NAME:-x}", "ada"},
	{"${NAME-x}", "ada"},
	{"${EMPTY:-x}", "x"},
	{"${EMPTY-x}", ""},
	{"${UNSET:-x}", "x"},
	{"${UNSET-x}", "x"},
	{"${UNSET-}", ""},
	{"${NAME:+x}", "x"},
	{"${NAME+x}", "x"},
	{"${EMPTY:+x}", ""},
	{"${EMPTY+x}", "x"},
	{"${UNSET:+x}", ""},
	{"${UNSET+x}", ""},
	{"${NAME:?x}", "ada"},
	{"${NAME?x}", "ada"},
	{"${EMPTY?x}", ""},
	{"${1:-x}y", "xy"},
	{"${*:-x}", "x"},
	{"\"${UNSET:-x y}\"", "x y"},
	{"${UNSET:-\"a b\"'$c'}", "a b$c"},
	{"${UNSET:-$NAME}", "ada"},
	{"${UNSET:-${EMPTY:-${NAME}}}z", "adaz"},
	{"${UNSET:-a\\}b}", "a}b"},
	{"he${NIX:-\\${PWD}z}xx", "he${PWDz}xx"},
	{"${UNSET:--}", "-"},
	{"${UNSET:-:x}", ":x"},
	{"${UNSET:-/}x", "/x"},
	/* cut in front and behind */
	{"${P#*/}", "b/c.tar.gz"},
	{"${P##*/}", "c.tar.gz"},
	{"${P%.*}", "a/b/c.tar"},
	{"${P%%.*}", "a/b/c"},
	{"${P#a/}", "b/c.tar.gz"},
	{"${P#b}", "a/b/c.tar.gz"},
	{"${P#?/}", "b/c.tar.gz"},
	{"${P%.?z}", "a/b/c.tar"},
	{"${P#}", "a/b/c.tar.gz"},
	{"${P##*}", ""},
	{"${P#*}", "a/b/c.tar.gz"},
	{"${P%%*}", ""},
	{"${P##*.*a}", "r.gz"},
	{"${P%\"r.gz\"}", "a/b/c.ta"},
	{"${P%$EXT}", "a/b/c.tar"},
	{"${STARS#\\*}", "a*?"},
	{"${STARS#*}", "*a*?"},
	{"${STARS%\\?}", "*a*"},
	{"${STARS#[*]}", "*a*?"},
	{"${BRACE#\\}}", "x}"},
	{"${UNSET#x}", ""},
	{"${UML#?}", "b"},
	{"${UML%b}", "\xc3\xbc"},
	/* replace */
	{"${P/b/X}", "a/X/c.tar.gz"},
	{"${P/\\//-}", "a-b/c.tar.gz"},
	{"${P//\\//-}", "a-b-c.tar.gz"},
	{"${P/a*c/}", ".tar.gz"},
	{"${P//a/A}", "A/b/c.tAr.gz"},
	{"${P//.*/}", "a/b/c"},
	{"${P/z/$NAME}", "a/b/c.tar.gada"},
	{"${P/nix/x}", "a/b/c.tar.gz"},
	{"${P//a?/-}", "-b/c.t-.gz"},
	{"${NAME//*/x}", "x"},
	{"${NAME///x}", "xaxdxax"},
	{"${NAME/a/}", "da"},
	{"${NAME//a/\"b c\"}", "b cdb c"},
	{"${UNSET/x/y}", ""},
	{"${NAME/./x}", "ada"},
};

static void words_expand(void **unused)
{
	auto_state struct state state = {0};

	(void)unused;
	make_state(&state);
	for (size_t i = 0; i < COUNT(word_cases); i++) {
		auto_buf struct buf out = BUF_INIT(4096);
		struct err err = {0};
		int result = expand_word(str_of(word_cases[i].word), &state, &out, &err);

		if (result == 0 && !word_cases[i].value)
			fail_msg("%s: %s, not refused", word_cases[i].word, out.ptr);
		if (result < 0 && word_cases[i].value)
			fail_msg("%s: %s", word_cases[i].word, err.text);
		if (result == 0)
			assert_string_equal(out.ptr, word_cases[i].value);
		else
			assert_int_equal(err.kind, ERR_REFUSED);
	}
}

static void a_demand_says_what_it_was_told(void **unused)
{
	auto_state struct state state = {0};
	auto_buf struct buf out = BUF_INIT(4096);
	struct err err = {0};

	(void)unused;
	make_state(&state);
	check_err(expand_word(STR("${UNSET:?say $NAME}"), &state, &out, &err), &err, ERR_REFUSED);
	assert_string_equal(err.text, "UNSET: say ada");
	check_err(expand_word(STR("${UNSET?}"), &state, &out, &err), &err, ERR_REFUSED);
	assert_string_equal(err.text, "UNSET: is not allowed to be unset");
	check_err(expand_word(STR("${EMPTY:?}"), &state, &out, &err), &err, ERR_REFUSED);
	assert_string_equal(err.text, "EMPTY: is not allowed to be empty");
	check_ok(expand_word(STR("${UNSET?}"), NULL, &out, &err), &err); /* its form is right */
}

static void forms_in_forms_have_a_ceiling(void **unused)
{
	auto_state struct state state = {0};
	auto_buf struct buf word = BUF_INIT(4096);
	auto_buf struct buf out = BUF_INIT(4096);
	struct err err = {0};

	(void)unused;
	make_state(&state);
	for (size_t i = 0; i < 200; i++)
		check_ok(buf_add(&word, STR("${A-"), &err), &err);
	check_err(expand_word(buf_str(&word), &state, &out, &err), &err, ERR_REFUSED);
	assert_string_equal(err.text, "${…} nested deeper than 100");
}

static void a_word_has_a_ceiling(void **unused)
{
	auto_state struct state state = {0};
	auto_buf struct buf big = BUF_INIT(EXPAND_MAX);
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);
	auto_buf struct buf out = BUF_INIT(EXPAND_MAX);
	struct err err = {0};

	(void)unused;
	make_state(&state);
	for (size_t i = 0; i < 100000; i++)
		check_ok(buf_add(&big, STR("x"), &err), &err);
	check_ok(state_set_env(&state, STR("BIG"), buf_str(&big), &err), &err);
	for (size_t i = 0; i < 20; i++)
		check_ok(buf_add(&word, STR("$BIG"), &err), &err);
	check_err(expand_word(buf_str(&word), &state, &out, &err), &err, ERR_LIMIT);
	assert_int_equal(out.len, 0);
}

static void instructions_expand_into_texts_of_their_own(void **unused)
{
	static const struct {
		const char *step;
		const char *text;
	} cases[] = {
		{"COPY $NAME /$NAME/", "COPY {\"args\":[\"ada\",\"/ada/\"]}"},
		{"COPY [\"a b\", \"$HOME\"]", "COPY {\"args\":[\"a b\",\"/root\"]}"},
		/* quotes and escapes of the JSON form's elements go, too */
		{"COPY [\"'$a b'\", \"\\\"$HOME\\\"/\\\\x\"]",
		 "COPY {\"args\":[\"$a b\",\"/root/x\"]}"},
		{"COPY \"a\" '/x'", "COPY {\"args\":[\"a\",\"/x\"]}"},
		{"COPY a\\ b \"c\"", NULL}, /* blanks cut first: a\ and b and c */
		{"COPY --chown=$NAME --chmod=0644 a b",
		 "COPY {\"args\":[\"a\",\"b\"],\"chmod\":\"0644\",\"chown\":\"ada\"}"},
		{"ENV A=$NAME B=\"$BLANKS\"", "ENV {\"args\":[\"A\",\"ada\",\"B\",\"a  b\"]}"},
		{"ENV $NAME=1", "ENV {\"args\":[\"ada\",\"1\"]}"},
		/* all words of an instruction see the values of before */
		{"ENV NAME=bob X=$NAME", "ENV {\"args\":[\"NAME\",\"bob\",\"X\",\"ada\"]}"},
		{"COPY --link --from=x:1 --parents --exclude=$a --exclude=b c d",
		 "COPY {\"args\":[\"c\",\"d\"],\"exclude\":[\"$a\",\"b\"],\"from\":\"x:1\","
		 "\"link\":true,\"parents\":true}"},
		/* where a backtick escapes, a backslash is a letter */
		{"# escape=`\nENV A=`$NAME B=a` b C=\"`$x``\" D='`\\' E=c:\\$NAME F=`",
		 "ENV {\"args\":[\"A\",\"$NAME\",\"B\",\"a b\",\"C\",\"$x`\",\"D\",\"`\\\\\","
		 "\"E\",\"c:\\\\ada\",\"F\",\"\"]}"},
		{"# escape=`\nENV A `\n b\\", "ENV {\"args\":[\"A\",\"b\\\\\"]}"},
		{"# escape=`\nCOPY [\"`$NAME\", \"c:\\\\x\"]",
		 "COPY {\"args\":[\"$NAME\",\"c:\\\\x\"]}"},
		{"# escape=`\nCOPY --chown=$NAME a`b c:\\",
		 "COPY {\"args\":[\"ab\",\"c:\\\\\"],\"chown\":\"ada\"}"},
		{"# escape=`\nWORKDIR c:\\$NAME` ", "WORKDIR {\"args\":[\"c:\\\\ada\"]}"},
		{"WORKDIR $HOME/a b", "WORKDIR {\"args\":[\"/root/a b\"]}"},
		{"RUN echo $NAME", "RUN echo $NAME"},
		{"RUN [\"echo\", \"$NAME\"]", "RUN [\"echo\", \"$NAME\"]"},
	};
	auto_state struct state state = {0};

	(void)unused;
	make_state(&state);
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_instruction struct instruction made = {0};
		auto_instruction struct instruction whole = {0};
		struct err err = {0};

		check_ok(instruction_parse(str_of(cases[i].step), &made, &err), &err);
		check_ok(expand_instruction(&made, &state, &whole, &err), &err);
		if (cases[i].text)
			assert_string_equal(whole.text.ptr, cases[i].text);
		else
			assert_int_equal(whole.args.count, 3);
	}
}

static void what_expansion_brings_to_light_is_refused(void **unused)
{
	static const char *const steps[] = {
		"ENV $UNSET=1",   "ENV $EQUALS=1",    "COPY --chmod=$NAME a b",
		"COPY $URL /x",   "COPY a[$UNSET /x", "COPY --chmod=$UNSET a b",
		"WORKDIR $UNSET", "WORKDIR \"\"",
	};
	auto_state struct state state = {0};
	struct err err = {0};

	(void)unused;
	make_state(&state);
	check_ok(state_set_env(&state, STR("URL"), STR("https://example.com/"), &err), &err);
	check_ok(state_set_env(&state, STR("EQUALS"), STR("a=b"), &err), &err);

	for (size_t i = 0; i < COUNT(steps); i++) {
		auto_instruction struct instruction made = {0};
		struct instruction none = {0};

		check_ok(instruction_parse(str_of(steps[i]), &made, &err), &err);
		check_err(expand_instruction(&made, &state, &none, &err), &err, ERR_REFUSED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_expand),
		cmocka_unit_test(a_demand_says_what_it_was_told),
		cmocka_unit_test(forms_in_forms_have_a_ceiling),
		cmocka_unit_test(a_word_has_a_ceiling),
		cmocka_unit_test(instructions_expand_into_texts_of_their_own),
		cmocka_unit_test(what_expansion_brings_to_light_is_refused),
	};

	return cmocka_run_group_tests_name("bake/expand", tests, NULL, NULL);
}

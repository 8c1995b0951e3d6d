/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/instruction.h"
#include "bake/lines_priv.h"
#include "tests/check.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void text_is_joined_and_cleaned(void **state)
{
	static const struct {
		const char *step;
		const char *text;
	} cases[] = {
		/* names */
		{"RUN true", "RUN true"},
		{"run true", "RUN true"},
		{"rUn\ttrue", "RUN true"},
		{"  RUN   true  \t ", "RUN true"},
		{"env a=b", "ENV a=b"},
		{"Workdir /a b", "WORKDIR /a b"},
		{"copy a b", "COPY a b"},
		/* continuations: nothing is put in between, blanks in front are kept */
		{"RUN a\\\nb", "RUN ab"},
		{"RUN a \\\n  b", "RUN a   b"},
		{"RUN a\\  \t\nb", "RUN ab"},
		{"RUN a \\\r\n b\r\n", "RUN a  b"},
		{"RUN \\\n\\\n a", "RUN a"},
		{"RUN a \\", "RUN a"},
		{"RUN a \\\n", "RUN a"},
		{"\\\nRUN a", "RUN a"},
		{"RUN a \\\n\\\n b", "RUN a  b"},
		{"RUN echo a \\\\", "RUN echo a \\\\"},
		{"RUN echo a\\\\\\", "RUN echo a\\\\\\"},
		/* comments and blank lines */
		{"# why\nRUN a", "RUN a"},
		{"\n\n  # why\n\nRUN a\n\n# after\n  \n", "RUN a"},
		{"RUN a \\\n# b\\\nc", "RUN a c"},
		{"RUN a \\\n   # b\n c", "RUN a  c"},
		{"RUN a \\\n\n \t\n c", "RUN a  c"},
		{"RUN a # b", "RUN a # b"},
		{"WORKDIR /a # x", "WORKDIR /a # x"},
		{"RUN a \\\n#", "RUN a"},
		{"# syntax=x\n# check=y\n# escape=\\\nRUN a", "RUN a"},
		{"# first\n# escape=`\nRUN a", "RUN a"},
		{"\n# escape=`\nRUN a", "RUN a"},
		{"# is no key = x\n# escape=`\nRUN a", "RUN a"},
		{"# other = x\n# escape=`\nRUN a `\n b", "RUN a  b"},
		{"RUN a \\\n# escape=`\n b", "RUN a  b"},
		{"# escape=`\nRUN a `\n b", "RUN a  b"},
		{"#ESCAPE = `\nRUN a `` ` \t\n b\\", "RUN a ``  b\\"},
		{"# escape=`\nRUN a ``", "RUN a ``"},
		{"# escape=`\nRUN --mount=type=tmpfs,target=/a` b c",
		 "# escape=`\nRUN --mount=type=tmpfs,target=/a` b c"},
		{"# escape=`\nENV a `\n b", "# escape=`\nENV a  b"},
		/* bytes */
		{"\xef\xbb\xbfRUN a", "RUN a"},
		{"RUN echo \"gr\xc3\xbc\xc3\x9f\"", "RUN echo \"gr\xc3\xbc\xc3\x9f\""},
		{"RUN a\tb", "RUN a\tb"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_instruction struct instruction made = {0};
		struct err err = {0};

		check_ok(instruction_parse(str_of(cases[i].step), &made, &err), &err);
		assert_string_equal(made.text.ptr, cases[i].text);
	}
}

static const struct {
	const char *step;
	const char *says;
} refused_cases[] = {
	{"ENTRYPOINT [\"x\"]", "ENTRYPOINT is refused: only RUN, COPY, ENV and WORKDIR"},
	{"from debian", "FROM is refused"},
	{"FROM debian", "the base is the image's \"base\""},
	{"ADD a b", "COPY takes files"},
	{"USER x", "USER is refused"},
	{"RNU true", "unknown instruction RNU"},
	{"RNU true", "did you mean RUN?"},
	{"CPOY a b", "did you mean COPY?"},
	{"WORKDIRR /", "did you mean WORKDIR?"},
	{"RUN", "RUN: a command is missing"},
	{"COPY", "COPY: expected at least one source"},
	{"ENV", "ENV: expected NAME=VALUE"},
	{"WORKDIR", "WORKDIR: a path is missing"},
	{"", "an empty step"},
	{" \t\n", "an empty step"},
	{"# only this", "an empty step"},
	{"\\", "an empty step"},
	{"RUN\xc2\xa0true", "unknown instruction"},
	{"R", "unknown instruction R"},
	/* a second instruction */
	{"RUN a\nRUN b", "line 2: a step is one instruction"},
	{"RUN a\n# c\n\n  b", "line 4: a step is one instruction"},
	{"RUN a \\\\\nb", "line 2: a step is one instruction"},
	{"RUN cat <<EOF\nhello\nEOF", "heredocs are not supported yet"},
	/* directives */
	{"# escape=\nRUN a", "line 1: # escape=: only \\ or ` escapes"},
	{"# syntax=x\n#EsCaPe = ^\nRUN a", "line 2: # escape=^: only \\ or ` escapes"},
	{"# escape=`\nRUN a \\\nb", "line 3: a step is one instruction"},
	{"# escape=`\nENV a='b`'c'", "never closed"},
	{"# escape=\\\n# escape=\\\nRUN a", "line 2: # escape= is given twice"},
	{"# syntax=x\n# Syntax = x\nRUN a", "line 2: # syntax= is given twice"},
	/* bytes */
	{"RUN a\x01", "line 1 holds the control byte 0x01"},
	{"RUN a \\\n\x1b[0m", "line 2 holds the control byte 0x1b"},
	{"RUN a\x7f", "0x7f"},
	{"RUN a\rb", "0x0d"},
	/* flags */
	{"RUN --mount true", "--mount: expected =type=TYPE"},
	{"RUN --mount=target=/x,from=0 true", "there are no stages; name an image"},
	{"RUN --mount=target=/x,from=scratch true", "it holds no files"},
	{"RUN --mount=type=ssh true", "RUN: --mount: type=ssh is refused"},
	{"RUN --mount=type=cache,targte=/x true", "unknown key targte; did you mean target?"},
	{"RUN --mont=type=cache,target=/x true", "unknown flag --mont; did you mean mount?"},
	{"RUN --security=insecure true", "--security is not supported yet"},
	{"RUN --device=x true", "--device is not supported yet"},
	{"RUN --network=host true", "--network=host is not supported"},
	{"RUN --network=some true", "expected default or none"},
	{"RUN --network true", "expected default or none"},
	{"RUN --network=none --network=none true", "--network is given twice"},
	{"RUN --netwrok=none true", "unknown flag --netwrok; did you mean network?"},
	{"RUN --chown=1 true", "unknown flag --chown"},
	{"RUN --x=\"a true", "never closed"},
	{"COPY --from= a b", "--from: expected =IMAGE"},
	{"COPY --from a b", "--from: expected =IMAGE"},
	{"COPY --from=$x a b", "variable expansion is not supported for --from"},
	{"COPY --from=deb${x} a b", "variable expansion is not supported for --from"},
	{"COPY --from=x --from=y a b", "--from is given twice"},
	{"COPY --from=0 a b", "--from=0: there are no stages"},
	{"COPY --from=scratch a b", "it holds no files"},
	{"COPY --from=A:b:c a b", "is no image's name"},
	{"COPY --link= a b", "--link=: expected true or false"},
	{"COPY --link=maybe a b", "--link=maybe: expected true or false"},
	{"COPY --lnk a b", "unknown flag --lnk; did you mean link?"},
	{"COPY --parents= a b", "--parents=: expected true or false"},
	{"COPY --parents=yes a b", "--parents=yes: expected true or false"},
	{"COPY --parents --parents a b", "--parents is given twice"},
	{"COPY --exclude a b", "--exclude: expected =PATTERN"},
	{"COPY --exclude=a[ a b", "--exclude: a[ is no pattern"},
	{"COPY --exclud=x a b", "did you mean exclude?"},
	{"COPY --checksum=x a b", "unknown flag --checksum"},
	{"COPY --chmod 755 a b", "--chmod: expected =MODE"},
	{"COPY --chmod=u=rwq a b", "or changes like u=rwX,go=rX"},
	{"COPY --chmod=ug a b", "or changes like u=rwX,go=rX"},
	{"COPY --chmod=u+x, a b", "or changes like u=rwX,go=rX"},
	{"COPY --chmod=x a b", "or changes like u=rwX,go=rX"},
	{"COPY --chmod=8 a b", "expected octal, 0 to 07777"},
	{"COPY --chmod=10000 a b", "expected octal, 0 to 07777"},
	{"COPY --chmod=77777777777777777777 a b", "expected octal"},
	{"COPY --chown= a b", "--chown: expected"},
	{"COPY --chown=1 --chown=2 a b", "--chown is given twice"},
	{"ENV --x a=b", "unknown flag --x"},
	{"WORKDIR --x /a", "unknown flag --x"},
	/* exec form */
	{"RUN []", "a command is missing"},
	{"RUN [\"\"]", "the program's name is empty"},
	{"RUN [\"a\", 1]", "element 2 of the JSON form is no string"},
	{"RUN [[\"a\"]]", "element 1 of the JSON form is no string"},
	{"RUN [\"a\\u0000b\"]", "element 1 holds a NUL byte"},
	{"COPY [\"a\", null]", "element 2 of the JSON form is no string"},
	{"COPY [\"a\"]", "at least one source"},
	/* heredocs */
	{"RUN cat <<EOF", "heredocs (<<NAME) are not supported yet"},
	{"RUN cat 3<<-'EOF' x", "heredocs"},
	{"COPY <<a /b", "heredocs"},
	{"COPY a <<b", "heredocs"},
	/* sources */
	{"COPY https://example.com/x /y", "COPY takes files from the context"},
	{"COPY git@example.com:a/b /y", "COPY takes files from the context"},
	/* forms that expansion refuses, before anything runs */
	{"COPY \"a b\" /x", "never closed"},
	{"COPY ${a:=b} /x", "${a:=…} is no form of a variable"},
	{"COPY --chown=${a a b", "no closing }"},
	{"ENV a=${b%%c", "no closing }"},
	{"ENV a='b", "never closed"},
	{"WORKDIR ${", "no closing }"},
	/* ENV */
	{"ENV k", "expected NAME=VALUE, found only k"},
	{"ENV a=1 b", "expected NAME=VALUE, found b"},
	{"ENV =x", "the name before = is empty"},
	{"ENV a=1 =x", "the name before = is empty"},
};

static void what_is_not_one_of_the_four_is_refused_in_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(refused_cases); i++) {
		struct instruction made = {.command = NULL};
		struct err err = {0};

		check_err(instruction_parse(str_of(refused_cases[i].step), &made, &err), &err,
			  ERR_REFUSED);
		if (!strstr(err.text, refused_cases[i].says))
			fail_msg("%s: said \"%s\", not \"%s\"", refused_cases[i].step, err.text,
				 refused_cases[i].says);
	}
}

/* words are written as one text, each ended by '|' */
static void check_words(const char *step, const struct words *words, const char *expected)
{
	auto_buf struct buf text = BUF_INIT(4096);
	struct err err = {0};

	for (size_t i = 0; i < words->count; i++)
		check_ok(buf_addf(&text, &err, "%s|", words->at[i]), &err);
	if (strcmp(text.ptr ? text.ptr : "", expected) != 0)
		fail_msg("%s: %s, not %s", step, text.ptr, expected);
}

static void arguments_are_cut_as_each_instruction_wants(void **state)
{
	static const struct {
		const char *step;
		const char *words;
	} cases[] = {
		{"ENV a=1", "a|1|"},
		{"ENV a=1 b=2\tc=3", "a|1|b|2|c|3|"},
		{"ENV a=\"x y\" b=x\\ y c='$z'", "a|\"x y\"|b|x\\ y|c|'$z'|"},
		{"ENV a=", "a||"},
		{"ENV a=b=c", "a|b=c|"},
		{"ENV a=\"b \\\" c\" d=e", "a|\"b \\\" c\"|d|e|"},
		{"ENV a='b\\' c=d", "a|'b\\'|c|d|"},
		{"ENV a=b\\", "a|b|"},
		{"ENV ONE TWO= THREE=world", "ONE|TWO= THREE=world|"},
		{"ENV a \t b  c ", "a|b  c|"},
		{"ENV $k=$v", "$k|$v|"},
		{"WORKDIR /a b  c", "/a b  c|"},
		{"WORKDIR $a/${b}", "$a/${b}|"},
		{"COPY a b", "a|b|"},
		{"COPY a  b\tc/", "a|b|c/|"},
		{"COPY \"a\" /x", "\"a\"|/x|"},
		{"COPY -- --foo /tmp/", "--foo|/tmp/|"},
		{"COPY --link=false --parents=FALSE a b", "a|b|"},
		{"COPY --link --from=debian:12 a b", "a|b|"},
		{"COPY --link=TRUE --exclude=\"x y\" a b", "a|b|"},
		{"COPY [\"a b\", \"c\\\\\\\"d\", \"/x\"]", "a b|c\\\"d|/x|"},
		{"COPY --chmod=0644 [\"a\",\"b\"]  ", "a|b|"},
		{"COPY ['a', 'b'] /x", "['a',|'b']|/x|"},
		{"COPY --parents --exclude=a --exclude=b a* /x", "a*|/x|"},
		{"RUN [\"echo\", \"$HOME\", \"a b\"]", "echo|$HOME|a b|"},
		{"RUN --network=none [ \"a\" ]", "a|"},
		/* no heredocs in the JSON form */
		{"RUN [\"cat\", \"<<EOF\"]", "cat|<<EOF|"},
		{"COPY [\"<<a\", \"/b\"]", "<<a|/b|"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_instruction struct instruction made = {0};
		struct err err = {0};

		check_ok(instruction_parse(str_of(cases[i].step), &made, &err), &err);
		check_words(cases[i].step, &made.args, cases[i].words);
	}
}

static void run_gives_its_text_to_the_shell_untouched(void **state)
{
	static const struct {
		const char *step;
		const char *command;
	} cases[] = {
		{"RUN apt-get update && apt-get install -y git",
		 "apt-get update && apt-get install -y git"},
		{"RUN echo \"$HOME\" '${x:-y}' \\$z", "echo \"$HOME\" '${x:-y}' \\$z"},
		{"RUN [ -f /x ] && y", "[ -f /x ] && y"},
		{"RUN [\"a\",]", "[\"a\",]"},
		{"RUN [\"a\"] b", "[\"a\"] b"},
		{"RUN ['a']", "['a']"},
		{"RUN [\"c:\\windows\"]", "[\"c:\\windows\"]"},
		{"RUN echo '<<EOF' \"<<EOF\" a<<b $((1 << 3)) <<<x", "echo '<<EOF' \"<<EOF\" a<<b "
								     "$((1 << 3)) <<<x"},
		{"RUN -- --x", "--x"},
		{"RUN --network=default a", "a"},
		{"RUN ls --all", "ls --all"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_instruction struct instruction made = {0};
		struct err err = {0};

		check_ok(instruction_parse(str_of(cases[i].step), &made, &err), &err);
		assert_false(made.exec_form);
		assert_string_equal(made.command, cases[i].command);
		assert_int_equal(made.args.count, 0);
	}
}

static void flags_reach_their_fields(void **state)
{
	auto_instruction struct instruction run = {0};
	auto_instruction struct instruction copy = {0};
	auto_instruction struct instruction plain = {0};
	auto_instruction struct instruction backtick = {0};
	struct err err = {0};

	(void)state;
	check_ok(instruction_parse(STR("RUN --network=\"no\"n\\e true"), &run, &err), &err);
	assert_true(run.network_none);
	assert_string_equal(run.command, "true");
	check_ok(instruction_parse(STR("COPY --chown=\"a b\":$g --chmod=0755 x y"), &copy, &err),
		 &err);
	assert_string_equal(copy.chown, "a b:$g");
	assert_string_equal(copy.chmod, "0755");
	check_ok(instruction_parse(STR("RUN true"), &plain, &err), &err);
	assert_false(plain.network_none);
	check_ok(
		instruction_parse(STR("# escape=`\nRUN --mount=type=cache,target=/a` b,id=c:\\d x"),
				  &backtick, &err),
		&err);
	assert_string_equal(backtick.mount_texts.at[0], "type=cache,target=/a b,id=c:\\\\d");
}

static void what_an_author_should_know_is_said(void **state)
{
	static const struct {
		const char *step;
		const char *says;
	} cases[] = {
		{"RUN a \\\n\n b", "a blank line within a continued one"},
		{"RUN a \\\n# c\n \t\n b", "a blank line within a continued one"},
		{"RUN a \\\n# a comment is none\n b", NULL},
		{"\n\nRUN a \\\n b\n\n", NULL},
		{"ENV a b c", "write ENV NAME=VALUE"},
		{"ENV a=b c=d", NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		auto_instruction struct instruction made = {0};
		struct err err = {0};

		check_ok(instruction_parse(str_of(cases[i].step), &made, &err), &err);
		if (cases[i].says)
			assert_non_null(strstr(made.warning, cases[i].says));
		else
			assert_null(made.warning);
	}
}

static void long_lines_are_fine_as_far_as_linux_takes_them(void **state)
{
	auto_free char *text = malloc(INSTRUCTION_MAX);
	auto_instruction struct instruction made = {0};
	struct instruction none = {0};
	struct err err = {0};

	(void)state;
	assert_non_null(text);
	memset(text, 'x', INSTRUCTION_MAX);
	memcpy(text, "RUN ", 4);
	check_ok(instruction_parse((struct str){text, 4 + INSTRUCTION_ARGUMENT_MAX}, &made, &err),
		 &err);
	assert_int_equal(strlen(made.command), INSTRUCTION_ARGUMENT_MAX);
	check_err(instruction_parse((struct str){text, 5 + INSTRUCTION_ARGUMENT_MAX}, &none, &err),
		  &err, ERR_REFUSED);
	assert_non_null(strstr(err.text, "COPY a script"));
	check_err(instruction_parse((struct str){text, INSTRUCTION_MAX}, &none, &err), &err,
		  ERR_REFUSED);
	assert_non_null(strstr(err.text, "a step of 1048576 bytes"));
	text[100] = '\0';
	check_err(instruction_parse((struct str){text, 200}, &none, &err), &err, ERR_REFUSED);
	assert_non_null(strstr(err.text, "0x00"));
}

static void there_is_a_ceiling_on_words(void **state)
{
	auto_buf struct buf text = BUF_INIT(INSTRUCTION_MAX);
	struct instruction none = {0};
	struct err err = {0};

	(void)state;
	check_ok(buf_addf(&text, &err, "COPY"), &err);
	for (size_t i = 0; i <= INSTRUCTION_WORDS_MAX; i++)
		check_ok(buf_addf(&text, &err, " a"), &err);
	check_err(instruction_parse(buf_str(&text), &none, &err), &err, ERR_REFUSED);
}

static void a_run_has_any_number_of_mounts(void **state)
{
	auto_instruction struct instruction run = {0};
	auto_buf struct buf many = BUF_INIT(8192);
	struct err err = {0};

	(void)state;
	check_ok(instruction_parse(STR("RUN --mount=type=tmpfs,target='/a b' --network=none "
				       "--mount=type=cache,\\\"target=/c,d\\\" make"),
				   &run, &err),
		 &err);
	assert_int_equal(run.mount_texts.count, 2);
	assert_string_equal(run.mount_texts.at[0], "type=tmpfs,target=/a b");
	assert_string_equal(run.mount_texts.at[1], "type=cache,\"target=/c,d\"");
	assert_true(run.network_none);
	assert_string_equal(run.command, "make");
	check_ok(buf_addf(&many, &err, "RUN "), &err);
	for (int i = 0; i <= MOUNTS_MAX; i++)
		check_ok(buf_addf(&many, &err, "--mount=type=tmpfs,target=/%d ", i), &err);
	check_ok(buf_addf(&many, &err, "true"), &err);
	instruction_done(&run);
	check_err(instruction_parse(buf_str(&many), &run, &err), &err, ERR_REFUSED);
}

static void steps_are_counted_by_kind(void **state)
{
	struct instruction_counts counts = {{0}, {0}};

	(void)state;
	instruction_count(STR("RUN make"), true, &counts);
	instruction_count(STR("run make"), false, &counts);
	instruction_count(STR("WORKDIR\t/srv"), false, &counts);
	instruction_count(STR("RUNNING late"), false, &counts);
	instruction_count(STR("ENV"), false, &counts);
	assert_int_equal(counts.all[INSTRUCTION_RUN], 2);
	assert_int_equal(counts.cached[INSTRUCTION_RUN], 1);
	assert_int_equal(counts.all[INSTRUCTION_WORKDIR], 1);
	assert_int_equal(counts.all[INSTRUCTION_ENV] + counts.all[INSTRUCTION_COPY], 0);
}

static void a_line_is_blamed(void **state)
{
	static const struct {
		const char *text;
		size_t line;
	} texts[] = {
		{"ADD a b", 1},
		{"", 1},
		{"# only this", 1},
		{"\n# a comment\n  ADD a b \\\n c", 3},
		{"RUN a\n\nRUN b\nRUN c", 3},
		{"RUN a \\\n b\001", 2},
		{"# escape=`\n# escape=`\nRUN a", 2},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_int_equal(lines_blame(str_of(texts[i].text)), texts[i].line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_blamed),
		cmocka_unit_test(a_run_has_any_number_of_mounts),
		cmocka_unit_test(text_is_joined_and_cleaned),
		cmocka_unit_test(what_is_not_one_of_the_four_is_refused_in_words),
		cmocka_unit_test(arguments_are_cut_as_each_instruction_wants),
		cmocka_unit_test(run_gives_its_text_to_the_shell_untouched),
		cmocka_unit_test(flags_reach_their_fields),
		cmocka_unit_test(what_an_author_should_know_is_said),
		cmocka_unit_test(long_lines_are_fine_as_far_as_linux_takes_them),
		cmocka_unit_test(there_is_a_ceiling_on_words),
		cmocka_unit_test(steps_are_counted_by_kind),
	};

	return cmocka_run_group_tests_name("bake/instruction", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli.h"
#include "api/commands.h"
#include "tests/check.h"

#include <string.h>

static const struct cli_option options[] = {
	{"base", "REF", "a value", false},
	{"tag", "NAME", "a value that repeats", true},
	{"no-cache", NULL, "a switch", false},
	{"follow", NULL, "a switch with a letter", false},
	{"a-long-name-with-a-long-value", "NAME=VALUE",
	 "what needs more words than there is room for in one line behind it", false},
	CLI_OPTION_HELP,
};

static const struct cli_command command = {
	.name = "try",
	.arguments = "SPEC",
	.summary = "tries",
	.detail = "",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.args_min = 1,
	.args_max = 1,
};

/* argv ends with NULL. */
static int parse(struct cli *cli, char **argv, struct err *err)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	*cli = (struct cli){.command = &command};
	return cli_parse(cli, argc, argv, err);
}

static void options_stand_before_or_after_arguments(void **state)
{
	char *argv[] = {
		(char[]){"--base"}, (char[]){"a=b"}, (char[]){"spec.json"},  (char[]){"--tag=x:1"},
		(char[]){"--tag"},  (char[]){"--y"}, (char[]){"--no-cache"}, NULL};
	struct err err = {0};
	struct cli cli;

	(void)state;
	check_ok(parse(&cli, argv, &err), &err);
	assert_string_equal(cli_text(&cli, "base"), "a=b");
	assert_int_equal(cli_list(&cli, "tag").count, 2);
	assert_string_equal(cli_list(&cli, "tag").at[1], "--y");
	assert_true(cli_has(&cli, "no-cache"));
	assert_false(cli_has(&cli, "help"));
	assert_int_equal(cli.arg_count, 1);
	cli_done(&cli);
}

static void two_dashes_end_the_options(void **state)
{
	char *argv[] = {(char[]){"--"}, (char[]){"--base"}, NULL};
	struct err err = {0};
	struct cli cli;

	(void)state;
	check_ok(parse(&cli, argv, &err), &err);
	assert_string_equal(cli.args[0], "--base");
	cli_done(&cli);
}

static void two_switches_have_a_letter(void **state)
{
	char *argv[] = {(char[]){"-f"}, (char[]){"spec.json"}, NULL};
	char *help[] = {(char[]){"-h"}, NULL};
	struct err err = {0};
	struct cli cli;

	(void)state;
	check_ok(parse(&cli, argv, &err), &err);
	assert_true(cli_has(&cli, "follow"));
	assert_int_equal(cli.arg_count, 1);
	cli_done(&cli);
	check_ok(parse(&cli, help, &err), &err);
	assert_true(cli_has(&cli, "help"));
	cli_done(&cli);
}

static void what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *words[4];
		const char *says;
	} cases[] = {
		{{"s", "--bsae", "x"}, "did you mean --base?"},
		{{"s", "--zzzzzz"}, "see hearth try --help"},
		{{"s", "--base"}, "--base needs a value: REF"},
		{{"s", "--base=a", "--base=b"}, "--base was given twice"},
		{{"s", "--no-cache=1"}, "--no-cache takes no value"},
		{{"s", "t"}, "unexpected argument t"},
		{{"-x", "s"}, "options have long names"},
		{{"--no-cache"}, "try needs SPEC"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char words[4][16];
		char *argv[5] = {NULL};
		struct err err = {0};
		struct cli cli;

		for (size_t w = 0; w < 4 && cases[i].words[w]; w++) {
			(void)snprintf(words[w], sizeof(words[w]), "%s", cases[i].words[w]);
			argv[w] = words[w];
		}
		check_err(parse(&cli, argv, &err), &err, ERR_INVALID);
		assert_non_null(strstr(err.text, cases[i].says));
		cli_done(&cli);
	}
}

static void help_needs_no_argument_and_lists_every_option(void **state)
{
	char *argv[] = {(char[]){"-h"}, NULL};
	char text[2048] = "";
	struct err err = {0};
	struct cli cli;
	FILE *out = fmemopen(text, sizeof(text), "w");

	(void)state;
	check_ok(parse(&cli, argv, &err), &err);
	cli_print_help(&command, out);
	assert_int_equal(fclose(out), 0);
	for (size_t i = 0; i < command.option_count; i++)
		assert_non_null(strstr(text, options[i].name));
	cli_done(&cli);
}

static void check_width(const struct cli_command *shown)
{
	static char text[16 * 1024];
	FILE *out = fmemopen(text, sizeof(text), "w");
	struct str rest;
	struct str line;

	cli_print_help(shown, out);
	assert_int_equal(fclose(out), 0);
	rest = str_of(text);
	while (str_cut(&rest, '\n', &line)) {
		if (line.len > 80)
			fail_msg("hearth %s --help: " STR_FMT, shown->name, STR_ARG(line));
	}
}

static void help_is_no_wider_than_a_terminal(void **state)
{
	(void)state;
	check_width(&command);
	for (size_t i = 0; commands[i]; i++)
		check_width(commands[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_stand_before_or_after_arguments),
		cmocka_unit_test(two_dashes_end_the_options),
		cmocka_unit_test(two_switches_have_a_letter),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(help_needs_no_argument_and_lists_every_option),
		cmocka_unit_test(help_is_no_wider_than_a_terminal),
	};

	return cmocka_run_group_tests_name("api/cli", tests, NULL, NULL);
}

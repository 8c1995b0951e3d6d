/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/turns.h"
#include "tests/check.h"

#include <stdio.h>

static struct turn turn_of(const char *bake_id, const char *agent_id, int64_t version)
{
	struct turn turn = {.version = version};

	(void)snprintf(turn.bake_id, sizeof(turn.bake_id), "%s", bake_id);
	(void)snprintf(turn.agent_id, sizeof(turn.agent_id), "%s", agent_id);
	return turn;
}

static void add(struct turns *turns, const char *bake_id, const char *agent_id, int64_t version)
{
	struct turn turn = turn_of(bake_id, agent_id, version);

	turns_add(turns, &turn);
}

static void check_taken(struct turns *turns, const char *expected)
{
	struct turn turn;
	int64_t due_ms;

	assert_true(turns_take(turns, 0, &turn, &due_ms));
	assert_string_equal(turn.bake_id, expected);
}

static void check_nothing(struct turns *turns, int64_t now_ms, int64_t expected_due_ms)
{
	struct turn turn;
	int64_t due_ms = 0;

	assert_false(turns_take(turns, now_ms, &turn, &due_ms));
	assert_int_equal(due_ms, expected_due_ms);
}

static void agents_take_turns_however_many_bakes_one_has(void **state)
{
	AUTO(turns) struct turns *turns = turns_new();

	(void)state;
	add(turns, "a1", "a", 1);
	add(turns, "a2", "a", 2);
	add(turns, "a3", "a", 3);
	add(turns, "b1", "b", 1);
	add(turns, "b2", "b", 2);
	add(turns, "c1", "c", 1);
	check_taken(turns, "a1");
	check_taken(turns, "b1");
	check_taken(turns, "c1");
	check_taken(turns, "a2");
	add(turns, "c2", "c", 2);
	check_taken(turns, "b2");
	check_taken(turns, "a3");
	check_taken(turns, "c2");
	check_nothing(turns, 0, TURNS_NEVER);
	assert_int_equal(turns_running(turns), 7);
}

static void a_version_and_its_rebake_do_not_run_together(void **state)
{
	AUTO(turns) struct turns *turns = turns_new();
	struct turn rebake = turn_of("a1r", "a", 1);

	(void)state;
	rebake.rebake = true;
	add(turns, "a1", "a", 1);
	turns_add(turns, &rebake);
	add(turns, "a2", "a", 2);
	check_taken(turns, "a1");
	check_taken(turns, "a2"); /* which passes the one that is held */
	check_nothing(turns, 0, TURNS_NEVER);
	turns_end(turns, "a1");
	check_taken(turns, "a1r");
}

static void a_rebake_waits_for_the_next_attempt_of_its_versions_bake(void **state)
{
	AUTO(turns) struct turns *turns = turns_new();
	struct turn rebake = turn_of("a1r", "a", 1);
	struct turn own = turn_of("a1", "a", 1);
	struct turn turn;
	int64_t due_ms;

	(void)state;
	rebake.rebake = true;
	own.due_ms = 100;
	turns_add(turns, &rebake);
	turns_add(turns, &own);
	check_nothing(turns, 0, 100);
	assert_true(turns_take(turns, 100, &turn, &due_ms));
	assert_string_equal(turn.bake_id, "a1");
	turns_end(turns, "a1");
	check_taken(turns, "a1r");
}

static void two_rebakes_of_an_agent_do_not_run_together(void **state)
{
	AUTO(turns) struct turns *turns = turns_new();
	struct turn first = turn_of("r1", "a", 1);
	struct turn second = turn_of("r2", "a", 2);
	struct turn other = turn_of("r3", "b", 1);

	(void)state;
	first.rebake = second.rebake = other.rebake = true;
	turns_add(turns, &first);
	turns_add(turns, &second);
	turns_add(turns, &other);
	check_taken(turns, "r1");
	check_taken(turns, "r3");
	check_nothing(turns, 0, TURNS_NEVER);
	turns_end(turns, "r1");
	check_taken(turns, "r2");
}

static void what_is_not_due_lets_others_pass_and_says_when(void **state)
{
	AUTO(turns) struct turns *turns = turns_new();
	struct turn later = turn_of("a1", "a", 1);
	struct turn much_later = turn_of("b1", "b", 1);
	struct turn turn;
	int64_t due_ms;

	(void)state;
	later.due_ms = 100;
	much_later.due_ms = 200;
	turns_add(turns, &much_later);
	turns_add(turns, &later);
	add(turns, "b2", "b", 2);
	check_taken(turns, "b2");
	check_nothing(turns, 99, 100);
	assert_true(turns_take(turns, 100, &turn, &due_ms));
	assert_string_equal(turn.bake_id, "a1");
	check_nothing(turns, 100, 200);
}

static void a_clock_that_went_back_puts_nobody_off(void **state)
{
	AUTO(turns) struct turns *turns = turns_new();
	struct turn waiting = turn_of("a1", "a", 1);
	const int64_t year_ms = (int64_t)365 * 24 * 60 * 60 * 1000;

	(void)state;
	waiting.due_ms = year_ms + 80000;
	turns_add(turns, &waiting);
	check_nothing(turns, year_ms, waiting.due_ms);
	check_taken(turns, "a1"); /* at 0 */
}

static void what_is_dropped_never_comes(void **state)
{
	AUTO(turns) struct turns *turns = turns_new();

	(void)state;
	add(turns, "a1", "a", 1);
	add(turns, "a2", "a", 2);
	assert_true(turns_drop(turns, STR("a1")));
	assert_false(turns_drop(turns, STR("a1")));
	assert_int_equal(turns_waiting(turns), 1);
	check_taken(turns, "a2");
	assert_false(turns_drop(turns, STR("a2"))); /* it runs */
	check_nothing(turns, 0, TURNS_NEVER);
}

static void a_hundred_thousand_agents_are_no_burden(void **state)
{
	AUTO(turns) struct turns *turns = turns_new();
	struct turn turn = turn_of("", "", 1);

	(void)state;
	for (size_t i = 0; i < TURNS_MAX; i++) {
		(void)snprintf(turn.bake_id, sizeof(turn.bake_id), "b%zu", i);
		(void)snprintf(turn.agent_id, sizeof(turn.agent_id), "a%zu", i);
		turns_add(turns, &turn);
	}
	assert_int_equal(turns_waiting(turns), TURNS_MAX);
	for (size_t i = 0; i < TURNS_MAX; i++) {
		(void)snprintf(turn.bake_id, sizeof(turn.bake_id), "b%zu", i);
		check_taken(turns, turn.bake_id);
		turns_end(turns, turn.bake_id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agents_take_turns_however_many_bakes_one_has),
		cmocka_unit_test(a_version_and_its_rebake_do_not_run_together),
		cmocka_unit_test(a_rebake_waits_for_the_next_attempt_of_its_versions_bake),
		cmocka_unit_test(two_rebakes_of_an_agent_do_not_run_together),
		cmocka_unit_test(what_is_not_due_lets_others_pass_and_says_when),
		cmocka_unit_test(a_clock_that_went_back_puts_nobody_off),
		cmocka_unit_test(what_is_dropped_never_comes),
		cmocka_unit_test(a_hundred_thousand_agents_are_no_burden),
	};

	return cmocka_run_group_tests_name("bake/turns", tests, NULL, NULL);
}

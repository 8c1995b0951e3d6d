/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/array.h"
#include "tests/check.h"

#define ITEMS_MAX ((size_t)1000)

static void an_array_keeps_what_it_has_up_to_its_ceiling(void **state)
{
	auto_free size_t *items = NULL;
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ITEMS_MAX; i++) {
		check_ok(array_make_room(&items, sizeof(*items), i, ITEMS_MAX, "items", &err),
			 &err);
		items[i] = i;
	}
	check_err(array_make_room(&items, sizeof(*items), ITEMS_MAX, ITEMS_MAX, "items", &err),
		  &err, ERR_LIMIT);
	assert_string_equal(err.text, "more than 1000 items");
	for (size_t i = 0; i < ITEMS_MAX; i++)
		assert_int_equal(items[i], i);
}

static void room_is_there_again_after_elements_went(void **state)
{
	auto_free char *stack = NULL;
	size_t count = 0;
	struct err err = {0};

	(void)state;
	for (size_t top = 1; top < 70; top++) {
		while (count < top) {
			check_ok(array_make_room(&stack, 1, count, 100, "items", &err), &err);
			stack[count] = (char)(count + 1);
			count++;
		}
		count = top / 2;
		for (size_t i = 0; i < count; i++)
			assert_int_equal(stack[i], i + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_keeps_what_it_has_up_to_its_ceiling),
		cmocka_unit_test(room_is_there_again_after_elements_went),
	};

	return cmocka_run_group_tests_name("layers/array", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/link_priv.h"
#include "tests/check.h"

static void the_next_page_is_found(void **state)
{
	static const struct {
		const char *field;
		const char *target;
	} cases[] = {
		{"</v2/a/tags/list?last=b&n=2>; rel=\"next\"", "/v2/a/tags/list?last=b&n=2"},
		{"<?last=b>;rel=next", "?last=b"},
		{"<https://r.com/x?a=1,2;3>; REL=\"Next\"; title=\"a, b; c\"",
		 "https://r.com/x?a=1,2;3"},
		{"</first>; rel=\"first\", </next>; rel=\"prefetch next\"", "/next"},
		{"</a>; title=\"rel=next\", </b>; rel = next", "/b"},
		{"", ""},
		{"</a>", ""},
		{"</a>; rel=\"nextpage\"", ""},
		{"</a; rel=next", ""},
		{"/a; rel=next", ""},
		{"</a>; rel=\"next", "/a"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct str found = link_find(str_of(cases[i].field), STR("next"));

		if (!str_equal(found, str_of(cases[i].target)))
			fail_msg("%s: " STR_FMT, cases[i].field, STR_ARG(found));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_page_is_found),
	};

	return cmocka_run_group_tests_name("registry/link", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/dns_priv.h"
#include "tests/check.h"

#define HEADER "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define QUESTION "\7eXample\3com\0\0\1\0\1"

static void a_question_is_read(void **state)
{
	struct dns_query query;

	(void)state;
	assert_true(dns_read_query(STR(HEADER QUESTION), &query));
	assert_int_equal(query.rcode, DNS_NOERROR);
	assert_int_equal(query.id, 0x1234);
	assert_int_equal(query.type, DNS_A);
	assert_int_equal(query.class, DNS_CLASS_IN);
	assert_true(query.recursion);
	assert_string_equal(query.name, "example.com");
}

static void an_answer_sends_the_question_back_as_it_came(void **state)
{
	static const char expected[] = "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" QUESTION
				       "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\2";
	uint8_t answer[DNS_ANSWER_MAX];
	struct dns_query query;

	(void)state;
	assert_true(dns_read_query(STR(HEADER QUESTION), &query));
	assert_int_equal(dns_write_record(&query, DNS_A, STR("\xc6\x12\0\2"), answer),
			 sizeof(expected) - 1);
	assert_memory_equal(answer, expected, sizeof(expected) - 1);
	assert_int_equal(dns_write_rcode(&query, DNS_NXDOMAIN, answer),
			 sizeof(HEADER QUESTION) - 1);
	assert_int_equal(answer[3], 0x80 | DNS_NXDOMAIN);
	assert_int_equal(answer[7], 0);
}

static void what_cannot_be_answered_is_dropped(void **state)
{
	struct dns_query query;

	(void)state;
	assert_false(dns_read_query(STR(""), &query));
	assert_false(dns_read_query(STR("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00"), &query));
	assert_false(dns_read_query(STR("\x12\x34\x81\x00\x00\x01\0\0\0\0\0\0" QUESTION), &query));
}

static void what_is_malformed_is_told_so(void **state)
{
	static const struct {
		struct str message;
		enum dns_rcode rcode;
	} cases[] = {
		{STR(HEADER), DNS_FORMERR},
		{STR(HEADER "\7example\3com\0\0\1\0"), DNS_FORMERR},
		{STR(HEADER "\7example\3com"), DNS_FORMERR},
		{STR(HEADER "\77short"), DNS_FORMERR},
		{STR(HEADER "\xc0\x0c\0\1\0\1"), DNS_FORMERR},    /* a pointer to itself */
		{STR(HEADER "\1a\xc0\x0c\0\1\0\1"), DNS_FORMERR}, /* and one further on */
		{STR("\x12\x34\x01\0\0\0\0\0\0\0\0\0" QUESTION), DNS_FORMERR}, /* no question */
		{STR("\x12\x34\x01\0\0\2\0\0\0\0\0\0" QUESTION), DNS_FORMERR}, /* two */
		{STR("\x12\x34\x29\0\0\1\0\0\0\0\0\0" QUESTION), DNS_NOTIMP},  /* an update */
	};
	struct dns_query query;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t answer[DNS_ANSWER_MAX];

		assert_true(dns_read_query(cases[i].message, &query));
		assert_int_equal(query.rcode, cases[i].rcode);
		assert_true(dns_write_rcode(&query, query.rcode, answer) >= 12);
	}
}

static void labels_that_no_host_has_make_no_name(void **state)
{
	static const struct str questions[] = {
		STR(HEADER "\0\0\1\0\1"),
		STR(HEADER "\3a.b\3com\0\0\1\0\1"),
		STR(HEADER "\3a\0b\3com\0\0\1\0\1"),
		STR(HEADER "\1a\2\xc3\xa9\0\0\1\0\1"),
		STR(HEADER "\3"
			   "127\1"
			   "0\1"
			   "0\1"
			   "1\0\0\1\0\1"),
	};
	struct dns_query query;

	(void)state;
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		assert_true(dns_read_query(questions[i], &query));
		assert_int_equal(query.rcode, DNS_NOERROR);
		assert_string_equal(query.name, "");
	}
}

static void the_longest_name_fits_everywhere(void **state)
{
	char message[DNS_QUERY_MAX] = HEADER;
	uint8_t answer[DNS_ANSWER_MAX];
	struct dns_query query;
	size_t len = 12;

	(void)state;
	for (size_t label = 63; label > 0; label = len < 12 + 192 ? 63 : len < 12 + 254 ? 61 : 0) {
		message[len] = (char)label;
		memset(message + len + 1, 'x', label);
		len += 1 + label;
	}
	assert_int_equal(len, 12 + 254);
	memcpy(message + len, (const char[]){0, 0, 1, 0, 1}, 5);
	assert_true(dns_read_query((struct str){message, len + 5}, &query));
	assert_int_equal(strlen(query.name), NETWORK_NAME_MAX);
	assert_true(dns_write_record(&query, DNS_A, STR("abcd"), answer) < sizeof(answer));
	assert_int_equal(dns_write_name(query.name, answer), 255);
	assert_memory_equal(answer, message + 12, 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_read),
		cmocka_unit_test(an_answer_sends_the_question_back_as_it_came),
		cmocka_unit_test(what_cannot_be_answered_is_dropped),
		cmocka_unit_test(what_is_malformed_is_told_so),
		cmocka_unit_test(labels_that_no_host_has_make_no_name),
		cmocka_unit_test(the_longest_name_fits_everywhere),
	};

	return cmocka_run_group_tests_name("sandbox/dns", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: an answer to whatever is understood is a message that asks the
 * same question, and a name that was read is written back as it is compared.
 */
#include "sandbox/dns_priv.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Turn an answer back into a question, and read that. */
static void check_answer(const struct dns_query *query, uint8_t *answer, size_t len)
{
	struct dns_query again;

	if (len > DNS_ANSWER_MAX || !(answer[2] & 0x80))
		abort();
	answer[2] &= 0x7f;
	if (!dns_read_query((struct str){(char *)answer, len}, &again) ||
	    again.rcode != DNS_NOERROR || again.id != query->id || again.type != query->type ||
	    strcmp(again.name, query->name) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t answer[DNS_ANSWER_MAX];
	uint8_t name[NAME_TEXT_MAX + 1];
	char text[NAME_TEXT_MAX];
	struct dns_query query;

	if (!dns_read_query((struct str){(const char *)data, size}, &query))
		return 0;
	(void)dns_write_rcode(&query, query.rcode, answer);
	if (query.rcode != DNS_NOERROR)
		return 0;
	check_answer(&query, answer, dns_write_rcode(&query, DNS_NOERROR, answer));
	check_answer(&query, answer, dns_write_record(&query, DNS_A, STR("abcd"), answer));
	if (query.name[0] == '\0')
		return 0;
	if (dns_write_name(query.name, name) + 4 != query.question_len)
		abort();
	if (!name_normalise(str_of(query.name), text) || strcmp(text, query.name) != 0)
		abort();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_priv.h - the questions that a machine asks its resolver, and answers of
 * at most one record to them.
 *
 * Formats: RFC 1035. Nothing of EDNS (RFC 6891) is understood or needed: an
 * answer fits into 512 bytes, and what follows the question is not looked at.
 */
#pragma once

#include "sandbox/name_priv.h"

#include <stdint.h>

#define DNS_QUERY_MAX ((size_t)1232) /* what a client may send us: one packet anywhere */
#define DNS_ANSWER_MAX ((size_t)512) /* RFC 1035, 4.2.1 */
#define DNS_QUESTION_MAX ((size_t)255 + 4)

enum dns_type { DNS_A = 1, DNS_PTR = 12, DNS_AAAA = 28 };

#define DNS_CLASS_IN 1

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
};

struct dns_query {
	uint16_t id;
	uint16_t type;
	uint16_t class;
	bool recursion;
	enum dns_rcode rcode;     /* DNS_NOERROR, or the code to refuse it with */
	char name[NAME_TEXT_MAX]; /* normalised; "" where it can be no host's name */
	size_t question_len;
	uint8_t question[DNS_QUESTION_MAX]; /* as it came, to be sent back */
};

/* False when it gets no answer: a fragment, or itself an answer. */
bool dns_read_query(struct str message, struct dns_query *out);

/* Both return the answer's length. */
size_t dns_write_rcode(const struct dns_query *query, enum dns_rcode rcode,
		       uint8_t out[static DNS_ANSWER_MAX]);
size_t dns_write_record(const struct dns_query *query, enum dns_type type, struct str data,
			uint8_t out[static DNS_ANSWER_MAX]);

/* The name as a PTR record's data has it. Returns the length. */
size_t dns_write_name(const char *name, uint8_t out[static NAME_TEXT_MAX + 1]);

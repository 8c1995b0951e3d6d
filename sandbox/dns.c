/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns.c - one question in, one record out.
 *
 * A message: id (2 bytes), flags (2), the numbers of questions, answers,
 * authorities and additions (2 each), then the sections themselves. A question
 * is a name (labels, each behind its length, up to one of length 0), type (2)
 * and class (2).
 */
#include "sandbox/dns_priv.h"

#include <assert.h>

#define DNS_HEADER ((size_t)12)
#define DNS_NAME_MAX ((size_t)255)
#define DNS_TTL_S 60 /* an address means its name for as long as the network lives */

#define DNS_FLAG_ANSWER 0x8000
#define DNS_FLAG_OPCODE 0x7800
#define DNS_FLAG_RECURSE 0x0100   /* desired */
#define DNS_FLAG_RECURSIVE 0x0080 /* available */
#define DNS_POINTER 0xc0          /* to an earlier name; there is none before a question */

static uint16_t dns_get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint8_t *dns_put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

/*
 * The length of the name at the start of bytes, 0 when it is malformed. Its
 * text, labels and dots, is appended to out; a label that holds a dot comes out
 * as "", which no name may contain.
 */
static size_t dns_read_name(const uint8_t *bytes, size_t len, struct buf *text)
{
	size_t at = 0;
	struct err err;

	while (at < len && at < DNS_NAME_MAX) {
		size_t label = bytes[at];
		struct str piece = {(const char *)bytes + at + 1, label};

		if (label == 0)
			return at + 1;
		if ((label & DNS_POINTER) || label >= len - at)
			return 0;
		if (memchr(piece.ptr, '.', piece.len))
			piece.len = 0;
		if (buf_add(text, piece, &err) < 0 || buf_add(text, STR("."), &err) < 0)
			return 0;
		at += 1 + label;
	}
	return 0;
}

static enum dns_rcode dns_read_question(struct str message, struct dns_query *query)
{
	const uint8_t *bytes = (const uint8_t *)message.ptr + DNS_HEADER;
	size_t len = message.len - DNS_HEADER;
	auto_buf struct buf text = BUF_INIT(DNS_NAME_MAX);
	size_t name = dns_read_name(bytes, len, &text);

	if (name == 0 || len - name < 4)
		return DNS_FORMERR;
	query->question_len = name + 4;
	memcpy(query->question, bytes, query->question_len);
	query->type = dns_get16(bytes + name);
	query->class = dns_get16(bytes + name + 2);
	if (!name_normalise(buf_str(&text), query->name))
		query->name[0] = '\0';
	return DNS_NOERROR;
}

bool dns_read_query(struct str message, struct dns_query *out)
{
	const uint8_t *bytes = (const uint8_t *)message.ptr;
	struct dns_query query = {0};
	uint16_t flags;

	if (message.len < DNS_HEADER)
		return false;
	query.id = dns_get16(bytes);
	flags = dns_get16(bytes + 2);
	if (flags & DNS_FLAG_ANSWER)
		return false;
	query.recursion = flags & DNS_FLAG_RECURSE;
	if (flags & DNS_FLAG_OPCODE)
		query.rcode = DNS_NOTIMP;
	else if (dns_get16(bytes + 4) != 1)
		query.rcode = DNS_FORMERR;
	else
		query.rcode = dns_read_question(message, &query);
	*out = query;
	return true;
}

/* Header and question. Returns where the answers start. */
static uint8_t *dns_write_start(const struct dns_query *query, enum dns_rcode rcode,
				unsigned answers, uint8_t *out)
{
	unsigned flags = DNS_FLAG_ANSWER | DNS_FLAG_RECURSIVE | (unsigned)rcode |
			 (query->recursion ? DNS_FLAG_RECURSE : 0);

	out = dns_put16(out, query->id);
	out = dns_put16(out, flags);
	out = dns_put16(out, query->question_len > 0 ? 1 : 0);
	out = dns_put16(out, answers);
	out = dns_put16(out, 0);
	out = dns_put16(out, 0);
	memcpy(out, query->question, query->question_len);
	return out + query->question_len;
}

size_t dns_write_rcode(const struct dns_query *query, enum dns_rcode rcode,
		       uint8_t out[static DNS_ANSWER_MAX])
{
	return (size_t)(dns_write_start(query, rcode, 0, out) - out);
}

size_t dns_write_record(const struct dns_query *query, enum dns_type type, struct str data,
			uint8_t out[static DNS_ANSWER_MAX])
{
	uint8_t *at = dns_write_start(query, DNS_NOERROR, 1, out);

	/* The longest question that has an answer leaves room for the longest name only if
	 * one of them is short; a PTR's question is. */
	assert((size_t)(at - out) + 12 + data.len <= DNS_ANSWER_MAX);
	at = dns_put16(at, DNS_POINTER << 8 | DNS_HEADER);
	at = dns_put16(at, type);
	at = dns_put16(at, DNS_CLASS_IN);
	at = dns_put16(at, 0);
	at = dns_put16(at, DNS_TTL_S);
	at = dns_put16(at, (unsigned)data.len);
	memcpy(at, data.ptr, data.len);
	return (size_t)(at - out) + data.len;
}

size_t dns_write_name(const char *name, uint8_t out[static NAME_TEXT_MAX + 1])
{
	uint8_t *at = out;

	for (;;) {
		size_t label = strcspn(name, ".");

		*at++ = (uint8_t)label;
		memcpy(at, name, label);
		at += label;
		if (name[label] == '\0')
			break;
		name += label + 1;
	}
	*at++ = 0;
	return (size_t)(at - out);
}

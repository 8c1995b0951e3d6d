/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange_frame.c - whether a request is what it seems, and how long its body is.
 *
 * libmicrohttpd cuts a header where it lies, by a NUL behind each part. So what a
 * NUL that came with it hides lies between two parts, where only blanks may be; so
 * does the rest of a line that goes on in the next one (RFC 9112, 5.2), since that
 * is put elsewhere, and behind the name. Neither is ever of good intent.
 */
#include "api/exchange_priv.h"

#include <strings.h>

struct frame {
	unsigned hosts;
	unsigned lengths;
	unsigned codings;
	struct str length;
	const char *coding;
	const char *end; /* of the last part, where its NUL is */
	const char *fault;
};

/* The next part; -1: there is more than blanks in front of it. */
static int frame_go_on(struct frame *frame, const char *part, size_t len)
{
	const char *at = frame->end;

	while (at < part &&
	       (*at == '\0' || *at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
		at++;
	if (at != part)
		frame->fault = "a NUL, or a header over several lines";
	frame->end = part + len;
	return frame->fault ? -1 : 0;
}

/* RFC 9110, 5.6.2; with a blank in it a Content-Length would be another header. */
static bool frame_is_name(struct str name)
{
	static const bool wrong[256] = {
		[0 ... ' '] = true, ['"'] = true, ['('] = true,           [')'] = true,
		[','] = true,       ['/'] = true, [':'] = true,           [';'] = true,
		['<'] = true,       ['='] = true, ['>'] = true,           ['?'] = true,
		['@'] = true,       ['['] = true, ['\\'] = true,          [']'] = true,
		['{'] = true,       ['}'] = true, [0x7f ... 0xff] = true,
	};

	for (size_t i = 0; i < name.len; i++) {
		if (wrong[(unsigned char)name.ptr[i]])
			return false;
	}
	return name.len > 0;
}

static bool frame_is_text(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static void frame_count(struct frame *frame, const char *name, struct str value)
{
	if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0) {
		frame->hosts++;
	} else if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
		frame->lengths++;
		frame->length = value;
	} else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
		frame->codings++;
		frame->coding = value.ptr;
	}
}

static enum MHD_Result frame_take(void *cls, enum MHD_ValueKind kind, const char *key,
				  size_t key_size, const char *value, size_t value_size)
{
	struct frame *frame = cls;
	struct str text = {value, value ? value_size : 0};

	if (frame_go_on(frame, key, key_size) < 0 ||
	    (value && frame_go_on(frame, value, value_size) < 0))
		return MHD_NO;
	if (kind == MHD_HEADER_KIND && !frame_is_name((struct str){key, key_size}))
		frame->fault = "a header's name can be none";
	else if (!frame_is_text(text) || !frame_is_text((struct str){key, key_size}))
		frame->fault = "a control character";
	else if (kind == MHD_HEADER_KIND)
		frame_count(frame, key, text);
	return frame->fault ? MHD_NO : MHD_YES;
}

static void frame_take_url(struct frame *frame, struct str url)
{
	frame->end = url.ptr + url.len;
	for (const char *at = url.ptr; at < frame->end; at++) {
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			frame->fault = "a blank or a control character in the URL";
	}
}

/* All that lies between the method and the body, until something is wrong. */
static void frame_walk(struct frame *frame, const struct exchange_line *line)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(line->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	frame_take_url(frame, str_of(line->url));
	if (frame->fault)
		return;
	(void)MHD_get_connection_values_n(line->connection, MHD_GET_ARGUMENT_KIND, frame_take,
					  frame);
	if (frame->fault || frame_go_on(frame, line->version, strlen(line->version)) < 0)
		return;
	(void)MHD_get_connection_values_n(line->connection, MHD_HEADER_KIND, frame_take, frame);
	if (!frame->fault)
		(void)frame_go_on(frame, line->method + info->header_size, 0);
}

const char *exchange_read_frame(const struct exchange_line *line, uint64_t *out_length)
{
	bool old = strcmp(line->version, MHD_HTTP_VERSION_1_0) == 0;
	struct frame frame = {0};

	*out_length = 0;
	frame_walk(&frame, line);
	if (frame.fault)
		return frame.fault;
	if (frame.hosts > 1)
		return "Host is given more than once";
	if (frame.hosts == 0 && !old)
		return "Host is missing";
	if (frame.lengths + frame.codings > 1)
		return "the length of the body is given more than once";
	if (frame.coding && (old || strcasecmp(frame.coding, "chunked") != 0))
		return "the only Transfer-Encoding that is known here is chunked, of HTTP/1.1";
	if (frame.coding || (frame.lengths == 1 && !str_take_number(&frame.length, out_length)))
		*out_length = UINT64_MAX;
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_stream.h - the journal as server-sent events (WHATWG HTML), without end
 * unless the client asks for one.
 *
 * 	id: 17
 * 	event: image.ready
 * 	data: {"id":"17","type":"image.ready",...}
 *
 * It begins behind the event that the client has seen. Where some behind it are
 * no longer kept, or this store never had that event, one of the type `gap`,
 * without an id, comes first: {"type", "after", "oldest"}. A comment every 15
 * seconds says that the connection lives.
 */
#pragma once

#include "layers/base/http.h"
#include "layers/meta.h"

/* Only events of this kind are wanted; "" for any. Copied. */
struct event_filter {
	struct str agent_id;
	struct str session_id;
	struct str type;
	bool ends; /* the stream ends with the newest event */
};

/* The topic is woken after each commit that appended events. The response closes it. */
struct http_stream *event_stream_new(struct store *store, uint64_t after,
				     const struct event_filter *filter, uint64_t topic);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_stream.h - the journal as server-sent events (WHATWG HTML), without end
 * unless that is asked for.
 *
 *	id: 17
 *	event: image.ready
 *	data: {"id":"17","type":"image.ready",...}
 *
 * It begins behind the event that the client has seen. Where some that came
 * behind it are no longer kept, or that event is none of this store, one of the
 * type `gap`, without an id, comes first: {"type", "after", "oldest"}. A comment
 * every 15 seconds says that the connection lives.
 */
#pragma once

#include "layers/base/http.h"
#include "layers/meta.h"

/* What alone is wanted; "" for anything. Copied. */
struct event_filter {
	struct str agent_id;
	struct str session_id;
	struct str type;
	bool ends; /* with what there is, rather than never */
};

/* topic is woken after each commit that appended. The response's to close. */
struct http_stream *event_stream_new(struct store *store, uint64_t after,
				     const struct event_filter *filter, uint64_t topic);

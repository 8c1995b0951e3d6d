/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_priv.h"

/* Whether what went wrong is the upstream's doing, and not ours. */
static bool mirror_ask_is_its_fault(const struct err *why)
{
	return why->kind == ERR_REMOTE || why->kind == ERR_TIMEOUT || why->kind == ERR_BUSY;
}

/*
 * No answer, or one whose body broke: that one is no silence. Nor is it the
 * upstream's where the host that it sent us to does not answer.
 */
static int mirror_ask_failed(struct mirror_hand *hand, struct http_reply *reply, bool strayed,
			     const struct err *why)
{
	bool begun = reply->status == 200 || reply->status == 206;

	if (!begun)
		reply->status = 0; /* what there is was a challenge */
	if (!begun && !strayed && mirror_ask_is_its_fault(why))
		hand->silence = *why;
	atomic_fetch_add(&hand->task->place.upstream->counts.errors, 1);
	return -1;
}

int mirror_ask(struct mirror_hand *hand, const struct remote_request *request,
	       struct http_reply *reply, struct err *err)
{
	struct mirror_upstream *upstream = hand->task->place.upstream;
	struct remote *remote = mirror_remote_get(hand->remote);
	const char *what = request->name ? request->name : "it";
	bool strayed = false;

	reply->status = 0;
	hand->silence.kind = ERR_NONE;
	atomic_fetch_add(&upstream->counts.asked, 1);
	if (remote_try(remote, hand->http, request, reply, &strayed, err) < 0) {
		(void)mirror_ask_failed(hand, reply, strayed, err);
		return err_ctx(err, "%s", upstream->host);
	}
	if (reply->status < 200 || reply->status >= 300) {
		(void)remote_refused(remote, reply, what, err);
		/* A signed URL that has expired says nothing of what the registry allows. */
		if (strayed && (reply->status == 401 || reply->status == 403))
			err->kind = ERR_REMOTE;
		atomic_fetch_add(&upstream->counts.errors, retry_status(reply->status));
	}
	if (!strayed || !retry_status(reply->status))
		mirror_upstream_heard(upstream, reply, err);
	if (reply->status >= 200 && reply->status < 300)
		return 0;
	return err_ctx(err, "%s", upstream->host);
}

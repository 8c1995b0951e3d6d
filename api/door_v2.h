/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door_v2.h - the checks that a request under /v2/ passes: what it asks for, who
 * asks, and whether he may.
 *
 * 	to               needs
 * 	pull             the scope pull of that repository, or registry.anonymous
 * 	push, delete     the scope of that name; push takes HEAD for granted
 * 	ping, list       to be anybody; a list has what he may pull
 *
 * A token that may operate pulls and pushes everywhere; an admin's deletes, too.
 * Who may not is refused before anything is looked up: 401 with a challenge where
 * he has not said who he is, or where his access token (access_token.h) is for
 * something else; else 403. So nobody learns what there is: a name that is neither
 * ours nor the default upstream's is answered in the same way. An ns that is no
 * upstream is 403 to all where anybody may read of every upstream.
 *
 * The challenge names /v2/token (token_flow.h) of the host that was asked, since
 * Docker's client pulls without a login only where it is given a token for that;
 * and the scope that is wanted. Only a request without a Host is told Basic.
 */
#pragma once

#include "api/daemon.h"
#include "registry/v2.h"

/* A request's state. */
struct door_v2 {
	struct daemon *daemon;
	bool for_token; /* no call, but token_flow.h */
	struct v2_call call;
	struct visitor visitor;
};

/* False: *out refuses it. visit is zeroed before, and released by door_v2_done(). */
bool door_v2_admit(struct door_v2 *visit, struct daemon *daemon, const struct http_request *request,
		   struct http_terms *terms, struct http_response *out);

void door_v2_answer(struct door_v2 *visit, struct http_response *out);

/* Whether it puts or deletes a manifest, or deletes a blob: what an operator reads of. */
bool door_v2_changes(const struct door_v2 *visit);

/* The last call: it is counted, by what it asked for and by the bytes that went out. */
void door_v2_done(struct door_v2 *visit, const struct http_response *out);

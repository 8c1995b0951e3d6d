/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth_priv.h - the proof, for a registry, that we may use one repository.
 *
 * Nothing is proven until the registry asks (401). Then it is Basic, with the
 * user's credentials, or Bearer: a token of the service that the challenge
 * names (distribution's token specification), asked for with exactly the scope
 * of the challenge, kept until it expires, and dropped when it is refused.
 *
 * Credentials go to the registry itself and to a token service ("realm") that
 * is the same host or of the same domain; to no other, whatever the challenge
 * says (CVE-2020-15157). Without credentials any public realm may be asked, but
 * never over plain HTTP for a registry that speaks HTTPS, and never one on a
 * private address that is not the registry's own.
 *
 * Threads: one struct auth serves all of a pull; one token is fetched at a time
 * and the others wait for it, each until a cancel of its own struct http.
 */
#pragma once

#include "registry/challenge_priv.h"
#include "registry/retry_priv.h"

struct auth;

struct auth_spec {
	struct str path;     /* of the repository; "" for what is the registry's own */
	const char *actions; /* "pull", where the registry does not say what it wants; static */
	struct str from;     /* a repository that is read, too, if the service lets us; or "" */
	struct str user;     /* or "", or what credentials.h calls a token */
	const struct secret *password;
	struct retry retry; /* for the token service */
};

int auth_open(const struct auth_spec *spec, struct auth **out, struct err *err) MUST_CHECK;
void auth_close(struct auth *auth);
bool auth_has_credentials(const struct auth *auth);

/* Whether a proof was wanted so far. */
bool auth_was_asked(struct auth *auth);

/* What a request carries; points into itself and into the auth. */
struct grant {
	const char *user; /* or NULL */
	const struct secret *password;
	struct secret token; /* empty for none */
	unsigned generation; /* of the proof, for auth_renew() */
};

/* The present proof, renewed where it has expired. May block in a request. */
int auth_get(struct auth *auth, struct http *http, struct grant *out, struct err *err) MUST_CHECK;

/*
 * The registry at base (its URL) answered a request with that grant by a 401:
 * find a better proof. 0 it is worth asking again; ERR_UNAUTHORIZED, ERR_DENIED
 * (a realm that is not trusted), or as the token service fails.
 */
int auth_renew(struct auth *auth, struct http *http, const char *base,
	       const struct http_reply *response, const struct grant *used, struct err *err)
	MUST_CHECK;

/* Whether credentials for the registry may be sent to a realm; both are URLs. */
bool auth_trusts(const char *base, const char *realm);

/* Whether a realm may be asked at all. */
bool auth_may_ask(const char *base, const char *realm);

DEFINE_AUTO(auth, struct auth *, auth_close);
static inline void auto_grant_release(struct grant *slot)
{
	secret_done(&slot->token);
}
#define auto_grant AUTO(grant)

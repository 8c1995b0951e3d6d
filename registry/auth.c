/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/auth_priv.h"

#include "layers/base/clock.h"
#include "layers/base/lock.h"
#include "registry/credentials.h"
#include "registry/token_priv.h"
#include "registry/url_priv.h"

#include <assert.h>
#include <sys/eventfd.h>

#define AUTH_MARGIN_MS 10000 /* before a token expires, and at most a tenth of its life */

enum auth_scheme { AUTH_NONE, AUTH_BASIC, AUTH_BEARER };

struct auth {
	struct retry retry;
	const char *actions;
	struct buf path;
	struct buf from;
	struct buf user;
	struct secret password;
	int idlefd; /* an eventfd, readable while `fetching` is false */
	struct lock lock;
	/* guarded by lock: */
	enum auth_scheme scheme;
	unsigned generation;
	bool fetching;       /* a thread is at the token service */
	struct buf question; /* the URL that gave the token */
	bool with_password;  /* whether it is asked with credentials */
	struct secret token;
	int64_t expires_ms; /* monotonic */
};

static bool auth_is(const struct auth *auth, const char *user)
{
	return str_equal(buf_str(&auth->user), str_of(user));
}

static bool auth_is_identity(const struct auth *auth)
{
	return auth_is(auth, CREDENTIALS_IDENTITY);
}

/* Whether the credentials are the bearer token itself, so that no other can be had. */
static bool auth_is_bearer(const struct auth *auth)
{
	return auth_is(auth, CREDENTIALS_BEARER);
}

int auth_open(const struct auth_spec *spec, struct auth **out, struct err *err)
{
	struct auth *auth = calloc(1, sizeof(*auth));

	if (!auth)
		abort();
	auth->retry = spec->retry;
	auth->actions = spec->actions;
	auth->path = BUF_INIT(HTTP_URL_MAX);
	auth->from = BUF_INIT(HTTP_URL_MAX);
	auth->user = BUF_INIT(HTTP_URL_MAX);
	auth->question = BUF_INIT(HTTP_URL_MAX);
	auth->lock = (struct lock)LOCK_INIT;
	auth->idlefd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (auth->idlefd < 0) {
		int saved = errno;

		auth_close(auth);
		return err_os(err, saved, "create an event descriptor");
	}
	if (buf_add(&auth->path, spec->path, err) < 0 ||
	    buf_add(&auth->from, spec->from, err) < 0 ||
	    buf_add(&auth->user, spec->user, err) < 0 ||
	    secret_copy(&auth->password, spec->password, err) < 0) {
		auth_close(auth);
		return err_ctx(err, "credentials");
	}
	if (auth_is_bearer(auth) && secret_copy(&auth->token, &auth->password, err) == 0) {
		auth->scheme = AUTH_BEARER;
		auth->expires_ms = INT64_MAX;
	}
	*out = auth;
	return 0;
}

void auth_close(struct auth *auth)
{
	if (!auth)
		return;
	buf_done(&auth->path);
	buf_done(&auth->from);
	buf_done(&auth->user);
	secret_done(&auth->password);
	buf_done(&auth->question);
	secret_done(&auth->token);
	auto_close_release(&auth->idlefd);
	free(auth);
}

bool auth_has_credentials(const struct auth *auth)
{
	return auth->user.len > 0;
}

bool auth_was_asked(struct auth *auth)
{
	bool asked;

	lock_take(&auth->lock);
	asked = auth->generation > 0;
	lock_drop(&auth->lock);
	return asked;
}

/* The last labels of a name, or NULL where it has fewer. */
static const char *auth_host_tail(const char *host, int labels)
{
	const char *at = host + strlen(host);

	while (at > host) {
		if (at[-1] == '.' && --labels == 0)
			return at;
		at--;
	}
	return labels == 1 ? host : NULL;
}

/*
 * The part of a name that one owner registered. There is no list of public
 * suffixes here: two labels, or three where the last two look like one of a
 * country ("co.uk").
 */
static const char *auth_host_domain(const char *host)
{
	const char *two = auth_host_tail(host, 2);
	const char *dot = two ? strchr(two, '.') : NULL;

	if (dot && strlen(dot + 1) == 2 && dot - two <= 3)
		return auth_host_tail(host, 3);
	return two;
}

bool auth_trusts(const char *base, const char *realm)
{
	struct url registry;
	struct url service;
	const char *ours;
	const char *theirs;
	struct err err;

	if (url_parse(base, &registry, &err) < 0 || url_parse(realm, &service, &err) < 0)
		return false;
	if (registry.secure && !service.secure)
		return false;
	if (strcmp(registry.host, service.host) == 0)
		return true;
	if (url_host_is_address(registry.host) || url_host_is_address(service.host) ||
	    !service.secure)
		return false;
	ours = auth_host_domain(registry.host);
	theirs = auth_host_domain(service.host);
	return ours && theirs && strcmp(ours, theirs) == 0;
}

bool auth_may_ask(const char *base, const char *realm)
{
	struct url registry;
	struct url service;
	struct err err;

	if (url_parse(base, &registry, &err) < 0 || url_parse(realm, &service, &err) < 0)
		return false;
	if (strcmp(registry.host, service.host) != 0 && url_host_is_private(service.host))
		return false;
	return service.secure || !registry.secure;
}

/* Note that a thread goes to the token service, or comes back. */
static void auth_set_fetching_locked(struct auth *auth, bool fetching) REQUIRES(auth->lock);
static void auth_set_fetching_locked(struct auth *auth, bool fetching)
{
	uint64_t count = 1;
	ssize_t n = fetching ? read(auth->idlefd, &count, sizeof(count))
			     : write(auth->idlefd, &count, sizeof(count));

	assert(n == sizeof(count) && auth->fetching != fetching);
	auth->fetching = fetching;
}

static int auth_keep_locked(struct auth *auth, const char *question, bool with_password,
			    const struct secret *token, struct err *err) REQUIRES(auth->lock);
static int auth_keep_locked(struct auth *auth, const char *question, bool with_password,
			    const struct secret *token, struct err *err)
{
	buf_clear(&auth->question);
	if (buf_add(&auth->question, str_of(question), err) < 0 ||
	    secret_copy(&auth->token, token, err) < 0)
		return -1;
	auth->scheme = AUTH_BEARER;
	auth->with_password = with_password;
	auth->generation++;
	return 0;
}

/*
 * Fetch a token for `question`, without the lock, and keep it. If none is given
 * the old one stays: the question may have asked for more than we need.
 */
static int auth_fetch_token(struct auth *auth, struct http *http, const char *question,
			    bool with_password, struct err *err)
{
	const struct token_question ask = {
		.url = question,
		.proof = !with_password           ? TOKEN_ANONYMOUS
			 : auth_is_identity(auth) ? TOKEN_IDENTITY
						  : TOKEN_PASSWORD,
		.user = auth->user.ptr,
		.password = &auth->password,
		.retry = auth->retry,
	};
	auto_secret struct secret token = {0};
	int64_t asked_ms = clock_monotonic_ms();
	int64_t life_ms = 0;
	int64_t margin_ms;
	struct url url;
	int result;

	result = token_ask(&ask, http, &token, &life_ms, err);
	if (result < 0 && err->kind != ERR_CANCELLED) {
		struct err ignored;

		if (url_parse(question, &url, &ignored) == 0)
			(void)err_ctx(err, "token service %s", url.host);
	}
	margin_ms = life_ms / 10 < AUTH_MARGIN_MS ? life_ms / 10 : AUTH_MARGIN_MS;

	lock_take(&auth->lock);
	auth_set_fetching_locked(auth, false);
	if (result == 0) {
		result = auth_keep_locked(auth, question, with_password, &token, err);
		auth->expires_ms = asked_ms + life_ms - margin_ms;
	}
	lock_drop(&auth->lock);
	return result;
}

/* Wait, without the lock, until no other thread is at the token service; or ERR_CANCELLED. */
static int auth_await_locked(struct auth *auth, const struct http *http, struct err *err)
	REQUIRES(auth->lock);
static int auth_await_locked(struct auth *auth, const struct http *http, struct err *err)
{
	int result = 0;

	while (result == 0 && auth->fetching) {
		lock_drop(&auth->lock);
		result = http_wait_readable(http, auth->idlefd, err);
		lock_take(&auth->lock);
	}
	return result;
}

static int auth_fill_grant_locked(struct auth *auth, struct grant *out, struct err *err)
	REQUIRES(auth->lock);
static int auth_fill_grant_locked(struct auth *auth, struct grant *out, struct err *err)
{
	out->generation = auth->generation;
	out->user = auth->scheme == AUTH_BASIC ? auth->user.ptr : NULL;
	out->password = &auth->password;
	return secret_copy(&out->token, auth->scheme == AUTH_BEARER ? &auth->token : NULL, err);
}

/* 0 and a grant; 1 and the question where the token expired and is now ours to fetch; -1. */
static int auth_get_locked(struct auth *auth, const struct http *http, struct grant *out,
			   struct buf *question, bool *out_password, struct err *err)
	REQUIRES(auth->lock);
static int auth_get_locked(struct auth *auth, const struct http *http, struct grant *out,
			   struct buf *question, bool *out_password, struct err *err)
{
	if (auth_await_locked(auth, http, err) < 0)
		return -1;
	if (auth->scheme != AUTH_BEARER || clock_monotonic_ms() < auth->expires_ms)
		return auth_fill_grant_locked(auth, out, err);
	if (buf_add(question, buf_str(&auth->question), err) < 0)
		return -1;
	*out_password = auth->with_password;
	auth_set_fetching_locked(auth, true);
	return 1;
}

int auth_get(struct auth *auth, struct http *http, struct grant *out, struct err *err)
{
	auto_buf struct buf question = BUF_INIT(HTTP_URL_MAX);
	bool with_password = false;
	int result;

	lock_take(&auth->lock);
	result = auth_get_locked(auth, http, out, &question, &with_password, err);
	lock_drop(&auth->lock);
	if (result <= 0)
		return result;

	if (auth_fetch_token(auth, http, question.ptr, with_password, err) < 0)
		return -1;
	lock_take(&auth->lock);
	result = auth_fill_grant_locked(auth, out, err);
	lock_drop(&auth->lock);
	return result;
}

/* The best of all challenges of an answer: a token, else Basic where we have a password. */
static bool auth_pick_challenge(const struct auth *auth, const struct http_reply *response,
				struct challenge *out)
{
	struct str headers = buf_str(&response->headers);
	bool basic = false;
	struct str field;

	while (http_header_next(&headers, "WWW-Authenticate", &field)) {
		while (challenge_next(&field, out)) {
			if (out->scheme == CHALLENGE_BEARER && out->realm.len > 0)
				return true;
			basic = basic || out->scheme == CHALLENGE_BASIC;
		}
	}
	out->scheme = CHALLENGE_BASIC;
	return basic && auth_has_credentials(auth) && !auth_is_identity(auth);
}

/* Add one scope parameter for each scope of the challenge; OAuth 2 has one for all. */
static int auth_add_scopes(const struct auth *auth, struct str scopes, struct buf *question,
			   struct err *err)
{
	auto_buf struct buf own = BUF_INIT(HTTP_URL_MAX);
	struct str one;

	if (buf_addf(&own, err, "repository:" STR_FMT ":%s", STR_ARG(buf_str(&auth->path)),
		     auth->actions) < 0)
		return -1;
	if (scopes.len == 0 && auth->path.len == 0)
		return 0;
	if (scopes.len == 0)
		scopes = buf_str(&own);
	if (auth_is_identity(auth))
		return url_add_query(question, "scope", scopes, err);
	while (str_cut(&scopes, ' ', &one)) {
		if (one.len > 0 && url_add_query(question, "scope", one, err) < 0)
			return -1;
	}
	return 0;
}

/* The URL to ask, and whether with the credentials. */
static int auth_make_question(const struct auth *auth, const char *base,
			      const struct challenge *challenge, struct buf *out,
			      bool *out_password, struct err *err)
{
	if (url_join(base, challenge->realm, out, err) < 0)
		return -1;
	if (!auth_may_ask(base, out->ptr))
		return err_set(err, ERR_DENIED,
			       "the registry sends us to a token service that is not to be "
			       "trusted, %s",
			       out->ptr);
	*out_password = auth_has_credentials(auth);
	if (*out_password && !auth_trusts(base, out->ptr))
		return err_set(err, ERR_DENIED,
			       "the registry wants its credentials sent to %s, which is not "
			       "of its domain",
			       out->ptr);
	if (challenge->service.len > 0 &&
	    url_add_query(out, "service", challenge->service, err) < 0)
		return -1;
	return auth_add_scopes(auth, challenge->scope, out, err);
}

/*
 * The same question, for what is read beside the repository, too. 1; 0 there is
 * nothing, or OAuth 2's one scope has no room; -1.
 */
static int auth_widen_question(const struct auth *auth, struct str question, struct buf *out,
			       struct err *err)
{
	auto_buf struct buf scope = BUF_INIT(HTTP_URL_MAX);

	if (auth->from.len == 0 || auth_is_identity(auth))
		return 0;
	if (buf_addf(&scope, err, "repository:" STR_FMT ":pull", STR_ARG(buf_str(&auth->from))) <
		    0 ||
	    buf_add(out, question, err) < 0 ||
	    url_add_query(out, "scope", buf_str(&scope), err) < 0)
		return -1;
	return 1;
}

static int auth_use_basic(struct auth *auth, const struct grant *used, struct err *err)
{
	bool tried;

	lock_take(&auth->lock);
	tried = auth->scheme == AUTH_BASIC && auth->generation == used->generation;
	if (auth->scheme != AUTH_BASIC) {
		auth->scheme = AUTH_BASIC;
		auth->generation++;
	}
	lock_drop(&auth->lock);
	if (tried)
		return err_set(err, ERR_UNAUTHORIZED, "the registry refuses these credentials");
	return 0;
}

/* 1 and the question is ours to ask, 0 where a newer proof is there than the one used, -1. */
static int auth_claim_locked(struct auth *auth, const struct http *http, const struct grant *used,
			     struct err *err) REQUIRES(auth->lock);
static int auth_claim_locked(struct auth *auth, const struct http *http, const struct grant *used,
			     struct err *err)
{
	if (auth_await_locked(auth, http, err) < 0)
		return -1;
	if (auth->generation != used->generation)
		return 0;
	auth_set_fetching_locked(auth, true);
	return 1;
}

static int auth_use_bearer(struct auth *auth, struct http *http, const char *question,
			   bool with_password, const struct grant *used, struct err *err)
{
	int result;

	lock_take(&auth->lock);
	result = auth_claim_locked(auth, http, used, err);
	lock_drop(&auth->lock);
	if (result <= 0)
		return result;
	return auth_fetch_token(auth, http, question, with_password, err);
}

int auth_renew(struct auth *auth, struct http *http, const char *base,
	       const struct http_reply *response, const struct grant *used, struct err *err)
{
	auto_buf struct buf question = BUF_INIT(HTTP_URL_MAX);
	auto_buf struct buf wide = BUF_INIT(HTTP_URL_MAX);
	struct challenge challenge;
	bool with_password = false;
	int widened;

	if (auth_is_bearer(auth))
		return err_set(err, ERR_UNAUTHORIZED, "the registry refuses this token");
	if (!auth_pick_challenge(auth, response, &challenge))
		return err_set(err, ERR_UNAUTHORIZED, "the registry wants credentials%s",
			       auth_has_credentials(auth) ? " of a kind that is not supported"
							  : "");
	if (challenge.scheme == CHALLENGE_BASIC)
		return auth_use_basic(auth, used, err);
	if (auth_make_question(auth, base, &challenge, &question, &with_password, err) < 0)
		return -1;
	widened = auth_widen_question(auth, buf_str(&question), &wide, err);
	if (widened < 0)
		return -1;
	/* Some services give no token at all where one scope of several is not ours. */
	if (widened == 1 && auth_use_bearer(auth, http, wide.ptr, with_password, used, err) == 0)
		return 0;
	if (widened == 1 && err->kind == ERR_CANCELLED)
		return -1;
	return auth_use_bearer(auth, http, question.ptr, with_password, used, err);
}

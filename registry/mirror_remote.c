/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_priv.h"

#include <stdio.h>

struct mirror_remote {
	struct mirror_remote *next;
	char key[REFERENCE_REPOSITORY_MAX + 1]; /* the place's */
	char path[2 * (REFERENCE_REPOSITORY_MAX + 1)];
	struct credentials login;
	struct remote *remote;
	/* guarded by the mirror's lock: */
	unsigned refs;
	bool spent; /* it is in no list */
};

struct remote *mirror_remote_get(const struct mirror_remote *remote)
{
	return remote->remote;
}

static void mirror_remote_free(struct mirror_remote *remote)
{
	if (!remote)
		return;
	remote_close(remote->remote);
	secret_done(&remote->login.password);
	free(remote);
}

static int mirror_remote_log_in(const struct mirror *mirror, const struct mirror_upstream *upstream,
				struct mirror_remote *remote, struct err *err)
{
	char reference[URL_HOST_MAX + sizeof(remote->path) + 1];

	if (!mirror->options.login)
		return 0;
	(void)snprintf(reference, sizeof(reference), "%s/%s", upstream->place, remote->path);
	return mirror->options.login(mirror->options.login_ctx, str_of(reference), &mirror->cancel,
				     &remote->login, err);
}

/* Nothing is sent yet. */
static int mirror_remote_make(struct mirror *mirror, const struct mirror_place *place,
			      struct mirror_remote *remote, struct err *err)
{
	const struct mirror_upstream *upstream = place->upstream;

	(void)snprintf(remote->key, sizeof(remote->key), "%s", place->key);
	(void)snprintf(remote->path, sizeof(remote->path), "%s" STR_FMT, upstream->prefix,
		       STR_ARG(mirror_place_path(place)));
	if (mirror_remote_log_in(mirror, upstream, remote, err) < 0)
		return err_ctx(err, "credentials for %s", upstream->place);
	const struct remote_spec spec = {
		.host = str_of(upstream->place),
		.path = str_of(remote->path),
		.plain_http = upstream->plain_http,
		.ca_file = upstream->ca_file,
		.user = str_of(remote->login.user),
		.password = &remote->login.password,
		.tries = MIRROR_TRIES,
		.retry_base_ms = mirror->options.retry_base_ms,
		.stall_ms = mirror->options.stall_ms,
		.cancel = &mirror->cancel,
	};

	return remote_open(&spec, &remote->remote, err);
}

static struct mirror_remote **mirror_remote_find_locked(struct mirror *mirror, const char *key)
	REQUIRES(mirror->lock);
static struct mirror_remote **mirror_remote_find_locked(struct mirror *mirror, const char *key)
{
	struct mirror_remote **at = &mirror->remotes;

	while (*at && strcmp((*at)->key, key) != 0)
		at = &(*at)->next;
	return at;
}

/* One reference more, in front of the others; NULL where there is none of that key. */
static struct mirror_remote *mirror_remote_use_locked(struct mirror *mirror, const char *key)
	REQUIRES(mirror->lock);
static struct mirror_remote *mirror_remote_use_locked(struct mirror *mirror, const char *key)
{
	struct mirror_remote **at = mirror_remote_find_locked(mirror, key);
	struct mirror_remote *remote = *at;

	if (!remote)
		return NULL;
	*at = remote->next;
	remote->next = mirror->remotes;
	mirror->remotes = remote;
	remote->refs++;
	return remote;
}

/* The least recently used one that nobody has, where there are too many. */
static struct mirror_remote *mirror_remote_surplus_locked(struct mirror *mirror)
	REQUIRES(mirror->lock);
static struct mirror_remote *mirror_remote_surplus_locked(struct mirror *mirror)
{
	struct mirror_remote **last = NULL;
	struct mirror_remote *gone;
	size_t count = 0;

	for (struct mirror_remote **at = &mirror->remotes; *at; at = &(*at)->next) {
		count++;
		if ((*at)->refs == 0)
			last = at;
	}
	if (count <= MIRROR_REMOTES_MAX || !last)
		return NULL;
	gone = *last;
	*last = gone->next;
	return gone;
}

int mirror_remote_take(struct mirror *mirror, const struct mirror_place *place,
		       struct mirror_remote **out, struct err *err)
{
	struct mirror_remote *made;

	lock_take(&mirror->lock);
	*out = mirror_remote_use_locked(mirror, place->key);
	lock_drop(&mirror->lock);
	if (*out)
		return 0;
	made = calloc(1, sizeof(*made));
	if (!made)
		abort();
	if (mirror_remote_make(mirror, place, made, err) < 0) {
		mirror_remote_free(made);
		return -1;
	}
	lock_take(&mirror->lock);
	*out = mirror_remote_use_locked(mirror, place->key);
	if (!*out) { /* nobody else made one meanwhile */
		made->next = mirror->remotes;
		mirror->remotes = made;
		made->refs = 1;
		*out = made;
		made = mirror_remote_surplus_locked(mirror);
	}
	lock_drop(&mirror->lock);
	mirror_remote_free(made);
	return 0;
}

void mirror_remote_release(struct mirror *mirror, struct mirror_remote *remote, bool spent)
{
	struct mirror_remote **at;
	bool last;

	lock_take(&mirror->lock);
	at = mirror_remote_find_locked(mirror, remote->key);
	if (spent && !remote->spent && *at == remote) {
		*at = remote->next;
		remote->spent = true;
	}
	last = --remote->refs == 0 && remote->spent;
	lock_drop(&mirror->lock);
	if (last)
		mirror_remote_free(remote);
}

void mirror_remotes_free(struct mirror *mirror)
{
	while (mirror->remotes) {
		struct mirror_remote *remote = mirror->remotes;

		mirror->remotes = remote->next;
		mirror_remote_free(remote);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/uploads_fresh.h"

#include "layers/base/array.h"
#include "layers/base/clock.h"

#define UPLOADS_FRESH_NONE SIZE_MAX

struct uploads_fresh_one {
	int64_t used_ms;
	bool held;
	char id[ULID_TEXT_MAX];
	char repository[];
};

void uploads_fresh_init(struct uploads_fresh *fresh)
{
	*fresh = (struct uploads_fresh){.lock = LOCK_INIT};
}

void uploads_fresh_done(struct uploads_fresh *fresh)
{
	for (size_t i = 0; i < fresh->count; i++)
		free(fresh->all[i]);
	free(fresh->all);
}

void uploads_fresh_add(struct uploads_fresh *fresh, const char *id, struct str repository)
{
	struct uploads_fresh_one *one = calloc(1, sizeof(*one) + repository.len + 1);

	if (!one)
		abort();
	one->used_ms = clock_now_ms();
	memcpy(one->id, id, sizeof(one->id));
	memcpy(one->repository, repository.ptr, repository.len);
	lock_take(&fresh->lock);
	fresh->all = array_grow(fresh->all, fresh->count, sizeof(struct uploads_fresh_one *));
	fresh->all[fresh->count++] = one;
	lock_drop(&fresh->lock);
}

/* The last is mostly the one. */
static size_t uploads_fresh_find_locked(const struct uploads_fresh *fresh, struct str id)
	REQUIRES(fresh->lock);
static size_t uploads_fresh_find_locked(const struct uploads_fresh *fresh, struct str id)
{
	for (size_t i = fresh->count; i-- > 0;) {
		if (str_equal(str_of(fresh->all[i]->id), id))
			return i;
	}
	return UPLOADS_FRESH_NONE;
}

static struct uploads_fresh_one *uploads_fresh_look_locked(const struct uploads_fresh *fresh,
							   struct str id, struct str repository)
	REQUIRES(fresh->lock);
static struct uploads_fresh_one *uploads_fresh_look_locked(const struct uploads_fresh *fresh,
							   struct str id, struct str repository)
{
	size_t at = uploads_fresh_find_locked(fresh, id);

	if (at == UPLOADS_FRESH_NONE || !str_equal(str_of(fresh->all[at]->repository), repository))
		return NULL;
	return fresh->all[at];
}

bool uploads_fresh_has(struct uploads_fresh *fresh, struct str id, struct str repository)
{
	bool has;

	lock_take(&fresh->lock);
	has = uploads_fresh_look_locked(fresh, id, repository) != NULL;
	lock_drop(&fresh->lock);
	return has;
}

int uploads_fresh_hold(struct uploads_fresh *fresh, struct str id, struct str repository,
		       struct err *err)
{
	struct uploads_fresh_one *one;
	int held;

	lock_take(&fresh->lock);
	one = uploads_fresh_look_locked(fresh, id, repository);
	held = !one ? 0 : one->held ? -1 : 1;
	if (held == 1)
		one->held = true;
	lock_drop(&fresh->lock);
	return held >= 0 ? held
			 : err_set(err, ERR_CONFLICT, "another request is adding to this upload");
}

void uploads_fresh_let_go(struct uploads_fresh *fresh, const char *id)
{
	size_t at;

	lock_take(&fresh->lock);
	at = uploads_fresh_find_locked(fresh, str_of(id));
	if (at != UPLOADS_FRESH_NONE) {
		fresh->all[at]->held = false;
		fresh->all[at]->used_ms = clock_now_ms();
	}
	lock_drop(&fresh->lock);
}

static void uploads_fresh_remove_locked(struct uploads_fresh *fresh, size_t at)
	REQUIRES(fresh->lock);
static void uploads_fresh_remove_locked(struct uploads_fresh *fresh, size_t at)
{
	free(fresh->all[at]);
	fresh->all[at] = fresh->all[--fresh->count];
}

void uploads_fresh_end(struct uploads_fresh *fresh, const char *id)
{
	size_t at;

	lock_take(&fresh->lock);
	at = uploads_fresh_find_locked(fresh, str_of(id));
	if (at != UPLOADS_FRESH_NONE)
		uploads_fresh_remove_locked(fresh, at);
	lock_drop(&fresh->lock);
}

bool uploads_fresh_knows(struct uploads_fresh *fresh, struct str id)
{
	bool knows;

	lock_take(&fresh->lock);
	knows = uploads_fresh_find_locked(fresh, id) != UPLOADS_FRESH_NONE;
	lock_drop(&fresh->lock);
	return knows;
}

void uploads_fresh_forget(struct uploads_fresh *fresh, int64_t now_ms, int64_t idle_ms)
{
	lock_take(&fresh->lock);
	for (size_t i = fresh->count; i-- > 0;) {
		if (!fresh->all[i]->held && now_ms - fresh->all[i]->used_ms >= idle_ms)
			uploads_fresh_remove_locked(fresh, i);
	}
	lock_drop(&fresh->lock);
}

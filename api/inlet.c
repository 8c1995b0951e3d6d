/* SPDX-License-Identifier: Apache-2.0 */
#include "api/inlet.h"

/* Give back what the reader has seen. Whether the writer waits for that. */
static bool inlet_release_locked(struct inlet *inlet) REQUIRES(inlet->lock)
{
	bool wanted = inlet->full && (inlet->lent > 0 || !inlet->begun);

	inlet->begun = true;
	inlet->head = (inlet->head + inlet->lent) % INLET_BYTES;
	inlet->used -= inlet->lent;
	inlet->lent = 0;
	if (wanted)
		inlet->full = false;
	return wanted;
}

/* Nothing more comes. */
static bool inlet_is_over_locked(const struct inlet *inlet) REQUIRES(inlet->lock)
{
	return inlet->finished || inlet->why.kind != ERR_NONE;
}

static int inlet_lend_locked(struct inlet *inlet, struct str *out, struct err *err)
	REQUIRES(inlet->lock)
{
	size_t whole = INLET_BYTES - inlet->head; /* up to the end of the memory */

	while (inlet->used < INLET_PIECE && !inlet_is_over_locked(inlet))
		(void)pthread_cond_wait(&inlet->changed, &inlet->lock.os);
	if (inlet->used == 0 && inlet->why.kind != ERR_NONE) {
		*err = inlet->why;
		return -1;
	}
	if (inlet->used == 0)
		return 0;
	inlet->lent = inlet->used < whole ? inlet->used : whole;
	*out = (struct str){inlet->bytes + inlet->head, inlet->lent};
	return 1;
}

static int inlet_read(struct source *source, struct str *out, struct err *err)
{
	struct inlet *inlet = container_of(source, struct inlet, source);
	bool wanted;
	int result;

	lock_take(&inlet->lock);
	wanted = inlet_release_locked(inlet);
	lock_drop(&inlet->lock);
	if (wanted)
		inlet->room(inlet);
	lock_take(&inlet->lock);
	result = inlet_lend_locked(inlet, out, err);
	lock_drop(&inlet->lock);
	return result;
}

void inlet_init(struct inlet *inlet, void (*room)(struct inlet *inlet), void *ctx)
{
	*inlet =
		(struct inlet){.source = {inlet_read}, .room = room, .ctx = ctx, .lock = LOCK_INIT};
	(void)pthread_cond_init(&inlet->changed, NULL);
}

void inlet_done(struct inlet *inlet)
{
	(void)pthread_cond_destroy(&inlet->changed);
	free(inlet->bytes);
}

void inlet_begin(struct inlet *inlet)
{
	lock_take(&inlet->lock);
	inlet->begun = true;
	lock_drop(&inlet->lock);
}

static void inlet_copy_locked(struct inlet *inlet, struct str bytes) REQUIRES(inlet->lock)
{
	size_t at = (inlet->head + inlet->used) % INLET_BYTES;
	size_t first = INLET_BYTES - at < bytes.len ? INLET_BYTES - at : bytes.len;

	memcpy(inlet->bytes + at, bytes.ptr, first);
	memcpy(inlet->bytes, bytes.ptr + first, bytes.len - first);
	inlet->used += bytes.len;
}

size_t inlet_offer(struct inlet *inlet, struct str bytes)
{
	size_t room;

	lock_take(&inlet->lock);
	if (inlet->begun && !inlet->bytes && !(inlet->bytes = malloc(INLET_BYTES)))
		abort();
	room = inlet->begun ? INLET_BYTES - inlet->used : 0;
	if (!inlet->abandoned) {
		inlet->full = room < bytes.len;
		bytes.len = inlet->full ? room : bytes.len;
		if (bytes.len > 0)
			inlet_copy_locked(inlet, bytes);
		if (inlet->used >= INLET_PIECE)
			(void)pthread_cond_signal(&inlet->changed);
	}
	lock_drop(&inlet->lock);
	return bytes.len;
}

void inlet_finish(struct inlet *inlet)
{
	lock_take(&inlet->lock);
	inlet->finished = true;
	(void)pthread_cond_signal(&inlet->changed);
	lock_drop(&inlet->lock);
}

void inlet_fail(struct inlet *inlet, enum err_kind kind, const char *why)
{
	lock_take(&inlet->lock);
	if (!inlet->finished && inlet->why.kind == ERR_NONE)
		(void)err_set(&inlet->why, kind, "%s", why);
	(void)pthread_cond_signal(&inlet->changed);
	lock_drop(&inlet->lock);
}

void inlet_abandon(struct inlet *inlet)
{
	bool wanted;

	lock_take(&inlet->lock);
	inlet->abandoned = true;
	wanted = inlet->full;
	inlet->full = false;
	lock_drop(&inlet->lock);
	if (wanted)
		inlet->room(inlet);
}

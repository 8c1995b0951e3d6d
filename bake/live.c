/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/live.h"

#include "layers/base/lock.h"

#include <stdatomic.h>

struct live_place {
	char stored[STATUS_ETAG_MAX]; /* "" while nothing is shown */
	char etag[STATUS_ETAG_MAX];
	struct buf body;
};

struct live {
	size_t count;
	atomic_size_t shown; /* places: readers ask no lock while there is none */
	struct lock lock;
	/* guarded by lock: */
	struct live_place *places;
};

struct live *live_new(size_t places)
{
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		abort();
	*live = (struct live){.count = places,
			      .lock = LOCK_INIT,
			      .places = calloc(places, sizeof(*live->places))};
	if (!live->places)
		abort();
	return live;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	for (size_t i = 0; i < live->count; i++)
		buf_done(&live->places[i].body);
	free(live->places);
	free(live);
}

/* Put a status into the place, and release the one that was there. */
static void live_swap(struct live *live, size_t at, struct live_place *place)
{
	struct live_place old;

	lock_take(&live->lock);
	old = live->places[at];
	live->places[at] = *place;
	if (old.stored[0] == '\0' && place->stored[0] != '\0')
		(void)atomic_fetch_add(&live->shown, 1);
	if (old.stored[0] != '\0' && place->stored[0] == '\0')
		(void)atomic_fetch_sub(&live->shown, 1);
	lock_drop(&live->lock);
	*place = old;
}

int live_show(struct live *live, size_t place, const char *stored, const json_t *status,
	      const struct status_progress *progress, struct err *err)
{
	AUTO(json) json_t *shown = json_deep_copy(status);
	struct live_place new = {.body = BUF_INIT(STATUS_BODY_MAX)};
	int result;

	status_set_progress(shown, progress);
	memcpy(new.stored, stored, sizeof(new.stored));
	result = status_render(shown, &new.body, new.etag, err);
	if (result == 0)
		live_swap(live, place, &new);
	buf_done(&new.body);
	return result;
}

void live_hide(struct live *live, size_t place)
{
	struct live_place none = {.body = BUF_INIT(STATUS_BODY_MAX)};

	live_swap(live, place, &none);
	buf_done(&none.body);
}

static int live_replace_locked(struct live *live, struct buf *out, char *etag, struct err *err)
	REQUIRES(live->lock);
static int live_replace_locked(struct live *live, struct buf *out, char *etag, struct err *err)
{
	for (size_t i = 0; i < live->count; i++) {
		const struct live_place *place = &live->places[i];

		if (memcmp(place->stored, etag, STATUS_ETAG_MAX) != 0)
			continue;
		memcpy(etag, place->etag, STATUS_ETAG_MAX);
		buf_clear(out);
		return buf_add(out, buf_str(&place->body), err);
	}
	return 0;
}

int live_read(struct live *live, struct meta *meta, struct str agent_id, int64_t version,
	      struct buf *out, char etag[static STATUS_ETAG_MAX], struct err *err)
{
	int found = status_read(meta, agent_id, version, out, etag, err);

	if (found != 1 || atomic_load(&live->shown) == 0)
		return found;
	lock_take(&live->lock);
	if (live_replace_locked(live, out, etag, err) < 0)
		found = -1;
	lock_drop(&live->lock);
	return found;
}

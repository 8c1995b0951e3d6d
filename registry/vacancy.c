/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/vacancy.h"

#include "layers/punch.h"

#include <sys/statvfs.h>

#define VACANCY_MARGIN ((uint64_t)1024 * 1024) /* records, and pages that change */

void vacancy_init(struct vacancy *vacancy, struct store *store, vacancy_make_fn *make, void *ctx)
{
	*vacancy = (struct vacancy){.store = store, .make = make, .ctx = ctx, .lock = LOCK_INIT};
	(void)pthread_cond_init(&vacancy->changed, NULL);
}

void vacancy_done(struct vacancy *vacancy)
{
	(void)pthread_cond_destroy(&vacancy->changed);
}

/* What so many bytes take in the databases (layers/db_priv.h). */
static uint64_t vacancy_cost(uint64_t bytes)
{
	return bytes + bytes / 8 + VACANCY_MARGIN;
}

static int vacancy_measure_disk(const struct vacancy *vacancy, uint64_t *out, struct err *err)
{
	struct statvfs fs;

	if (fstatvfs(store_dirfd(vacancy->store, STORE_ROOT), &fs) < 0)
		return err_os(err, errno, "look at the file system of %s",
			      store_path(vacancy->store));
	*out = (uint64_t)fs.f_bavail * fs.f_frsize;
	return 0;
}

/* The databases' maps have a ceiling of their own. */
static int vacancy_measure(const struct vacancy *vacancy, uint64_t *out, struct err *err)
{
	uint64_t map = store_map_bytes(vacancy->store);
	struct punch_account account;

	if (vacancy_measure_disk(vacancy, out, err) < 0 ||
	    punch_measure(vacancy->store, &account, err) < 0)
		return -1;
	map -= account.live_bytes < map ? account.live_bytes : map;
	*out = map < *out ? map : *out;
	return 0;
}

static int vacancy_refuse(const struct vacancy *vacancy, uint64_t bytes, struct err *err)
{
	return err_set(err, ERR_FULL,
		       "%s: no space left for %llu bytes: remove what nobody needs, then hearth gc",
		       store_path(vacancy->store), (unsigned long long)bytes);
}

static void vacancy_remember(struct vacancy *vacancy, uint64_t bytes)
{
	bytes = bytes < VACANCY_LACKING_MAX ? bytes : VACANCY_LACKING_MAX;
	lock_take(&vacancy->lock);
	if (vacancy->lacking < bytes || vacancy->lacking == 0)
		vacancy->lacking = bytes > 0 ? bytes : 1;
	lock_drop(&vacancy->lock);
}

/* Make some, or wait for another thread that does. */
static int vacancy_make_any(struct vacancy *vacancy, struct err *err)
{
	bool mine;
	unsigned before;
	int result = 0;

	lock_take(&vacancy->lock);
	mine = !vacancy->making;
	before = vacancy->made;
	vacancy->making = true;
	while (!mine && vacancy->made == before)
		(void)pthread_cond_wait(&vacancy->changed, &vacancy->lock.os);
	if (!mine)
		result = vacancy->result > 0;
	lock_drop(&vacancy->lock);
	if (!mine)
		return result;
	result = vacancy->make(vacancy->ctx, err);
	lock_take(&vacancy->lock);
	vacancy->making = false;
	vacancy->made++;
	vacancy->result = result;
	(void)pthread_cond_broadcast(&vacancy->changed);
	lock_drop(&vacancy->lock);
	return result;
}

int vacancy_make(struct vacancy *vacancy, uint64_t bytes, struct err *err)
{
	vacancy_remember(vacancy, bytes);
	return vacancy->make ? vacancy_make_any(vacancy, err) : 0;
}

int vacancy_look(struct vacancy *vacancy, uint64_t bytes, struct err *err)
{
	uint64_t room;

	if (vacancy_measure_disk(vacancy, &room, err) < 0)
		return -1;
	return room >= vacancy_cost(bytes) ? 0 : vacancy_refuse(vacancy, bytes, err);
}

int vacancy_ask(struct vacancy *vacancy, uint64_t bytes, struct err *err)
{
	uint64_t room;

	if (vacancy_measure_disk(vacancy, &room, err) < 0)
		return -1;
	if (room >= vacancy_cost(bytes))
		return 0;
	if (vacancy_make(vacancy, bytes, err) < 0 || vacancy_measure_disk(vacancy, &room, err) < 0)
		return -1;
	return room >= vacancy_cost(bytes) ? 0 : vacancy_refuse(vacancy, bytes, err);
}

int vacancy_check(struct vacancy *vacancy, struct err *err)
{
	uint64_t lacking;
	uint64_t room;

	lock_take(&vacancy->lock);
	lacking = vacancy->lacking;
	lock_drop(&vacancy->lock);
	if (lacking == 0)
		return 0;
	if (vacancy_measure(vacancy, &room, err) < 0)
		return -1;
	if (room < vacancy_cost(lacking))
		return vacancy_refuse(vacancy, lacking, err);
	lock_take(&vacancy->lock);
	vacancy->lacking = vacancy->lacking == lacking ? 0 : vacancy->lacking;
	lock_drop(&vacancy->lock);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/slot_priv.h"

#include "layers/base/hold.h"

#define LOG_MODULE "sandbox"
#include "layers/base/log.h"
#include "sandbox/userns_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int slot_fill(int machinesfd, const char *name, struct slot *slot, struct err *err)
{
	struct stat st;

	if (fstat(machinesfd, &st) < 0)
		return err_os(err, errno, "inspect machines/");
	(void)snprintf(slot->name, sizeof(slot->name), "%s", name);
	(void)snprintf(slot->id, sizeof(slot->id), "hearth-%jx-%jx-%s", (uintmax_t)st.st_dev,
		       (uintmax_t)st.st_ino, name);
	return 0;
}

static bool slot_is_directory(const struct slot *slot)
{
	struct stat st;

	return slot->dirfd >= 0 && fstat(slot->dirfd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* 1 held, 0 somebody else's, or gone, or no machine, -1. The slot is to be released. */
static int slot_hold(int machinesfd, struct slot *slot, struct err *err)
{
	int held = hold_try(machinesfd, slot->name, &slot->dirfd, err);

	if (held < 0)
		return err_ctx(err, "machines");
	return held == 1 && slot_is_directory(slot);
}

/* 1 claimed, 0 taken, -1. */
static int slot_try(int machinesfd, unsigned number, struct slot *slot, struct err *err)
{
	char name[SLOT_NAME_MAX];

	(void)snprintf(name, sizeof(name), "%03x", number);
	if (mkdirat(machinesfd, name, 0700) < 0)
		return errno == EEXIST ? 0 : err_os(err, errno, "make machines/%s", name);
	if (slot_fill(machinesfd, name, slot, err) < 0)
		return -1;
	return slot_hold(machinesfd, slot, err);
}

int slot_claim(int machinesfd, struct slot *out, struct err *err)
{
	uid_t first[USERNS_SLOTS];

	userns_slots(machinesfd, first);
	for (unsigned number = 0; number < USERNS_SLOTS; number++) {
		struct slot slot = {.first_id = first[number], .dirfd = -1};
		int held = first[number] ? slot_try(machinesfd, number, &slot, err) : 0;

		if (held < 0)
			return -1;
		if (held) {
			*out = slot;
			return 0;
		}
	}
	return err_set(err, ERR_BUSY, "%u machines exist already", USERNS_SLOTS);
}

void slot_release(struct slot *slot)
{
	auto_close_release(&slot->dirfd);
	*slot = SLOT_INIT;
}

static int slot_visit(int machinesfd, const char *name, slot_each_fn *fn, void *ctx,
		      struct err *err)
{
	struct slot slot = SLOT_INIT;
	int result;

	if (slot_fill(machinesfd, name, &slot, err) < 0)
		return -1;
	result = slot_hold(machinesfd, &slot, err);
	if (result > 0)
		result = fn(ctx, &slot, err);
	slot_release(&slot);
	return result;
}

int slot_each_dead(int machinesfd, slot_each_fn *fn, void *ctx, struct err *err)
{
	int fd = openat(machinesfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct err why;

	if (!dir)
		return err_os(err, errno, "open machines/");
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= SLOT_NAME_MAX)
			continue;
		if (slot_visit(machinesfd, entry->d_name, fn, ctx, &why) < 0)
			log_warn("dead machine left name=%s error=\"%s\"", entry->d_name, why.text);
	}
	(void)closedir(dir);
	return 0;
}

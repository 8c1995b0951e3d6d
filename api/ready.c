/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ready.h"

#include "api/metrics.h"
#include "layers/base/room.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define READY_ROOM ((size_t)64 * 1024) /* for a few records */

int ready_check(struct store *store, struct uploads *uploads, struct err *err)
{
	if (room_check(store_dirfd(store, STORE_TMP), READY_ROOM, err) < 0)
		return err_ctx(err, "%s", store_path(store));
	return vacancy_check(uploads_vacancy(uploads), err);
}

static uint64_t ready_bytes(struct store *store, const char *file)
{
	struct stat st;

	if (fstatat(store_dirfd(store, STORE_ROOT), file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

int ready_metrics(void *ctx, struct buf *page, struct err *err)
{
	struct store *store = ctx;
	struct statvfs fs = {0};
	struct metric_sample samples[] = {
		{"hearth_store_bytes", "database=\"meta\"", "gauge",
		 "What a database occupies on the disk.", ready_bytes(store, "meta/data.mdb")},
		{"hearth_store_bytes", "database=\"blobs\"", NULL, NULL,
		 ready_bytes(store, "blobs/data.mdb")},
		{"hearth_disk_free_bytes", "", "gauge",
		 "What the data directory's file system has left.", 0},
	};

	if (fstatvfs(store_dirfd(store, STORE_ROOT), &fs) == 0)
		samples[2].value = (uint64_t)fs.f_bavail * fs.f_frsize;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		if (metrics_value(page, &samples[i], err) < 0)
			return -1;
	}
	return 0;
}

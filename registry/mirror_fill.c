/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror_fill.c - a blob on its way from an upstream: into a staged file without
 * a name, which is read while it grows, and into the store.
 *
 *	upstream -> file -> those who ask, but for the last MIRROR_HELD_BACK bytes
 *	        \-> chunks -> size, digest -> blob -> record -> the last bytes
 *
 * A stream that breaks is continued where it broke. Nothing has a name before
 * the record is durable: a crash leaves chunks that collection takes.
 */
#include "registry/mirror_priv.h"

#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/lease.h"
#include "registry/fetch_priv.h"
#include "registry/intake.h"
#include "registry/range_priv.h"
#include "registry/repository.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/uio.h>

#define LOG_MODULE "registry"
#include "layers/base/log.h"

#define MIRROR_HELD_BACK ((uint64_t)64 * 1024)
#define MIRROR_AHEAD ((uint64_t)8 * 1024 * 1024) /* room that is asked for at a time */
#define MIRROR_TELL_MS 5                         /* between two words to those who wait */

struct fill {
	struct sink sink;
	struct mirror_hand *hand;
	struct mirror_task *task;
	struct blob_writer *writer;
	struct http_reply reply; /* the present answer */
	uint64_t done;           /* bytes that the file has */
	uint64_t skip;           /* bytes of this answer that it has already */
	uint64_t room;           /* bytes that there was room for, when it was asked */
	bool begun;              /* this answer's headers were judged */
	bool no_range;           /* the upstream cannot continue in the middle */
	int64_t told_ms;         /* when those who wait heard of it last */
};

uint64_t mirror_fill_ready(const struct mirror_task *task)
{
	uint64_t arrived = atomic_load(&task->arrived);
	uint64_t size = atomic_load(&task->size);
	uint64_t end = size == MIRROR_SIZE_UNKNOWN ? arrived : size;
	uint64_t held_from = end < MIRROR_HELD_BACK ? 0 : end - MIRROR_HELD_BACK;

	if (atomic_load(&task->whole))
		return size;
	return arrived < held_from ? arrived : held_from;
}

ssize_t mirror_fill_read(const struct mirror_task *task, uint64_t at, char *out, size_t max)
{
	ssize_t n;

	do {
		n = pread(task->fd, out, max, (off_t)at);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? n : -1;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the kernel writes to it */
ssize_t mirror_fill_read_near(const struct mirror_task *task, uint64_t at, char *out, size_t max)
{
	const struct iovec room = {out, max};
	ssize_t n = preadv2(task->fd, &room, 1, (off_t)at, RWF_NOWAIT);

	return n > 0 ? n : 0;
}

static int mirror_fill_wrong_size(const struct fill *fill, uint64_t size, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%s: blob of %" PRIu64 " bytes, which were %" PRIu64,
		       fill->task->place.upstream->host, size, atomic_load(&fill->task->size));
}

/* The upstream says how long it is: that holds for all its answers. */
static int mirror_fill_note_size(struct fill *fill, uint64_t size, struct err *err)
{
	uint64_t known = atomic_load(&fill->task->size);

	if (known != MIRROR_SIZE_UNKNOWN)
		return known == size ? 0 : mirror_fill_wrong_size(fill, size, err);
	if (size > MIRROR_BLOB_MAX)
		return err_set(err, ERR_LIMIT, "a blob of %" PRIu64 " bytes", size);
	atomic_store(&fill->task->size, size);
	mirror_task_tell(fill->task);
	return 0;
}

/* An answer in chunks, or up to the connection's end: a manifest may say how long the blob is. */
static int mirror_fill_begin_endless(struct fill *fill, struct err *err)
{
	struct mirror_task *task = fill->task;
	uint64_t size;
	int found;

	if (atomic_load(&task->endless) || atomic_load(&task->size) != MIRROR_SIZE_UNKNOWN)
		return 0;
	found = mirror_hold_size(task->mirror, &task->place, &task->digest, &size, err);
	if (found != 0)
		return found < 0 ? -1 : mirror_fill_note_size(fill, size, err);
	atomic_store(&task->endless, true);
	mirror_task_tell(task);
	return 0;
}

/* Where this answer starts, and whether it is of the same blob as the one before. */
static int mirror_fill_begin(struct fill *fill, struct err *err)
{
	struct range range;
	uint64_t length;

	fill->begun = true;
	if (fill->reply.status == 200) {
		fill->skip = fill->done;
		if (range_parse_number(http_header(&fill->reply, "Content-Length"), &length))
			return mirror_fill_note_size(fill, length, err);
		return mirror_fill_begin_endless(fill, err);
	}
	fill->skip = 0;
	fill->no_range = true; /* unless this answer is fine */
	if (range_parse(http_header(&fill->reply, "Content-Range"), &range, err) < 0)
		return -1;
	if (range.size != RANGE_SIZE_UNKNOWN && mirror_fill_note_size(fill, range.size, err) < 0)
		return -1;
	if (range.first != fill->done)
		return err_set(err, ERR_REMOTE,
			       "asked for bytes from %" PRIu64 ", got them from %" PRIu64,
			       fill->done, range.first);
	fill->no_range = false;
	return 0;
}

/* What says nothing of its end, or lies, does not take the disk from all others. */
static int mirror_fill_ask_for_room(struct fill *fill, size_t more, struct err *err)
{
	struct vacancy *vacancy = fill->task->mirror->options.vacancy;
	uint64_t size = atomic_load(&fill->task->size);
	uint64_t ahead = size == MIRROR_SIZE_UNKNOWN ? MIRROR_AHEAD : size - fill->done;

	if (!vacancy || fill->done + more <= fill->room)
		return 0;
	if (ahead < more)
		ahead = more;
	/* In its staged file, and in the store. */
	if (vacancy_look(vacancy, 2 * ahead, err) < 0)
		return -1;
	fill->room = fill->done + ahead;
	return 0;
}

static int mirror_fill_stage(struct fill *fill, struct str bytes, struct err *err)
{
	uint64_t at = fill->done;

	while (bytes.len > 0) {
		ssize_t n = pwrite(fill->task->fd, bytes.ptr, bytes.len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_os(err, errno, "stage a blob");
		at += (uint64_t)n;
		bytes = str_skip(bytes, (size_t)n);
	}
	return 0;
}

static void mirror_fill_tell(struct fill *fill)
{
	int64_t now_ms = clock_monotonic_ms();

	if (now_ms - fill->told_ms < MIRROR_TELL_MS)
		return;
	fill->told_ms = now_ms;
	mirror_task_tell(fill->task);
}

static int mirror_fill_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct fill *fill = container_of(sink, struct fill, sink);
	uint64_t size;

	if (!fill->begun && mirror_fill_begin(fill, err) < 0)
		return -1;
	if (fill->skip >= bytes.len) {
		fill->skip -= bytes.len;
		return 0;
	}
	bytes = str_skip(bytes, fill->skip);
	fill->skip = 0;
	size = atomic_load(&fill->task->size);
	if (bytes.len > (size == MIRROR_SIZE_UNKNOWN ? MIRROR_BLOB_MAX : size) - fill->done)
		return err_set(err, ERR_CORRUPT, "a blob of more bytes than its upstream said");
	if (mirror_fill_ask_for_room(fill, bytes.len, err) < 0 ||
	    mirror_fill_stage(fill, bytes, err) < 0 ||
	    blob_writer_add(fill->writer, bytes, err) < 0)
		return -1;
	fill->done += bytes.len;
	atomic_fetch_add(&fill->task->place.upstream->counts.fetched, bytes.len);
	atomic_store(&fill->task->arrived, fill->done);
	mirror_fill_tell(fill);
	return 0;
}

/* The answer came to its end: 1 all of the blob is there, 0 some is not, -1. */
static int mirror_fill_judge(struct fill *fill, struct err *err)
{
	uint64_t size;

	if (!fill->begun && mirror_fill_begin(fill, err) < 0) /* it had no body */
		return -1;
	size = atomic_load(&fill->task->size);
	if (size == MIRROR_SIZE_UNKNOWN) {
		atomic_store(&fill->task->size, fill->done);
		return 1;
	}
	if (fill->done == size)
		return 1;
	return err_set(err, ERR_REMOTE, "the blob ends after %" PRIu64 " of %" PRIu64 " bytes",
		       fill->done, size) +
	       1;
}

/* Whether another try may bring what is missing. Before anybody has a byte, the answer is his. */
static bool mirror_fill_may_go_on(const struct fill *fill, const struct err *why)
{
	const struct http_reply *reply = &fill->reply;

	if (reply->status == 206 && fill->no_range)
		return why->kind == ERR_REMOTE || why->kind == ERR_INVALID;
	if (reply->status == 0 || reply->status == 200 || reply->status == 206)
		return reply->worth_retrying;
	return fill->done > 0 && why->kind != ERR_NOT_FOUND && why->kind != ERR_UNAUTHORIZED &&
	       why->kind != ERR_DENIED;
}

/* One try: 1 all is there, 0 another try may bring more (*err says what was wrong), -1. */
static int mirror_fill_once(struct fill *fill, struct err *err)
{
	uint64_t size = atomic_load(&fill->task->size);
	struct remote_request request = {
		.method = HTTP_GET, .kind = "blobs", .name = fill->task->name, .body = &fill->sink};
	char range[64];

	(void)snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, fill->done, size - 1);
	if (fill->done > 0 && !fill->no_range && size != MIRROR_SIZE_UNKNOWN)
		request.range = range;
	fill->begun = false;
	if (mirror_ask(fill->hand, &request, &fill->reply, err) == 0)
		return mirror_fill_judge(fill, err);
	if (fill->reply.status == 416 && request.range) {
		fill->no_range = true;
		return 0;
	}
	return mirror_fill_may_go_on(fill, err) ? 0 : -1;
}

static int mirror_fill_receive(struct fill *fill, struct err *err)
{
	struct mirror_hand *hand = fill->hand;
	struct retry retry = remote_retry(mirror_remote_get(hand->remote));

	while (true) {
		uint64_t before = fill->done;
		int result = mirror_fill_once(fill, err);

		if (result != 0)
			return result < 0 ? -1 : 0;
		if (fill->done - before >= FETCH_PROGRESS_BYTES)
			retry_forget(&retry);
		mirror_task_tell(fill->task);
		if (retry_wait(&retry, hand->http, fill->reply.retry_after_ms, err) < 0)
			return -1;
		log_debug("blob is continued digest=%s at=%" PRIu64, fill->task->name, fill->done);
	}
}

static int mirror_fill_put_record(struct mirror_task *task, const struct blob_info *info,
				  struct err *err)
{
	const struct repository_item item = {
		.kind = REPOSITORY_BLOB,
		.source = REPOSITORY_MIRRORED,
		.digest = task->digest,
		.blob = info->digest,
		.size = info->size,
		.at_ms = clock_now_ms(),
	};
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(task->mirror->options.store, META_SHARED, &meta, err) < 0 ||
	    repository_put(meta, str_of(task->place.key), &item, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/* All is here: is it what it should be? Then it is kept, and the rest is given away. */
static int mirror_fill_keep(struct fill *fill, struct err *err)
{
	struct mirror_task *task = fill->task;
	AUTO(lease) struct lease *lease = NULL;
	struct blob_info info;

	if (lease_open(task->mirror->options.store, &lease, err) < 0 ||
	    blob_writer_commit(fill->writer, &task->digest, &info, err) < 0 ||
	    mirror_fill_put_record(task, &info, err) < 0)
		return -1;
	atomic_store(&task->whole, true);
	return 0;
}

/* Whether it was fetched since who asks for it has looked. 1, 0, -1. */
static int mirror_fill_find_held(const struct mirror_task *task, struct repository_item *out,
				 struct err *err)
{
	return mirror_holds(task->mirror, &task->place, REPOSITORY_BLOB, &task->digest, out, err);
}

static int mirror_fill_open_stage(struct mirror_task *task, struct err *err)
{
	int dirfd = store_dirfd(task->mirror->options.store, STORE_TMP);

	if (task->fd >= 0) /* it is tried once more */
		return 0;
	task->fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return task->fd < 0 ? err_os(err, errno, "stage a blob") : 0;
}

int mirror_fill_blob(struct mirror_hand *hand, struct mirror_task *task, struct err *err)
{
	struct fill fill = {.sink = {mirror_fill_write}, .hand = hand, .task = task};
	AUTO(blob_writer) struct blob_writer *writer = NULL;
	struct repository_item item;
	int result = mirror_fill_find_held(task, &item, err);

	if (result != 0) /* nothing is staged: it is served from the store */
		return result < 0 ? -1 : 0;
	if (mirror_fill_open_stage(task, err) < 0 ||
	    blob_writer_open(hand->mirror->options.store, &writer, err) < 0)
		return -1;
	fill.writer = writer;
	result = mirror_fill_receive(&fill, err);
	http_reply_done(&fill.reply);
	if (result == 0)
		result = mirror_fill_keep(&fill, err);
	if (result < 0)
		(void)err_ctx(err, "%s", task->name);
	return result;
}

/* Some do not know HEAD (405), and a signed URL refuses it: ERR_UNSUPPORTED, ask by GET. */
static int mirror_fill_check_failed(const struct http_reply *reply, struct err *err)
{
	if (err->kind == ERR_REMOTE && reply->status >= 400 && !retry_status(reply->status))
		err->kind = ERR_UNSUPPORTED;
	return -1;
}

/* How long it is: as the answer says, or else a manifest. */
static int mirror_fill_check_size(const struct mirror_task *task, const struct http_reply *reply,
				  uint64_t *out, struct err *err)
{
	int found;

	if (range_parse_number(http_header(reply, "Content-Length"), out))
		return 0;
	found = mirror_hold_size(task->mirror, &task->place, &task->digest, out, err);
	if (found == 0)
		return err_set(err, ERR_UNSUPPORTED, "the upstream does not say how long it is");
	return found < 0 ? -1 : 0;
}

/*
 * Whether the upstream gives us a blob: then what is in the store by its digest
 * may be read by the repository's name, without its coming here once more.
 */
int mirror_check_blob(struct mirror_hand *hand, struct mirror_task *task, struct err *err)
{
	const struct remote_request request = {
		.method = HTTP_HEAD, .kind = "blobs", .name = task->name, .document = true};
	auto_http_reply struct http_reply reply = {0};
	AUTO(lease) struct lease *lease = NULL;
	struct blob_info info;
	struct repository_item item;
	uint64_t size;
	int found = mirror_fill_find_held(task, &item, err);

	if (found == 1)
		atomic_store(&task->size, item.size);
	if (found != 0)
		return found < 0 ? -1 : 0;
	if (mirror_ask(hand, &request, &reply, err) < 0)
		return mirror_fill_check_failed(&reply, err);
	if (mirror_fill_check_size(task, &reply, &size, err) < 0)
		return -1;
	atomic_store(&task->size, size);
	if (lease_open(hand->mirror->options.store, &lease, err) < 0)
		return -1;
	found = intake_find(hand->mirror->options.store, lease, &task->digest, &info, err);
	if (found <= 0 || info.size != size || task->digest.algorithm != DIGEST_SHA256)
		return found < 0 ? -1 : 0; /* a sha512 does not tell what the store calls it */
	return mirror_fill_put_record(task, &info, err);
}

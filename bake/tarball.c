/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tarball.c
 *
 *	table     key                       members (v is 1)
 *	contexts  digest of the bytes, hex  atMs: when it came first; bytes
 *
 * A record says that a blob which no image names is of use.
 */
#include "bake/tarball_priv.h"

#include "bake/asker.h"
#include "layers/base/clock.h"
#include "layers/blob.h"
#include "layers/lease.h"
#include "layers/tree.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define TARBALL_TABLE "contexts"
#define TARBALL_PIECE ((size_t)256 * 1024)

struct tarball_writer {
	struct store *store;
	struct lease *lease;      /* until a record names the blob */
	struct blob_writer *blob; /* NULL where the bytes are only named */
	struct hasher hasher;
	uint64_t size;
};

/* What is read, and the piece at hand. */
struct tarball {
	int fd;
	const struct cancel *cancel;
	char piece[TARBALL_PIECE];
};

/* Refuse a compression that we do not read now, rather than when it is unpacked. */
static int tarball_check_kind(struct str start, struct err *err)
{
	static const struct {
		struct str magic;
		const char *name;
	} others[] = {
		{STR("BZh"), "bzip2"},
		{STR("\xfd"
		     "7zXZ"),
		 "xz"},
		{STR("PK\3\4"), "a zip archive"},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (str_starts(start, others[i].magic))
			return err_set(err, ERR_INVALID,
				       "it is %s; a context is a tar, plain or in gzip or zstd",
				       others[i].name);
	}
	return 0;
}

/* 1 and a piece, 0 at the end, -1. */
static int tarball_read(struct tarball *tarball, struct str *out, struct err *err)
{
	struct pollfd fds[] = {{.fd = tarball->fd, .events = POLLIN},
			       {.fd = cancel_fd(tarball->cancel), .events = POLLIN}};
	ssize_t n = -1;

	while (n < 0) {
		(void)poll(fds, 2, -1);
		if (cancel_check(tarball->cancel, err) < 0)
			return -1;
		n = read(tarball->fd, tarball->piece, sizeof(tarball->piece));
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_os(err, errno, "read");
	}
	*out = (struct str){tarball->piece, (size_t)n};
	return n > 0;
}

/* 1 the blob is in the store, and the record says what it is; 0 not both; -1. */
static int tarball_held(struct store *store, const struct digest *digest, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct blob_info info;
	struct tarball_info known;
	int found = blob_find(store, digest, &info, err);

	if (found <= 0)
		return found;
	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	return tarball_find(meta, digest, &known, err);
}

static int tarball_record(struct store *store, const struct digest *digest, uint64_t size,
			  struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	AUTO(json) json_t *record = NULL;
	char hex[DIGEST_HEX_MAX];

	record = json_pack("{s:i, s:I, s:I}", "v", 1, "atMs", (json_int_t)clock_now_ms(), "bytes",
			   (json_int_t)size);
	if (meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    meta_put(meta, TARBALL_TABLE, str_of(digest_hex(digest, hex)), record, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

static struct tarball_writer *tarball_writer_new(struct store *store)
{
	struct tarball_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		abort();
	writer->store = store;
	hasher_init(&writer->hasher);
	return writer;
}

int tarball_writer_open(struct store *store, struct tarball_writer **out, struct err *err)
{
	AUTO(tarball_writer) struct tarball_writer *writer = tarball_writer_new(store);

	if (lease_open(store, &writer->lease, err) < 0 || lease_rest(writer->lease, err) < 0 ||
	    blob_writer_open(store, &writer->blob, err) < 0)
		return -1;
	*out = steal_ptr(&writer);
	return 0;
}

void tarball_writer_close(struct tarball_writer *writer)
{
	if (!writer)
		return;
	blob_writer_close(writer->blob);
	lease_close(writer->lease);
	hasher_done(&writer->hasher);
	free(writer);
}

int tarball_writer_add(struct tarball_writer *writer, struct str bytes, struct err *err)
{
	if (writer->size == 0 && tarball_check_kind(bytes, err) < 0)
		return -1;
	if (bytes.len > TARBALL_BYTES_MAX - writer->size)
		return err_set(err, ERR_LIMIT, "it is larger than %llu bytes",
			       (unsigned long long)TARBALL_BYTES_MAX);
	writer->size += bytes.len;
	hasher_add(&writer->hasher, bytes);
	return writer->blob ? blob_writer_add(writer->blob, bytes, err) : 0;
}

/* Compute the digest of what was added: 1 the store has that context, 0 not yet, -1. */
static int tarball_writer_name(struct tarball_writer *writer, struct digest *out, struct err *err)
{
	if (writer->size == 0)
		return err_set(err, ERR_INVALID, "it is empty");
	hasher_final(&writer->hasher, out);
	return tarball_held(writer->store, out, err);
}

int tarball_writer_finish(struct tarball_writer *writer, struct digest *out, struct err *err)
{
	struct blob_info info;
	int held = tarball_writer_name(writer, out, err);

	if (held != 0)
		return held < 0 ? -1 : 0;
	if (blob_writer_commit(writer->blob, out, &info, err) < 0)
		return -1;
	return tarball_record(writer->store, out, info.size, err);
}

static int tarball_read_all(int fd, const struct cancel *cancel, struct tarball_writer *writer,
			    struct err *err)
{
	auto_free struct tarball *tarball = malloc(sizeof(*tarball));
	struct str piece;
	int more;

	if (!tarball)
		abort();
	tarball->fd = fd;
	tarball->cancel = cancel;
	while ((more = tarball_read(tarball, &piece, err)) == 1) {
		if (tarball_writer_add(writer, piece, err) < 0)
			return -1;
	}
	return more;
}

/* A file that can be read twice is hashed first. 1 the store has it, 0 it must be stored, -1. */
static int tarball_try(struct store *store, int fd, const struct cancel *cancel, struct digest *out,
		       struct err *err)
{
	AUTO(tarball_writer) struct tarball_writer *writer = NULL;
	struct stat st;
	off_t start;
	int held;

	if (fstat(fd, &st) < 0)
		return err_os(err, errno, "stat");
	start = S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
	if (start < 0)
		return 0;
	writer = tarball_writer_new(store);
	if (tarball_read_all(fd, cancel, writer, err) < 0)
		return -1;
	held = tarball_writer_name(writer, out, err);
	if (held == 0 && lseek(fd, start, SEEK_SET) < 0)
		return err_os(err, errno, "read again");
	return held;
}

int tarball_put(struct store *store, int fd, const struct cancel *cancel, struct digest *out,
		struct err *err)
{
	AUTO(tarball_writer) struct tarball_writer *writer = NULL;
	int held = tarball_try(store, fd, cancel, out, err);

	if (held != 0)
		return held < 0 ? -1 : 0;
	if (tarball_writer_open(store, &writer, err) < 0 ||
	    tarball_read_all(fd, cancel, writer, err) < 0)
		return -1;
	return tarball_writer_finish(writer, out, err);
}

static int tarball_parse(const json_t *record, const struct digest *digest,
			 struct tarball_info *out, struct err *err)
{
	int64_t bytes;

	if (json_need_int(record, TARBALL_TABLE, "atMs", &out->at_ms, err) < 0 ||
	    json_need_int(record, TARBALL_TABLE, "bytes", &bytes, err) < 0)
		return -1;
	out->digest = *digest;
	out->size = (uint64_t)bytes;
	return 0;
}

int tarball_find(struct meta *meta, const struct digest *digest, struct tarball_info *out,
		 struct err *err)
{
	AUTO(json) json_t *record = NULL;
	char hex[DIGEST_HEX_MAX];
	int found;

	if (digest->algorithm != DIGEST_SHA256)
		return 0;
	found = meta_get(meta, TARBALL_TABLE, str_of(digest_hex(digest, hex)), &record, err);
	if (found <= 0)
		return found;
	return tarball_parse(record, digest, out, err) < 0 ? -1 : 1;
}

struct tarball_walk {
	tarball_each_fn *fn;
	void *ctx;
};

static int tarball_each_one(void *ctx, struct str key, const json_t *record, struct err *err)
{
	const struct tarball_walk *walk = ctx;
	char text[DIGEST_TEXT_MAX];
	struct tarball_info info;
	struct digest digest;

	(void)snprintf(text, sizeof(text), "sha256:" STR_FMT, STR_ARG(key));
	if (digest_parse(str_of(text), &digest, err) < 0 ||
	    tarball_parse(record, &digest, &info, err) < 0)
		return err_ctx(err, TARBALL_TABLE);
	return walk->fn(walk->ctx, &info, err);
}

int tarball_each(struct meta *meta, tarball_each_fn *fn, void *ctx, struct err *err)
{
	struct tarball_walk walk = {fn, ctx};

	return meta_each(meta, TARBALL_TABLE, STR(""), tarball_each_one, &walk, err);
}

int tarball_forget(struct meta *meta, const struct digest *digest, struct err *err)
{
	char hex[DIGEST_HEX_MAX];

	return meta_del(meta, TARBALL_TABLE, str_of(digest_hex(digest, hex)), err);
}

int tarball_take(struct store *store, struct source *source, struct digest *out, struct err *err)
{
	AUTO(tarball_writer) struct tarball_writer *writer = NULL;
	struct str piece;
	int more;

	if (tarball_writer_open(store, &writer, err) < 0)
		return -1;
	while ((more = source->read(source, &piece, err)) == 1) {
		if (tarball_writer_add(writer, piece, err) < 0)
			return -1;
	}
	return more < 0 ? -1 : tarball_writer_finish(writer, out, err);
}

void tarball_tree(const struct digest *digest, struct digest *out)
{
	struct hasher hasher;

	hasher_init(&hasher);
	hasher_add(&hasher, STR("hearth context 1"));
	hasher_add(&hasher, (struct str){(const char *)digest->bytes, sizeof(digest->bytes)});
	hasher_final(&hasher, out);
	hasher_done(&hasher);
}

static int tarball_unpack(const struct asker *asker, const struct digest *digest, struct err *err)
{
	AUTO(json) json_t *request = asker_request_new(asker->store);
	AUTO(json) json_t *answer = NULL;
	char text[DIGEST_TEXT_MAX];
	int held = tarball_held(asker->store, digest, err);

	digest_format(digest, text);
	if (held < 0)
		return -1;
	if (held == 0)
		return err_set(err, ERR_NOT_FOUND,
			       "the store has no context %s; hearth context put brings one", text);
	json_set_text(request, "digest", text);
	return asker_call(asker, "context", request, &answer, err);
}

int tarball_open(const struct asker *asker, const struct digest *digest, int *out_fd,
		 struct err *err)
{
	char hex[DIGEST_HEX_MAX];
	struct digest tree;
	auto_close int fd = -1;
	int found;

	tarball_tree(digest, &tree);
	found = tree_find(asker->store, &tree, err);
	if (found < 0 || (found == 0 && tarball_unpack(asker, digest, err) < 0))
		return -1;
	fd = openat(store_dirfd(asker->store, STORE_TREES), digest_hex(&tree, hex),
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_os(err, errno, "open the context's directory");
	/* As long as it is open nobody removes it. */
	while (flock(fd, LOCK_SH) < 0) {
		if (errno != EINTR)
			return err_os(err, errno, "lock the context's directory");
	}
	*out_fd = steal_fd(&fd);
	return 0;
}

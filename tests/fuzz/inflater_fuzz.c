/* SPDX-License-Identifier: Apache-2.0 */
/* Property: a stream inflates to the same bytes, in whatever pieces it comes. */
#include "layers/layer.h"

#define FUZZ_PLAIN_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_out {
	struct sink sink;
	struct hasher hasher;
	uint64_t size;
};

struct fuzz_result {
	int rc;
	enum err_kind kind;
	uint64_t size;
	struct digest digest;
};

static int fuzz_write(struct sink *sink, struct str bytes, struct err *err)
{
	struct fuzz_out *out = container_of(sink, struct fuzz_out, sink);

	(void)err;
	hasher_add(&out->hasher, bytes);
	out->size += bytes.len;
	return 0;
}

static int fuzz_inflate(struct sink *out, struct str packed, size_t piece, struct err *err)
{
	AUTO(inflater) struct inflater *inflater = NULL;

	if (inflater_open(out, FUZZ_PLAIN_MAX, &inflater, err) < 0)
		return -1;
	while (packed.len > 0) {
		size_t n = packed.len < piece ? packed.len : piece;
		/* An allocation of its own, so that a read past the piece is seen. */
		auto_free char *bytes = malloc(n);

		if (!bytes)
			abort();
		memcpy(bytes, packed.ptr, n);
		if (inflater_write(inflater, (struct str){bytes, n}, err) < 0)
			return -1;
		packed.ptr += n;
		packed.len -= n;
	}
	return inflater_finish(inflater, err);
}

static struct fuzz_result fuzz_run(struct str packed, size_t piece)
{
	struct fuzz_out out = {.sink = {fuzz_write}};
	struct fuzz_result result = {0};
	struct err err = {0};

	hasher_init(&out.hasher);
	result.rc = fuzz_inflate(&out.sink, packed, piece, &err);
	result.kind = err.kind;
	result.size = out.size;
	hasher_final(&out.hasher, &result.digest);
	hasher_done(&out.hasher);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str packed = {(const char *)data, size};
	struct fuzz_result whole = fuzz_run(packed, size + 1);

	for (size_t piece = 1; piece <= 13; piece += 12) {
		struct fuzz_result pieces = fuzz_run(packed, piece);

		if (pieces.size > FUZZ_PLAIN_MAX || (pieces.rc < 0) != (pieces.kind != ERR_NONE))
			abort();
		if (pieces.rc != whole.rc)
			abort();
		if (whole.rc == 0 && !digest_equal(&pieces.digest, &whole.digest))
			abort();
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* inflater.c - the format is told by the first bytes; what follows is counted. */
#include "layers/inflate_priv.h"
#include "layers/layer.h"

struct inflater {
	struct sink counter; /* where formats write: guards the ceiling */
	struct sink *out;
	uint64_t max;  /* plain bytes */
	uint64_t left; /* of those, what may still come */
	char first[INFLATER_FIRST];
	size_t first_len;
	bool chosen;
	const struct inflate_format *format; /* NULL for plain bytes */
	struct inflate *inflate;
};

int inflater_too_much(uint64_t max, struct err *err)
{
	return err_set(err, ERR_LIMIT,
		       "the layer inflates to more than %llu bytes, a ceiling that can be raised",
		       (unsigned long long)max);
}

static int inflater_count(struct sink *sink, struct str bytes, struct err *err)
{
	struct inflater *inflater = container_of(sink, struct inflater, counter);

	if (bytes.len > inflater->left)
		return inflater_too_much(inflater->max, err);
	inflater->left -= bytes.len;
	return inflater->out->write(inflater->out, bytes, err);
}

int inflater_open(struct sink *out, uint64_t max_plain, struct inflater **inflater, struct err *err)
{
	struct inflater *made = calloc(1, sizeof(*made));

	if (!made)
		return err_os(err, ENOMEM, "open an inflater");
	made->counter.write = inflater_count;
	made->out = out;
	made->max = made->left = max_plain;
	*inflater = made;
	return 0;
}

void inflater_close(struct inflater *inflater)
{
	if (!inflater)
		return;
	if (inflater->format)
		inflater->format->close(inflater->inflate);
	free(inflater);
}

static int inflater_feed(struct inflater *inflater, struct str bytes, struct err *err)
{
	if (!inflater->format)
		return inflater_count(&inflater->counter, bytes, err);
	return inflater->format->write(inflater->inflate, bytes, err);
}

bool inflater_recognizes(struct str first, enum layer_codec *out)
{
	*out = inflate_gzip.starts(first) ? LAYER_GZIP : LAYER_ZSTD;
	return *out == LAYER_GZIP || inflate_zstd.starts(first);
}

const char *inflater_other(struct str first)
{
	static const struct {
		const char *magic;
		const char *program;
	} others[] = {{"BZh", "bzip2"}, {"\xfd\x37zXZ", "xz"}};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (str_starts(first, str_of(others[i].magic)))
			return others[i].program;
	}
	return NULL;
}

static int inflater_choose(struct inflater *inflater, struct err *err)
{
	struct str first = {inflater->first, inflater->first_len};
	enum layer_codec codec;

	inflater->chosen = true;
	if (inflater_recognizes(first, &codec))
		inflater->format = codec == LAYER_GZIP ? &inflate_gzip : &inflate_zstd;
	if (inflater->format)
		inflater->inflate = inflater->format->open(&inflater->counter);
	return first.len > 0 ? inflater_feed(inflater, first, err) : 0;
}

int inflater_write(struct inflater *inflater, struct str bytes, struct err *err)
{
	while (!inflater->chosen && bytes.len > 0) {
		inflater->first[inflater->first_len++] = bytes.ptr[0];
		bytes.ptr++;
		bytes.len--;
		if (inflater->first_len == INFLATER_FIRST && inflater_choose(inflater, err) < 0)
			return -1;
	}
	return bytes.len > 0 ? inflater_feed(inflater, bytes, err) : 0;
}

uint64_t inflater_behind(const struct inflater *inflater)
{
	return inflater->format ? inflater->format->behind(inflater->inflate) : 0;
}

int inflater_finish(struct inflater *inflater, struct err *err)
{
	if (!inflater->chosen && inflater_choose(inflater, err) < 0)
		return -1;
	return inflater->format ? inflater->format->finish(inflater->inflate, err) : 0;
}

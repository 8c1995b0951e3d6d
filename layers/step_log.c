/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_log.c - members of a record: logBytes; log, the hex of a blob's sha256
 * (absent when inline); logHex (absent when not, since a log may hold any
 * bytes and a JSON string may not).
 */
#include "layers/step_log.h"

#include "layers/base/hex.h"
#include "layers/text.h"

#include <assert.h>
#include <stdio.h>

static bool step_log_is_blob(const struct step_log *log)
{
	static const struct digest zero;

	return !digest_equal(&log->blob, &zero);
}

void step_log_format(const struct step_log *log, json_t *record)
{
	struct str inline_log = buf_str(&log->inline_log);
	char hex[2 * STEP_LOG_INLINE_MAX + 1];
	char text[DIGEST_HEX_MAX];

	assert(inline_log.len <= STEP_LOG_INLINE_MAX);
	json_set_size(record, "logBytes", log->size);
	if (step_log_is_blob(log))
		json_set_text(record, "log", digest_hex(&log->blob, text));
	if (inline_log.len > 0)
		json_set_text(record, "logHex", hex_encode(inline_log.ptr, inline_log.len, hex));
}

int step_log_parse(const json_t *record, struct step_log *out, struct err *err)
{
	struct str hex = {"", 0};
	struct str blob = {"", 0};
	char bytes[STEP_LOG_INLINE_MAX];
	char text[DIGEST_TEXT_MAX];
	int64_t size = 0;

	if (json_get_int(record, "", "logBytes", &size, err) < 0 ||
	    json_get_string(record, "", "log", &blob, err) < 0 ||
	    json_get_string(record, "", "logHex", &hex, err) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "sha256:" STR_FMT, STR_ARG(blob));
	out->size = (uint64_t)size;
	out->blob = (struct digest){0};
	if (blob.len > 0 && digest_parse(str_of(text), &out->blob, err) < 0)
		return -1;
	buf_clear(&out->inline_log);
	if (hex.len > 2 * sizeof(bytes) || !hex_decode(hex, bytes))
		return err_set(err, ERR_CORRUPT, "its log is damaged");
	return buf_add(&out->inline_log, (struct str){bytes, hex.len / 2}, err);
}

int step_log_copy(struct store *store, const struct step_log *log, struct sink *out,
		  struct err *err)
{
	if (!step_log_is_blob(log))
		return out->write(out, buf_str(&log->inline_log), err);
	if (text_copy(store, &log->blob, out, err) < 0)
		return err_ctx(err, "log");
	return 0;
}

void step_log_done(struct step_log *log)
{
	buf_done(&log->inline_log);
}

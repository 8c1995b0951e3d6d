/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/fault.h"

static bool fault_is_inside(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80; /* a character began before it */
}

/* The last bytes of a text of UTF-8, from the start of a character on. */
static struct str fault_end(struct str text)
{
	if (text.len > FAULT_TAIL_MAX)
		text = str_skip(text, text.len - FAULT_TAIL_MAX);
	else
		return text;
	while (text.len > 0 && fault_is_inside(text.ptr[0]))
		text = str_skip(text, 1);
	return text;
}

/* Cut twice, since mended UTF-8 is longer than it was. */
static json_t *fault_tail(struct str log)
{
	AUTO(json) json_t *mended = json_from_str(fault_end(log));
	struct str end = fault_end(json_str(mended));

	return json_stringn(end.ptr, end.len);
}

bool fault_is_passing(enum err_kind kind)
{
	static const enum err_kind passing[] = {ERR_REMOTE,   ERR_TIMEOUT,     ERR_FULL,
						ERR_BUSY,     ERR_UNAVAILABLE, ERR_CONFLICT,
						ERR_CANCELLED};

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		if (passing[i] == kind)
			return true;
	}
	return false;
}

json_t *fault_format(const struct fault *fault)
{
	json_t *value = json_object();

	json_set_text(value, "code", err_name(fault->kind));
	(void)json_object_set_new(value, "message", json_from_str(fault->message));
	if (fault->step > 0)
		json_set_size(value, "step", fault->step);
	if (fault->line > 0)
		json_set_size(value, "line", fault->line);
	if (fault->exit_code != 0)
		json_set_int(value, "exitCode", fault->exit_code);
	(void)json_object_set_new(value, "logTail", fault_tail(fault->log_tail));
	json_set_bool(value, "terminal", fault->terminal);
	return value;
}

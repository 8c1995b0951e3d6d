/* SPDX-License-Identifier: Apache-2.0 */
/* Property: a form that is refused without values is so with them, and quoting what came out keeps
 * it. */
#include "bake/expand.h"
#include "bake/state.h"

#define FUZZ_MAX ((size_t)64 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void quote(struct str text, struct buf *out, struct err *err)
{
	for (size_t i = 0; i < text.len; i++) {
		if (buf_addf(out, err, "\\%c", text.ptr[i]) < 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct platform platform = {"linux", "amd64", ""};
	struct str word = {(const char *)data, size};
	auto_state struct state state = {0};
	auto_buf struct buf bare = BUF_INIT(FUZZ_MAX);
	auto_buf struct buf full = BUF_INIT(FUZZ_MAX);
	auto_buf struct buf quoted = BUF_INIT(2 * FUZZ_MAX);
	auto_buf struct buf again = BUF_INIT(FUZZ_MAX);
	struct err err;
	int judged;

	if (size > 1024 || memchr(data, '\0', size))
		return 0;
	if (state_from_scratch(&platform, &state, &err) < 0 ||
	    state_set_env(&state, STR("A"), STR("a'\"\\$B"), &err) < 0)
		abort();
	judged = expand_word(word, NULL, &bare, &err);
	if (expand_word(word, &state, &full, &err) < 0)
		return 0;
	if (judged < 0)
		abort();
	quote(buf_str(&full), &quoted, &err);
	if (expand_word(buf_str(&quoted), &state, &again, &err) < 0 ||
	    !str_equal(buf_str(&full), buf_str(&again)))
		abort();
	return 0;
}

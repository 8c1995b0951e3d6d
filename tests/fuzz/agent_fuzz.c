/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: what is judged by HTTP's rules is judged by ours; its canonical
 * content is read back as the same, and names no slug that is none.
 */
#include "bake/agent_spec_priv.h"
#include "bake/canonical.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int judge(json_t *document, bool host_files, struct str *out_slug)
{
	struct agent_spec_rules rules = {.host_files = host_files};
	AUTO(json) json_t *warnings = json_array();
	struct agent_spec_found found;
	struct err err = {0};

	if (agent_spec_find(document, warnings, &found, &err) < 0)
		return -1;
	rules.path = found.path;
	if (agent_spec_check(found.agent, &rules, warnings, &err) < 0) {
		if (err.path[0] == '\0')
			abort();
		return -1;
	}
	*out_slug = json_str(json_object_get(found.agent, "slug"));
	return 0;
}

static void check_canonical(const json_t *document)
{
	auto_buf struct buf text = BUF_INIT((size_t)8 << 20);
	AUTO(json) json_t *again = NULL;
	struct digest first;
	struct digest second;
	struct err err;

	if (json_format(document, &text, &err) < 0 ||
	    canonical_digest(document, text.max, &first, &err) < 0 ||
	    json_parse(buf_str(&text), text.max, &again, &err) < 0 ||
	    canonical_digest(again, text.max, &second, &err) < 0 || !digest_equal(&first, &second))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(json) json_t *document = NULL;
	struct str slug = STR("");
	struct str same = STR("");
	struct err err;

	if (json_parse((struct str){(const char *)data, size}, (size_t)1 << 20, &document, &err) <
	    0)
		return 0;
	check_canonical(document);
	if (judge(document, false, &slug) < 0)
		return 0;
	if (judge(document, true, &same) < 0 || !agent_spec_is_slug(slug))
		abort();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/agent_tag.h"

#include "registry/holding.h"
#include "registry/hub.h"

#define AGENT_TAG_SHORT "library/" /* of docker.io: what short names become */

int agent_tag_format(struct str slug, struct str tag, struct buf *out, struct err *err)
{
	return buf_addf(out, err, HOLDING_HOST "/" STR_FMT ":" STR_FMT, STR_ARG(slug),
			STR_ARG(tag));
}

bool agent_tag_name(const struct reference *reference, struct buf *out)
{
	struct str tag = reference->tag.len > 0 ? reference->tag : STR("latest");
	struct err ignored;

	if (reference->kind != REFERENCE_REGISTRY || reference->has_digest ||
	    !str_equal(reference->host, STR(HUB_HOST)) ||
	    !str_starts(reference->path, STR(AGENT_TAG_SHORT)))
		return false;
	buf_clear(out);
	return agent_tag_format(str_skip(reference->path, strlen(AGENT_TAG_SHORT)), tag, out,
				&ignored) == 0;
}

int agent_tag_find(struct meta *meta, const struct reference *reference,
		   const struct platform *platform, struct buf *name, struct tag *out,
		   struct err *err)
{
	if (!agent_tag_name(reference, name))
		return 0;
	return tag_find(meta, buf_str(name), platform, out, err);
}

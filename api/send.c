/* SPDX-License-Identifier: Apache-2.0 */
#include "api/send.h"

#include "bake/publish.h"
#include "registry/holding.h"

#define SEND_NAMES_MAX ((size_t)256) /* of an error's text: the cause must have room */

int send_name(struct str text, struct buf *out, struct err *err)
{
	struct reference reference;

	if (reference_parse(text, &reference, err) < 0)
		return -1;
	if (reference.kind != REFERENCE_REGISTRY)
		return err_set(err, ERR_INVALID,
			       STR_FMT " is no registry's; expected HOST/NAME[:TAG]",
			       STR_ARG(text));
	if (str_equal(reference.host, STR(HOLDING_HOST)))
		return err_set(err, ERR_INVALID,
			       STR_FMT
			       " is a name of the daemon's registry: hearth tag gives it; for "
			       "another one expected HOST[:PORT]/NAME[:TAG]",
			       STR_ARG(text));
	return reference_format(&reference, out, err);
}

/* --plain-http is for all registries, the configuration's `insecure` for single ones. */
static bool send_is_plain(const struct send *send)
{
	struct reference reference;
	struct err ignored;

	return cli_has(send->cli, "plain-http") ||
	       (reference_parse(send->reference, &reference, &ignored) == 0 &&
		config_is_insecure(&send->cli->config, reference.host));
}

int send_image(const struct send *send, struct err *err)
{
	const struct asker asker = {
		.store = send->store,
		.worker_path = send->cli->puller_path,
		.cancel = send->cli->cancel,
	};
	const struct publish_request request = {
		.reference = send->reference,
		.manifest = send->image,
		.tags = send->tags,
		.tag_count = send->tag_count,
		.referrers = send->referrers,
		.referrer_count = send->referrer_count,
		.from = send->from,
		.plain_http = send_is_plain(send),
		.ca_file = cli_text(send->cli, "ca-file"),
		.user = str_of(send->credentials->user),
		.password = &send->credentials->password,
	};

	return publish_image(&asker, &request, progress_event, send->progress, err);
}

static int send_to_one(const struct send *send, struct str text, struct err *err)
{
	auto_buf struct buf canonical = BUF_INIT(REFERENCE_TEXT_MAX);
	auto_credentials struct credentials credentials = {0};
	struct send one = *send;

	if (send_name(text, &canonical, err) < 0)
		return -1;
	if (access_for(text, send->cli->cancel, &credentials, err) < 0)
		return err_ctx(err, "push %s", canonical.ptr);
	one.reference = buf_str(&canonical);
	one.credentials = &credentials;
	return send_image(&one, err);
}

int send_image_to_all(const struct send *send, const struct str *texts, size_t count,
		      struct err *err)
{
	auto_buf struct buf sent = BUF_INIT(SEND_NAMES_MAX);
	char digest[DIGEST_TEXT_MAX];
	struct err first = {0};
	struct err ignored;

	for (size_t i = 0; i < count && first.kind != ERR_CANCELLED; i++) {
		struct err why = {0};

		if (send_to_one(send, texts[i], &why) == 0)
			(void)!buf_addf(&sent, &ignored, "%s" STR_FMT, sent.len ? ", " : "",
					STR_ARG(texts[i]));
		else if (first.kind == ERR_NONE || why.kind == ERR_CANCELLED)
			first = why;
	}
	if (first.kind == ERR_NONE)
		return 0;
	*err = first;
	return err_ctx(err, "%s is pushed to %s", digest_format(&send->image, digest),
		       sent.len > 0 ? sent.ptr : "no registry");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/delivery.h"

#include "api/access.h"
#include "bake/publish.h"

/* Nobody watches. */
static void delivery_hear(void *ctx, const struct bake_event *event)
{
	(void)ctx, (void)event;
}

int delivery_push(void *ctx, struct str reference, const struct digest *image,
		  const struct cancel *cancel, struct err *err)
{
	const struct delivery *delivery = ctx;
	const struct asker asker = {
		.store = delivery->store,
		.worker_path = delivery->cli->puller_path,
		.cancel = cancel,
	};
	struct publish_request request = {.reference = reference, .manifest = *image};
	auto_credentials struct credentials credentials = {0};
	struct reference parsed;

	if (reference_parse(reference, &parsed, err) < 0 ||
	    access_for(reference, cancel, &credentials, err) < 0)
		return -1;
	request.plain_http = config_is_insecure(&delivery->cli->config, parsed.host);
	request.user = str_of(credentials.user);
	request.password = &credentials.password;
	return publish_image(&asker, &request, delivery_hear, NULL, err);
}

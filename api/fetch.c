/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fetch.h"

#include "layers/digest_json.h"

#include <fcntl.h>
#include <unistd.h>

static void fetch_hear(void *ctx, const json_t *progress)
{
	struct bake_event event = {.kind = BAKE_PULL};
	struct digest digest;

	if (base_read_progress(progress, &digest, &event) && !str_equal(event.text, STR("named")))
		progress_event(ctx, &event);
}

static int fetch_show_end(struct progress *progress, const json_t *answer, struct err *err)
{
	struct bake_event event = {.kind = BAKE_BASE_DONE};
	struct digest digest;

	if (digest_json_need(answer, "", "manifest", &digest, err) < 0)
		return -1;
	event.digest = &digest;
	progress_event(progress, &event);
	return 0;
}

int fetch_image(const struct cli *cli, struct store *store, struct progress *progress,
		const struct base_request *request, json_t **out, struct err *err)
{
	struct bake_event event = {.kind = BAKE_BASE, .text = request->reference};
	AUTO(json) json_t *json = base_request_format(store, request);
	AUTO(json) json_t *answer = NULL;
	auto_close int streamfd = -1;
	struct asker asker = {
		.store = store,
		.worker_path = cli->puller_path,
		.progress = fetch_hear,
		.ctx = progress,
		.cancel = cli->cancel,
	};

	if (request->stream) {
		streamfd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		if (streamfd < 0)
			return err_set(err, ERR_NOT_FOUND, "there is no standard input");
		asker.streamfd = streamfd;
	}
	progress_event(progress, &event);
	if (asker_call(&asker, "pull", json, &answer, err) < 0 ||
	    fetch_show_end(progress, answer, err) < 0)
		return -1;
	*out = steal_ptr(&answer);
	return 0;
}

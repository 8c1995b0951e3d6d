/* SPDX-License-Identifier: Apache-2.0 */
/* work_convert.c - the role that makes blobs of the other codec. */
#include "bake/convert_request.h"
#include "bake/wire.h"
#include "bake/work.h"
#include "layers/base/thread.h"
#include "layers/lease.h"
#include "registry/convert.h"

#include <poll.h>

struct convert_work {
	json_t *request; /* owned */
	struct store *store;
	struct lease *lease;
	enum layer_codec codec;
	struct cancel cancel;
	struct cancel ended; /* tells the watcher to go */
};

/* An asker that says anything, or is gone, has left. */
static void *work_watch(void *ctx)
{
	struct convert_work *work = ctx;
	struct pollfd fds[] = {{.fd = WORK_FD_ASKER, .events = POLLIN},
			       {.fd = cancel_fd(&work->ended), .events = POLLIN}};

	while (poll(fds, 2, -1) < 0)
		continue;
	if (fds[0].revents)
		cancel_raise(&work->cancel);
	return NULL;
}

static int work_open(struct convert_work *work, struct err *err)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	struct store_options options = {0};
	struct str path;
	struct str codec;
	int64_t map_bytes;

	if (work_receive(&payload, err) < 0 ||
	    json_parse(buf_str(&payload), WIRE_PAYLOAD_MAX, &work->request, err) < 0 ||
	    json_need_string(work->request, "", "store", &path, err) < 0 ||
	    json_need_int(work->request, "", "mapBytes", &map_bytes, err) < 0 ||
	    json_need_string(work->request, "", "codec", &codec, err) < 0 ||
	    layer_codec_parse(codec, &work->codec, err) < 0)
		return -1;
	options.path = path.ptr;
	options.map_bytes = (uint64_t)map_bytes;
	if (store_open(&options, &work->store, err) < 0 ||
	    lease_open(work->store, &work->lease, err) < 0)
		return -1;
	return lease_rest(work->lease, err);
}

static int work_layers(struct convert_work *work, struct err *err)
{
	json_t *layers;
	json_t *item;
	size_t i;

	if (json_need_array(work->request, "", "layers", &layers, err) < 0)
		return -1;
	json_array_foreach(layers, i, item)
	{
		struct variant_source source;
		struct variant variant;

		if (convert_layer_parse(item, &source, err) < 0)
			return -1;
		source.cancel = &work->cancel;
		if (lease_add(work->lease, &source.blob, err) < 0 ||
		    lease_add(work->lease, &source.diff_id, err) < 0)
			return -1;
		if (variant_make(work->store, &source, work->codec, &variant, err) < 0)
			return -1;
	}
	return 0;
}

static int work_image(struct convert_work *work, json_t *answer, struct err *err)
{
	char text[DIGEST_TEXT_MAX];
	struct digest digest;
	struct str name;

	if (json_need_string(work->request, "", "manifest", &name, err) < 0 ||
	    digest_parse(name, &digest, err) < 0 || lease_add(work->lease, &digest, err) < 0 ||
	    convert_image(work->store, &digest, work->codec, &work->cancel, &digest, err) < 0)
		return -1;
	(void)json_object_set_new(answer, "manifest", json_string(digest_format(&digest, text)));
	return 0;
}

static int work_watched(struct convert_work *work, json_t *answer, struct err *err)
{
	pthread_t watcher;
	int result;

	if (thread_start(&watcher, work_watch, work, err) < 0)
		return -1;
	result = json_object_get(work->request, "manifest") ? work_image(work, answer, err)
							    : work_layers(work, err);
	cancel_raise(&work->ended);
	(void)pthread_join(watcher, NULL);
	return result;
}

int work_convert(void)
{
	struct convert_work work = {0};
	AUTO(json) json_t *answer = json_object();
	struct err err = {0};
	struct err gone;
	int result = -1;

	if (cancel_init(&work.cancel, &err) == 0 && cancel_init(&work.ended, &err) == 0 &&
	    work_open(&work, &err) == 0)
		result = work_watched(&work, answer, &err);
	if (result < 0) {
		json_decref(answer);
		answer = wire_error(&err, 0);
	}

	lease_close(work.lease);
	store_close(work.store);
	json_decref(work.request);
	if (wire_send_json(WORK_FD_ASKER, result == 0 ? WIRE_RESULT : WIRE_ERROR, answer, &gone) <
	    0)
		return 1;
	return result == 0 ? 0 : 1;
}

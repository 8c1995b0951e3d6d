/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/work_log_priv.h"

#include "layers/base/clock.h"
#include "layers/failure.h"
#include "layers/layer.h"

#define LOG_KEY_SHOWN 12 /* hex digits that tell one failed step from another */

static int log_store(struct store *store, const struct spool *spool, struct digest *out,
		     struct err *err)
{
	AUTO(layer_writer) struct layer_writer *writer = NULL;
	struct layer_info info;

	if (layer_writer_open(store, LAYER_ZSTD, &writer, err) < 0 ||
	    spool_copy(spool, layer_writer_sink(writer), err) < 0 ||
	    layer_writer_finish(writer, &info, err) < 0)
		return -1;
	*out = info.blob;
	return 0;
}

int work_log_keep(struct store *store, struct hub *hub, struct step_log *out, struct err *err)
{
	struct buf_sink inline_log = BUF_SINK(&out->inline_log);
	const struct spool *spool;

	if (hub_end_log(hub, &spool, err) < 0)
		return -1;
	out->size = spool_kept(spool);
	if (out->size <= STEP_LOG_INLINE_MAX)
		return spool_copy(spool, &inline_log.sink, err);
	return log_store(store, spool, &out->blob, err) < 0 ? err_ctx(err, "keep the log") : 0;
}

static int log_put_failure(struct store *store, const struct failure *failure, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (meta_begin(store, META_WRITE, &meta, err) < 0 || failure_put(meta, failure, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

void work_log_keep_failure(struct store *store, struct hub *hub, const struct digest *key,
			   struct err *why)
{
	auto_failure struct failure failure = FAILURE_INIT;
	const struct err cause = *why;
	char hex[DIGEST_HEX_MAX];
	struct err ignored; /* the step's own failure is what counts */

	failure.key = *key;
	failure.at_ms = clock_now_ms();
	if (work_log_keep(store, hub, &failure.log, &ignored) < 0 || failure.log.size == 0 ||
	    log_put_failure(store, &failure, &ignored) < 0)
		return;
	(void)err_set(why, cause.kind, "%s; hearth logs %.*s shows all that it wrote", cause.text,
		      LOG_KEY_SHOWN, digest_hex(&failure.key, hex));
	why->os = cause.os;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context_place.c
 *
 *	thread: directory -> tar -> pipe        role `call`: pipe -> daemon
 *
 * Whoever ends first closes its end, and the other hears that.
 */
#include "api/context_place.h"

#include "api/call.h"
#include "api/context_arg.h"
#include "api/settings.h"
#include "layers/base/thread.h"
#include "layers/digest_json.h"

#include <fcntl.h>

struct context_pack {
	struct sink sink;
	const struct cancel *cancel;
	int dirfd;
	int pipefd;  /* owned by the thread */
	bool failed; /* read after the join, as the next */
	struct err why;
};

static int context_pack_write(struct sink *sink, struct str bytes, struct err *err)
{
	const struct context_pack *pack = container_of(sink, struct context_pack, sink);

	return fd_write_all(pack->pipefd, bytes.ptr, bytes.len, err);
}

static void *context_pack_run(void *ctx)
{
	struct context_pack *pack = ctx;

	pack->failed = tarball_pack_to(pack->dirfd, pack->cancel, &pack->sink, &pack->why) < 0;
	auto_close_release(&pack->pipefd);
	return NULL;
}

static int context_send_stream(const struct cli *cli, int fd, struct digest *out, struct err *err)
{
	const struct call_spec call = {.method = "contexts.put", .streamfd = fd};
	AUTO(json) json_t *answer = NULL;

	if (call_daemon(cli, &call, &answer, err) < 0)
		return -1;
	return digest_json_need(answer, "", "digest", out, err);
}

/* What could not be packed goes before what the daemon made of the rest. */
static int context_send_packed(const struct cli *cli, int dirfd, struct digest *out,
			       struct err *err)
{
	struct context_pack pack = {
		.sink.write = context_pack_write, .cancel = cli->cancel, .dirfd = dirfd};
	pthread_t thread;
	int ends[2];
	int sent;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_os(err, errno, "make a pipe");
	pack.pipefd = ends[1];
	if (thread_start(&thread, context_pack_run, &pack, err) < 0) {
		auto_close_release(&ends[0]);
		auto_close_release(&ends[1]);
		return -1;
	}
	sent = context_send_stream(cli, ends[0], out, err);
	auto_close_release(&ends[0]);
	(void)pthread_join(thread, NULL);
	if (!pack.failed || (sent < 0 && pack.why.os == EPIPE))
		return sent;
	*err = pack.why;
	return -1;
}

static int context_send(const struct cli *cli, const char *text, struct digest *out,
			struct err *err)
{
	auto_close int fd = -1;
	bool is_dir;

	if (context_arg_open_source(text, &fd, &is_dir, err) < 0)
		return -1;
	return is_dir ? context_send_packed(cli, fd, out, err)
		      : context_send_stream(cli, fd, out, err);
}

int context_place(const struct cli *cli, const char *text, struct digest *out, struct err *err)
{
	AUTO(store) struct store *store = NULL;
	const char *url = NULL;
	const char *token = NULL;

	if (settings_daemon(&url, &token, err) < 0)
		return -1;
	if (url)
		return context_send(cli, text, out, err);
	if (cli_open_store(cli, &store, err) < 0)
		return -1;
	return context_arg_put(cli, store, text, out, err);
}

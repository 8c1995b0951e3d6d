/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.c - the program `hearth-daemon`, which `hearth serve` becomes.
 *
 *	1 the store is opened, and run/daemon locked: one daemon a data directory
 *	2 admin.token is made, where it is the first start
 *	3 what the queue has left to do is taken up (plane.h)
 *	4 the socket and the address are listened on; systemd hears READY
 *	5 requests are answered, until SIGTERM, SIGINT or SIGHUP
 *	6 no more are taken; who waits is answered; what runs may end until the
 *	  grace time is over, and bakes that do not are put back into the queue
 */
#include "api/daemon.h"

#include "api/admin_token.h"
#include "api/door.h"
#include "api/listen.h"
#include "api/notify.h"
#include "api/process.h"
#include "api/ready.h"
#include "api/routes.h"
#include "api/settings.h"
#include "api/upstreams.h"
#include "layers/base/hold.h"
#define LOG_MODULE "api"
#include "layers/base/log.h"
#include "layers/base/thread.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#define DAEMON_LOCK "daemon"
#define DAEMON_SOCKET "hearth.sock"
#define DAEMON_GRACE_S 30
#define DAEMON_MIRRORS_MAX (SERVER_LISTENERS_MAX - 2) /* beside the socket and the address */
#define DAEMON_GRACE_MAX_S 3600
#define DAEMON_THREADS_MAX ((size_t)8)  /* that serve connections */
#define DAEMON_FILES_KEPT ((rlim_t)256) /* descriptors that are no connections */
#define DAEMON_FILES_SHARE 4            /* of few, what a listener's connections may take */
#define DAEMON_PEM_MAX ((size_t)1024 * 1024)
#define DAEMON_INFO_MAX ((size_t)64 * 1024)
#define DAEMON_ARENAS 2                      /* a thread more needs no heap more */
#define DAEMON_MMAP_BYTES (2 * 1024 * 1024)  /* what bodies pass through is in the heap, */
#define DAEMON_HEAP_BYTES (32 * 1024 * 1024) /* and used again, until upkeep.c gives it back */

static struct cancel daemon_stop; /* a signal handler has no other way to reach it */

static void daemon_on_signal(int number)
{
	(void)number;
	cancel_raise(&daemon_stop);
}

static int daemon_catch_signals(struct err *err)
{
	struct sigaction action = {.sa_handler = daemon_on_signal, .sa_flags = (int)SA_RESETHAND};

	if (cancel_init(&daemon_stop, err) < 0)
		return -1;
	if (sigaction(SIGINT, &action, NULL) < 0 || sigaction(SIGTERM, &action, NULL) < 0 ||
	    sigaction(SIGHUP, &action, NULL) < 0)
		return err_os(err, errno, "catch signals");
	return 0;
}

static int daemon_lock(struct store *store, int *out_fd, struct err *err)
{
	int runfd = store_dirfd(store, STORE_RUN);
	auto_close int made = openat(runfd, DAEMON_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int held;

	if (made < 0)
		return err_os(err, errno, "make run/" DAEMON_LOCK);
	held = hold_try(runfd, DAEMON_LOCK, out_fd, err);
	if (held == 0)
		return err_set(err, ERR_CONFLICT,
			       "another daemon serves %s; stop it first, or give this one another "
			       "--data",
			       store_path(store));
	return held < 0 ? -1 : 0;
}

static int daemon_read_file(const char *path, struct buf *out, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_os(err, errno, "open %s", path);
	return fd_read_all(fd, out, err) < 0 ? err_ctx(err, "%s", path) : 0;
}

static int daemon_listen_socket(struct daemon *daemon, struct err *err)
{
	struct server_listener listener = {.by_socket = true, .threads = 1};

	listener.fd = listen_unix(store_dirfd(daemon->store, STORE_RUN), DAEMON_SOCKET, err);
	if (listener.fd < 0)
		return -1;
	return server_listen(daemon->server, &listener, err);
}

static int daemon_listen_at(struct daemon *daemon, struct server_listener *listener,
			    const char *text, struct err *err)
{
	char where[LISTEN_TEXT_MAX];

	listener->fd = listen_tcp(text, where, err);
	if (listener->fd < 0 || server_listen(daemon->server, listener, err) < 0)
		return -1;
	if (listener->name)
		log_info("mirror has an address upstream=%s at=%s://%s", listener->name,
			 listener->tls_cert ? "https" : "http", where);
	else
		log_info("listening url=%s://%s data=%s pid=%d",
			 listener->tls_cert ? "https" : "http", where, store_path(daemon->store),
			 (int)getpid());
	return 0;
}

/* The addresses of upstreams, by which they need not be named. */
static int daemon_listen_for_upstreams(struct daemon *daemon, struct server_listener *listener,
				       struct err *err)
{
	const struct config *config = &daemon->cli->config;
	size_t count = 0;

	for (size_t i = 0; i < config->upstream_count; i++) {
		const struct config_upstream *upstream = &config->upstreams[i];

		if (!upstream->listen)
			continue;
		if (++count > DAEMON_MIRRORS_MAX)
			return err_set(err, ERR_LIMIT, "more than %d upstreams with an address",
				       DAEMON_MIRRORS_MAX);
		listener->name = upstream->host;
		if (daemon_listen_at(daemon, listener, upstream->listen, err) < 0)
			return err_ctx(err, "mirror of %s", upstream->host);
	}
	return 0;
}

static int daemon_listen_addresses(struct daemon *daemon, struct err *err)
{
	const struct config *config = &daemon->cli->config;
	const char *text = cli_text(daemon->cli, "listen");
	auto_buf struct buf cert = BUF_INIT(DAEMON_PEM_MAX);
	auto_buf struct buf key = BUF_WIPED(DAEMON_PEM_MAX);
	struct server_listener listener = {.threads = (unsigned)thread_cores(DAEMON_THREADS_MAX)};

	if (config->tls_cert) {
		if (daemon_read_file(config->tls_cert, &cert, err) < 0 ||
		    daemon_read_file(config->tls_key, &key, err) < 0)
			return err_ctx(err, "tls");
		listener.tls_cert = buf_str(&cert).ptr;
		listener.tls_key = buf_str(&key).ptr;
	}
	if (!text)
		text = config->listen ? config->listen : LISTEN_DEFAULT;
	if (daemon_listen_for_upstreams(daemon, &listener, err) < 0)
		return -1;
	listener.name = NULL;
	return daemon_listen_at(daemon, &listener, text, err);
}

/* What --host says: names, beside its addresses, that a request may call it by. */
static int daemon_name_hosts(struct daemon *daemon, struct err *err)
{
	struct cli_value given = cli_list(daemon->cli, "host");

	if (given.count > DAEMON_HOSTS_MAX)
		return err_set(err, ERR_LIMIT, "--host was given more than %zu times",
			       DAEMON_HOSTS_MAX);
	for (size_t i = 0; i < given.count; i++)
		daemon->hosts[daemon->host_count++] = given.at[i];
	return 0;
}

static int daemon_grace(const struct cli *cli, int64_t *out_ms, struct err *err)
{
	const char *text = cli_text(cli, "grace");
	uint64_t seconds = DAEMON_GRACE_S;

	if (text && (!str_parse_number(str_of(text), &seconds) || seconds > DAEMON_GRACE_MAX_S))
		return err_set(err, ERR_INVALID, "--grace %s: expected 0 to %d seconds", text,
			       DAEMON_GRACE_MAX_S);
	*out_ms = (int64_t)seconds * 1000;
	return 0;
}

static void daemon_notify(const char *text)
{
	struct err err;

	if (notify_send(settings_notify_socket(), text, &err) < 0)
		log_warn("service manager not told why=\"%s\"", err.text);
}

static void daemon_await_stop(void)
{
	struct pollfd stop = {.fd = cancel_fd(&daemon_stop), .events = POLLIN};

	while (!cancel_is_raised(&daemon_stop))
		(void)poll(&stop, 1, -1);
}

/* 4 to 6. */
static int daemon_serve(struct daemon *daemon, int64_t grace_ms, struct err *err)
{
	int64_t end_ms;
	size_t left;

	if (daemon_listen_socket(daemon, err) < 0 || daemon_listen_addresses(daemon, err) < 0)
		return -1;
	daemon_notify("READY=1\nSTATUS=serving");
	daemon_await_stop();
	daemon_notify("STOPPING=1");
	(void)unlinkat(store_dirfd(daemon->store, STORE_RUN), DAEMON_SOCKET, 0);
	log_info("stopping");
	end_ms = clock_monotonic_ms() + grace_ms;
	if (server_drain(daemon->server, grace_ms)) {
		gzipper_stop(daemon->gzipper);
		plane_stop(daemon->plane, end_ms - clock_monotonic_ms());
		mirror_close(daemon->v2.mirror);
		log_info("stopped");
		return 0;
	}
	left = server_load(daemon->server).requests;
	return err_set(err, ERR_TIMEOUT, "%zu requests were cut: they took more than %lld ms", left,
		       (long long)grace_ms);
}

static void daemon_wake(void *ctx, uint64_t topic)
{
	server_wake(ctx, topic);
}

static int daemon_start_gzipper(struct daemon *daemon, struct err *err)
{
	const struct gzipper_options options = {.store = daemon->store,
						.worker_path = daemon->cli->worker_path,
						.wake = daemon_wake,
						.wake_ctx = daemon->server};

	if (gzipper_start(&options, &daemon->gzipper, err) < 0)
		return -1;
	daemon->v2.make_gzip = gzipper_make;
	daemon->v2.make_gzip_ctx = daemon->gzipper;
	return 0;
}

static int daemon_metrics(void *ctx, struct buf *page, struct err *err)
{
	const struct daemon *daemon = ctx;
	struct server_load load = server_load(daemon->server);
	struct uploads_load uploads = uploads_load(daemon->v2.uploads);
	const struct metric_sample samples[] = {
		{"hearth_connections", "", "gauge", "Open connections.", load.connections},
		{"hearth_requests_open", "", "gauge", "Requests not answered yet.", load.requests},
		{"hearth_requests_waiting", "", "gauge", "Of these: that wait for a change.",
		 load.waiting},
		{"hearth_gzip_variants_total", "", "counter",
		 "Variants made for old clients, since the start.", gzipper_count(daemon->gzipper)},
		{"hearth_uploads", "", "gauge", "Upload sessions that are open.", uploads.sessions},
		{"hearth_uploads_bytes", "", "gauge", "What came in them so far.", uploads.bytes},
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		if (metrics_value(page, &samples[i], err) < 0)
			return -1;
	}
	return 0;
}

static unsigned daemon_connections(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 ||
	    files.rlim_cur >= SERVER_CONNECTIONS_MAX + DAEMON_FILES_KEPT)
		return SERVER_CONNECTIONS_MAX;
	if (files.rlim_cur < 2 * DAEMON_FILES_KEPT)
		return (unsigned)(files.rlim_cur / DAEMON_FILES_SHARE);
	return (unsigned)(files.rlim_cur - DAEMON_FILES_KEPT);
}

static int daemon_make_room(void *ctx, struct err *err)
{
	const struct daemon *daemon = ctx;

	return gc_make_more_room(daemon->store, &daemon->cli->config.gc, &daemon_stop, err);
}

static int daemon_open_registry(struct daemon *daemon, struct err *err)
{
	const struct uploads_options uploads = {
		.store = daemon->store, .make_room = daemon_make_room, .ctx = daemon};

	daemon->v2 = (struct v2){.store = daemon->store, .recall = v2_recall_new()};
	if (uploads_open(&uploads, &daemon->v2.uploads, err) < 0)
		return -1;
	return uploads_expire(daemon->v2.uploads, UPLOADS_IDLE_MS, err) < 0 ? -1 : 0;
}

/* 1 and 2, and what a request looks at first. */
static int daemon_open(struct daemon *daemon, int *out_lockfd, struct err *err)
{
	if (cli_open_store(daemon->cli, &daemon->store, err) < 0 ||
	    daemon_lock(daemon->store, out_lockfd, err) < 0 ||
	    admin_token_ensure(daemon->store, err) < 0 || daemon_open_registry(daemon, err) < 0)
		return -1;
	daemon->auth = auth_new(daemon->store);
	daemon->metrics = metrics_new();
	metrics_add_source(daemon->metrics, daemon_metrics, daemon);
	metrics_add_source(daemon->metrics, ready_metrics, daemon->store);
	metrics_add_source(daemon->metrics, plane_metrics, daemon->plane);
	return routes_server_make_info(daemon, &daemon->info, err);
}

/* 3, and all else that runs behind the requests. */
static int daemon_start(struct daemon *daemon, struct door *door, struct err *err)
{
	const struct server_options options = {.handler = &door->handler,
					       .connections_max = daemon_connections()};

	if (server_new(&options, &daemon->server, err) < 0 ||
	    upstreams_open(daemon->cli, daemon->store, daemon->server,
			   uploads_vacancy(daemon->v2.uploads), &daemon->v2.mirror, err) < 0 ||
	    daemon_start_gzipper(daemon, err) < 0 ||
	    plane_start(daemon->plane, daemon->cli, daemon->store, daemon->server, &daemon->v2,
			err) < 0)
		return -1;
	if (daemon->v2.mirror)
		metrics_add_source(daemon->metrics, upstreams_metrics, daemon->v2.mirror);
	return 0;
}

static void daemon_close(struct daemon *daemon)
{
	server_free(daemon->server);
	uploads_close(daemon->v2.uploads);
	metrics_free(daemon->metrics);
	auth_free(daemon->auth);
	v2_recall_free(daemon->v2.recall);
	buf_done(&daemon->info);
	store_close(daemon->store);
}

static int daemon_run(struct cli *cli, struct err *err)
{
	struct plane plane;
	struct daemon daemon = {
		.cli = cli,
		.plane = &plane,
		.info = BUF_INIT(DAEMON_INFO_MAX),
		.started_ms = clock_now_ms(),
		.version = HEARTH_VERSION,
	};
	struct door door;
	auto_close int lockfd = -1;
	int64_t grace_ms;

	door_init(&door, &daemon, routes_all);
	if (daemon_grace(cli, &grace_ms, err) < 0 || daemon_name_hosts(&daemon, err) < 0 ||
	    daemon_open(&daemon, &lockfd, err) < 0 || daemon_start(&daemon, &door, err) < 0 ||
	    daemon_serve(&daemon, grace_ms, err) < 0)
		return -1; /* threads may be at all of it: the process ends */
	daemon_close(&daemon);
	return 0;
}

static int daemon_main(int argc, char **argv, struct err *err)
{
	struct cli cli = {.command = &cli_serve, .cancel = &daemon_stop};
	int result = -1;

	if (process_begin(err) < 0 || daemon_catch_signals(err) < 0)
		return -1;
	(void)mallopt(M_ARENA_MAX, DAEMON_ARENAS);
	(void)mallopt(M_MMAP_THRESHOLD, DAEMON_MMAP_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, DAEMON_HEAP_BYTES);
	json_wipe_released(); /* a new token passes through documents */
	if (cli_parse(&cli, argc - 1, argv + 1, err) == 0 && settings_load(&cli, err) == 0)
		result = daemon_run(&cli, err);
	if (result == 0)
		cli_done(&cli);
	return result;
}

int main(int argc, char **argv)
{
	struct err err = {0};

	if (daemon_main(argc, argv, &err) == 0)
		return 0;
	(void)fprintf(stderr, "hearth: %s\n", err.text);
	_exit(err_exit_code(err.kind)); /* threads may still run, and what they use must stay */
}

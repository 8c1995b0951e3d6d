/* SPDX-License-Identifier: Apache-2.0 */
#include "api/exchange_priv.h"

#define LOG_MODULE "api"
#include "layers/base/log.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define SERVER_INCREMENT ((size_t)4096) /* by which a connection's memory is taken */
#define SERVER_STALL_S 75u              /* of a client that neither reads nor writes */

static void server_hear(void *cls, const char *format, va_list ap) PRINTF(2, 0);
static void server_hear(void *cls, const char *format, va_list ap)
{
	struct server *server = cls;
	char said[sizeof(server->said)];

	(void)vsnprintf(said, sizeof(said), format, ap);
	said[strcspn(said, "\n")] = '\0';
	lock_take(&server->lock);
	if (!server->said[0])
		memcpy(server->said, said, sizeof(said));
	lock_drop(&server->lock);
	log_debug("libmicrohttpd said=\"%s\"", said);
}

/*
 * MHD_quiesce_daemon() would do that, too, but of 0.9.75 its threads may race
 * with it for who takes the listener out of their sets, and then abort.
 */
static enum MHD_Result server_accept(void *cls, const struct sockaddr *from, socklen_t len)
{
	struct server *server = cls;

	(void)from;
	(void)len;
	return atomic_load(&server->draining) ? MHD_NO : MHD_YES;
}

/* It does not say whether it is of the path or of the query, which are decoded differently. */
static size_t server_keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
	(void)cls;
	(void)connection;
	return strlen(text);
}

int server_new(const struct server_options *options, struct server **out, struct err *err)
{
	static const struct watch_calls calls = {exchange_suspend, exchange_resume};
	struct server *server = calloc(1, sizeof(*server));
	struct server_options *own;
	pthread_condattr_t attr;

	if (!server)
		abort();
	own = &server->options;
	*own = *options;
	own->connections_max = own->connections_max ? own->connections_max : SERVER_CONNECTIONS_MAX;
	own->header_ms = own->header_ms ? own->header_ms : SERVER_HEADER_MS;
	own->body_ms = own->body_ms ? own->body_ms : SERVER_BODY_MS;
	own->idle_ms = own->idle_ms ? own->idle_ms : SERVER_IDLE_MS;
	server->lock = (struct lock)LOCK_INIT;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&server->quiet, &attr);
	(void)pthread_condattr_destroy(&attr);
	server->pool = pool_new(SERVER_JOBS_MAX, SERVER_JOBS_WAITING_MAX);
	server->body_pool = pool_new(SERVER_BODIES_MAX, SERVER_BODIES_WAITING_MAX);
	server->stream_pool = pool_new(SERVER_STREAM_THREADS, SERVER_STREAMS_WAITING_MAX);
	if (watch_start(&calls, &server->watch, err) < 0) {
		server_free(server);
		return -1;
	}
	*out = server;
	return 0;
}

static struct MHD_Daemon *server_start(struct server *server, struct server_door *door,
				       const struct server_listener *listener)
{
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, drop_const(listener->tls_cert)},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, drop_const(listener->tls_key)},
		{MHD_OPTION_END, 0, NULL},
	};
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
			 MHD_USE_ERROR_LOG;

	if (!listener->tls_cert)
		tls[0].option = MHD_OPTION_END;
	else
		flags |= MHD_USE_TLS;
	server->said[0] = '\0';
	/* libmicrohttpd refuses a pool of one thread. */
	return MHD_start_daemon(
		flags, 0, server_accept, server, exchange_handle, door, MHD_OPTION_EXTERNAL_LOGGER,
		server_hear, server, MHD_OPTION_LISTEN_SOCKET, listener->fd,
		MHD_OPTION_THREAD_POOL_SIZE, listener->threads > 1 ? listener->threads : 0u,
		MHD_OPTION_CONNECTION_LIMIT, server->options.connections_max,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, SERVER_CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_MEMORY_INCREMENT, SERVER_INCREMENT,
		MHD_OPTION_CONNECTION_TIMEOUT, SERVER_STALL_S, MHD_OPTION_NOTIFY_COMPLETED,
		exchange_completed, door, MHD_OPTION_NOTIFY_CONNECTION, exchange_connected, door,
		MHD_OPTION_UNESCAPE_CALLBACK, server_keep_escapes, NULL,
		MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

int server_listen(struct server *server, struct server_listener *listener, struct err *err)
{
	auto_close int fd = steal_fd(&listener->fd);
	struct server_door *door = &server->doors[server->door_count];
	sigset_t all;
	sigset_t before;

	assert(server->door_count < SERVER_LISTENERS_MAX);
	*door = (struct server_door){
		.server = server, .by_socket = listener->by_socket, .name = listener->name};
	listener->fd = fd;
	/* Signals are the main thread's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	door->daemon = server_start(server, door, listener);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	listener->fd = -1;
	if (!door->daemon)
		return err_set(err, ERR_UNSUPPORTED, "serve HTTP: %s",
			       server->said[0] ? server->said : "libmicrohttpd does not start");
	(void)steal_fd(&fd); /* libmicrohttpd's, which closes it */
	server->door_count++;
	return 0;
}

void server_wake(struct server *server, uint64_t topic)
{
	watch_wake(server->watch, topic);
}

/* Whether all requests were answered by the deadline. */
static bool server_await_quiet(struct server *server, int64_t timeout_ms)
{
	struct timespec until;
	int late = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += timeout_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	lock_take(&server->lock);
	while (atomic_load(&server->requests) > 0 && late == 0)
		late = pthread_cond_timedwait(&server->quiet, &server->lock.os, &until);
	lock_drop(&server->lock);
	return late == 0;
}

bool server_drain(struct server *server, int64_t timeout_ms)
{
	atomic_store(&server->draining, true);
	watch_end_waiting(server->watch);
	if (server_await_quiet(server, timeout_ms / 2))
		return true;
	watch_cut_slow(server->watch);
	return server_await_quiet(server, timeout_ms - timeout_ms / 2);
}

void server_free(struct server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < server->door_count; i++)
		MHD_stop_daemon(server->doors[i].daemon);
	pool_free(server->pool);
	pool_free(server->body_pool);
	pool_free(server->stream_pool);
	watch_stop(server->watch);
	(void)pthread_cond_destroy(&server->quiet);
	free(server);
}

struct server_load server_load(struct server *server)
{
	return (struct server_load){
		.connections = watch_links(server->watch),
		.requests = atomic_load(&server->requests),
		.waiting = watch_waiting(server->watch),
	};
}

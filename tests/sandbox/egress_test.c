/* SPDX-License-Identifier: Apache-2.0 */
/* What passes through the egress loop arrives whole, and as it was sent. */
#include "layers/base/clock.h"
#include "layers/digest.h"
#include "tests/check.h"
#include "tests/sandbox/world.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

#define CHUNK ((size_t)256 * 1024)
#define LARGE ((size_t)100 * 1000 * 1000)
#define MEDIUM ((size_t)8 * 1024 * 1024)

/* Bytes that differ everywhere, so that what is lost or swapped shows. */
static void fill(uint32_t *seed, void *bytes, size_t len)
{
	uint32_t *words = bytes;

	for (size_t i = 0; i < len / sizeof(*words); i++) {
		*seed = *seed * 1664525 + 1013904223;
		words[i] = *seed;
	}
}

static bool send_stream(int fd, size_t len, struct digest *out)
{
	auto_free char *chunk = malloc(CHUNK);
	struct hasher hasher;
	uint32_t seed = 42;
	bool ok = true;

	hasher_init(&hasher);
	while (ok && len > 0) {
		size_t n = len < CHUNK ? len : CHUNK;

		fill(&seed, chunk, n);
		hasher_add(&hasher, (struct str){chunk, n});
		ok = world_write_all(fd, chunk, n);
		len -= n;
	}
	hasher_final(&hasher, out);
	hasher_done(&hasher);
	return ok;
}

/* Until the end. Returns how much came, or 0 when it ended by a reset. */
static size_t receive_stream(int fd, struct digest *out)
{
	auto_free char *chunk = malloc(CHUNK);
	struct hasher hasher;
	size_t total = 0;
	ssize_t n;

	hasher_init(&hasher);
	while ((n = recv(fd, chunk, CHUNK, 0)) > 0) {
		hasher_add(&hasher, (struct str){chunk, (size_t)n});
		total += (size_t)n;
	}
	hasher_final(&hasher, out);
	hasher_done(&hasher);
	return n < 0 ? 0 : total;
}

/* A client's side of a test, and what it saw. */
struct visit {
	const char *name;
	in_port_t port;
	size_t len;
	struct digest digest; /* of what came */
	size_t count;         /* how much */
	int os;               /* how it ended */
	char text[64];
};

static void serve_exchanges(int fd, void *ctx)
{
	char text[64] = "";
	int client;

	(void)ctx;
	while ((client = accept(fd, NULL, NULL)) >= 0) {
		(void)!read(client, text, sizeof(text) - 1);
		(void)!write(client, "200 ", 4);
		(void)!write(client, text, strlen(text));
		(void)close(client);
	}
}

static void visit_exchange(void *ctx)
{
	struct visit *visit = ctx;
	auto_close int fd = world_connect_name(visit->name, visit->port);

	if (fd >= 0 && world_write_all(fd, "GET /", 5))
		visit->count = world_read_all(fd, visit->text, 9) ? 9 : 0;
}

static void a_request_is_answered_at_the_port_that_was_mapped(void **state)
{
	struct visit mapped = {.name = "web.test", .port = 80};
	struct visit same = {.name = "same.test"};
	struct world_server server;
	struct network *network;
	char text[300];
	const char *hosts[2] = {text, "same.test=127.0.0.1"};

	(void)state;
	world_server_start(&server, "127.0.0.1", serve_exchanges, NULL);
	world_host(text, "web.test", server.port);
	same.port = server.port;
	network = world_network(hosts, 2);
	world_inside(network, visit_exchange, &mapped);
	world_inside(network, visit_exchange, &same);
	network_close(network);
	world_server_stop(&server);
	assert_string_equal(mapped.text, "200 GET /");
	assert_string_equal(same.text, "200 GET /");
}

/* A network with one host, "a.test", that leads to a server. */
static struct network *network_to(const struct world_server *server)
{
	char text[300];
	const char *hosts[1] = {world_host(text, "a.test", server->port)};

	return world_network(hosts, 1);
}

static void greet(int fd, void *ctx)
{
	int client = accept(fd, NULL, NULL);
	char byte;

	(void)ctx;
	(void)!write(client, "220 ready", 9);
	(void)!read(client, &byte, 1);
	(void)close(client);
}

static void visit_and_listen(void *ctx)
{
	struct visit *visit = ctx;
	auto_close int fd = world_connect_name("a.test", 25);

	if (fd >= 0 && world_read_all(fd, visit->text, 9))
		visit->count = 9;
}

static void a_server_may_speak_first(void **state)
{
	struct visit visit = {0};
	struct world_server server;
	struct network *network;

	(void)state;
	world_server_start(&server, "127.0.0.1", greet, NULL);
	network = network_to(&server);
	world_inside(network, visit_and_listen, &visit);
	network_close(network);
	world_server_stop(&server);
	assert_string_equal(visit.text, "220 ready");
}

/* Answer with the digest of all that came, once the client has said that it was all. */
static void serve_digest(int fd, void *ctx)
{
	int client = accept(fd, NULL, NULL);
	struct digest digest;
	size_t *count = ctx;

	*count = receive_stream(client, &digest);
	(void)world_write_all(client, &digest, sizeof(digest));
	(void)close(client);
}

static void visit_upload(void *ctx)
{
	struct visit *visit = ctx;
	auto_close int fd = world_connect_name("a.test", 80);
	struct digest sent;
	struct digest seen;

	if (fd < 0 || !send_stream(fd, visit->len, &sent) || shutdown(fd, SHUT_WR) < 0)
		return;
	if (world_read_all(fd, &seen, sizeof(seen)) && digest_equal(&seen, &sent))
		visit->count = visit->len;
}

static void half_a_connection_ends_alone(void **state)
{
	struct visit visit = {.len = LARGE};
	struct world_server server;
	struct network *network;
	size_t count = 0;

	(void)state;
	world_server_start(&server, "127.0.0.1", serve_digest, &count);
	network = network_to(&server);
	world_inside(network, visit_upload, &visit);
	network_close(network);
	world_server_stop(&server);
	assert_int_equal(count, LARGE);
	assert_int_equal(visit.count, LARGE);
}

struct download {
	size_t len;
	struct digest sent;
};

static void serve_download(int fd, void *ctx)
{
	struct download *download = ctx;
	int client;

	while ((client = accept(fd, NULL, NULL)) >= 0) {
		(void)send_stream(client, download->len, &download->sent);
		(void)close(client);
	}
}

static void visit_download(void *ctx)
{
	struct visit *visit = ctx;
	auto_close int fd = world_connect_name("a.test", 80);

	if (fd >= 0)
		visit->count = receive_stream(fd, &visit->digest);
}

static void a_large_download_arrives_whole(void **state)
{
	struct download download = {.len = LARGE};
	struct visit visit = {0};
	struct world_server server;
	struct network *network;
	int64_t start;
	int64_t ms;

	(void)state;
	world_server_start(&server, "127.0.0.1", serve_download, &download);
	network = network_to(&server);
	start = clock_monotonic_ms();
	world_inside(network, visit_download, &visit);
	ms = clock_monotonic_ms() - start;
	network_close(network);
	world_server_stop(&server);
	assert_int_equal(visit.count, LARGE);
	assert_true(digest_equal(&visit.digest, &download.sent));
	print_message("100 MB in %d ms\n", (int)ms);
}

/* A reader that starts only when another connection has come and gone. */
struct slow {
	struct visit visit;
	struct visit other;
};

static void visit_slowly(void *ctx)
{
	struct slow *slow = ctx;
	auto_close int fd = world_connect_name("a.test", 80);

	slow->other.name = "b.test";
	slow->other.port = 80;
	visit_exchange(&slow->other);
	if (fd >= 0)
		slow->visit.count = receive_stream(fd, &slow->visit.digest);
}

static void a_slow_reader_holds_up_nobody_else(void **state)
{
	struct download download = {.len = MEDIUM};
	struct slow slow = {{0}};
	struct world_server streams;
	struct world_server exchanges;
	struct network *network;
	char text[2][300];
	const char *hosts[2] = {text[0], text[1]};

	(void)state;
	world_server_start(&streams, "127.0.0.1", serve_download, &download);
	world_server_start(&exchanges, "127.0.0.1", serve_exchanges, NULL);
	world_host(text[0], "a.test", streams.port);
	world_host(text[1], "b.test", exchanges.port);
	network = world_network(hosts, 2);
	world_inside(network, visit_slowly, &slow);
	network_close(network);
	world_server_stop(&streams);
	world_server_stop(&exchanges);
	assert_string_equal(slow.other.text, "200 GET /");
	assert_int_equal(slow.visit.count, MEDIUM);
	assert_true(digest_equal(&slow.visit.digest, &download.sent));
}

static void visit_to_the_end(void *ctx)
{
	struct visit *visit = ctx;
	auto_close int fd = world_connect_name("a.test", 80);
	char byte;
	ssize_t n = fd < 0 ? -1 : recv(fd, &byte, 1, 0);

	visit->os = fd < 0 ? -fd : n < 0 ? errno : 0;
}

static void reset_all(int fd, void *ctx)
{
	static const struct linger linger = {.l_onoff = 1};
	int client;

	(void)ctx;
	while ((client = accept(fd, NULL, NULL)) >= 0) {
		(void)setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		(void)close(client);
	}
}

static void a_reset_arrives_as_a_reset(void **state)
{
	struct visit visit = {0};
	struct world_server server;
	struct network *network;

	(void)state;
	world_server_start(&server, "127.0.0.1", reset_all, NULL);
	network = network_to(&server);
	world_inside(network, visit_to_the_end, &visit);
	network_close(network);
	world_server_stop(&server);
	assert_int_equal(visit.os, ECONNRESET);
}

static void wait_for_the_end(int fd, void *ctx)
{
	int client = accept(fd, NULL, NULL);
	char byte;

	*(ssize_t *)ctx = recv(client, &byte, 1, 0);
	(void)close(client);
}

static void visit_and_reset(void *ctx)
{
	static const struct linger linger = {.l_onoff = 1};
	int fd = world_connect_name("a.test", 80);

	(void)ctx;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	(void)close(fd);
}

static void a_client_that_goes_away_is_let_go(void **state)
{
	struct world_server server;
	struct network *network;
	ssize_t got = 1;

	(void)state;
	world_server_start(&server, "127.0.0.1", wait_for_the_end, &got);
	network = network_to(&server);
	world_inside(network, visit_and_reset, NULL);
	pthread_join(server.thread, NULL);
	(void)close(server.fd);
	network_close(network);
	assert_true(got <= 0);
}

#define VISITS 5

static void a_port_where_nobody_listens_is_refused_at_once(void **state)
{
	struct visit visit = {0};
	struct world_server server;
	struct network *network;
	int64_t start;

	(void)state;
	world_server_start(&server, "127.0.0.1", serve_exchanges, NULL);
	world_server_stop(&server); /* the port is free again */
	network = network_to(&server);
	start = clock_monotonic_ms();
	for (int i = 0; i < VISITS; i++) {
		world_inside(network, visit_to_the_end, &visit);
		assert_true(visit.os == ECONNRESET || visit.os == ECONNREFUSED);
	}
	/* A SYN that is not answered is repeated after a second. */
	assert_true(clock_monotonic_ms() - start < VISITS * INT64_C(1000));
	network_close(network);
}

static void the_next_address_is_tried_when_one_fails(void **state)
{
	struct visit visit = {.name = "a.test", .port = 80};
	struct world_server closed;
	struct world_server server;
	struct network *network;
	char text[2][300];
	const char *hosts[2] = {text[0], text[1]};

	(void)state;
	world_server_start(&closed, "127.0.0.1", serve_exchanges, NULL);
	world_server_start(&server, "127.0.0.1", serve_exchanges, NULL);
	world_server_stop(&closed);
	world_host(text[0], "a.test", closed.port);
	world_host(text[1], "a.test", server.port);
	network = world_network(hosts, 2);
	world_inside(network, visit_exchange, &visit);
	network_close(network);
	world_server_stop(&server);
	assert_string_equal(visit.text, "200 GET /");
}

#define CROWD 300

/* Accept all of the crowd before any is answered. */
static void serve_crowd(int fd, void *ctx)
{
	int clients[CROWD];
	char byte;

	(void)ctx;
	for (int i = 0; i < CROWD; i++)
		clients[i] = accept(fd, NULL, NULL);
	for (int i = CROWD - 1; i >= 0; i--) {
		(void)!read(clients[i], &byte, 1);
		(void)!write(clients[i], &byte, 1);
		(void)close(clients[i]);
	}
}

static void visit_as_crowd(void *ctx)
{
	struct visit *visit = ctx;
	int fds[CROWD];

	for (int i = 0; i < CROWD; i++) {
		char byte = (char)i;

		fds[i] = world_connect_name("a.test", 80);
		(void)!write(fds[i], &byte, 1);
	}
	for (int i = 0; i < CROWD; i++) {
		char byte = (char)(i + 1);

		if (fds[i] >= 0 && read(fds[i], &byte, 1) == 1 && byte == (char)i)
			visit->count++;
		(void)close(fds[i]);
	}
}

static void many_connections_live_side_by_side(void **state)
{
	struct visit visit = {0};
	struct world_server server;
	struct network *network;

	(void)state;
	world_server_start(&server, "127.0.0.1", serve_crowd, NULL);
	network = network_to(&server);
	world_inside(network, visit_as_crowd, &visit);
	network_close(network);
	world_server_stop(&server);
	assert_int_equal(visit.count, CROWD);
}

#define CEILING 3

/* Hold as many as may come, see that no other does, and only then answer. */
static void serve_few(int fd, void *ctx)
{
	struct pollfd more = {.fd = fd, .events = POLLIN};
	int clients[CEILING];
	bool *was_kept = ctx;

	for (int i = 0; i < CEILING; i++)
		clients[i] = accept(fd, NULL, NULL);
	*was_kept = poll(&more, 1, 200) == 0;
	for (int i = 0; i < CEILING; i++) {
		(void)!write(clients[i], "200 x", 5);
		(void)close(clients[i]);
	}
	serve_exchanges(fd, NULL);
}

static void visit_many_times(void *ctx)
{
	struct visit *visit = ctx;
	int fds[12];

	for (size_t i = 0; i < 12; i++) {
		fds[i] = world_connect_name("a.test", 80);
		(void)!write(fds[i], "x", 1);
	}
	for (size_t i = 0; i < 12; i++) {
		char text[8];

		visit->count += world_read_all(fds[i], text, 5) ? 1 : 0;
		(void)close(fds[i]);
	}
}

static void above_the_ceiling_connections_wait_for_their_turn(void **state)
{
	struct rlimit few = {.rlim_cur = 128 + CEILING * 6}; /* what the loop divides */
	struct visit visit = {0};
	struct rlimit saved;
	struct world_server server;
	struct network *network;
	bool was_kept = false;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
	few.rlim_max = saved.rlim_max;
	world_server_start(&server, "127.0.0.1", serve_few, &was_kept);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	network = network_to(&server);
	world_inside(network, visit_many_times, &visit);
	network_close(network);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
	world_server_stop(&server);
	assert_true(was_kept);
	assert_int_equal(visit.count, 12);
}

/* Say that a connection stands, and report how it ends. */
struct standing {
	pthread_barrier_t stands;
	struct visit visit;
};

static void visit_and_stay(void *ctx)
{
	struct standing *standing = ctx;
	auto_close int fd = world_connect_name("a.test", 80);
	char byte;

	if (!world_read_all(fd, standing->visit.text, 9))
		standing->visit.text[0] = '\0';
	pthread_barrier_wait(&standing->stands);
	standing->visit.os = recv(fd, &byte, 1, 0) < 0 ? errno : 0;
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

#define CLOSING_MS 10000 /* on a busy machine; what is not cut stands for ever */

static void closing_cuts_what_still_stands(void **state)
{
	size_t fds = count_fds();
	struct standing standing = {.visit = {0}};
	struct world_server server;
	struct world_client client;
	struct network *network;
	int64_t start;

	(void)state;
	pthread_barrier_init(&standing.stands, NULL, 2);
	world_server_start(&server, "127.0.0.1", greet, NULL);
	network = network_to(&server);
	world_client_start(&client, network, visit_and_stay, &standing);
	pthread_barrier_wait(&standing.stands);
	start = clock_monotonic_ms();
	network_close(network);
	assert_true(clock_monotonic_ms() - start < CLOSING_MS);
	world_client_end(&client);
	world_server_stop(&server);
	pthread_barrier_destroy(&standing.stands);
	assert_string_equal(standing.visit.text, "220 ready");
	assert_int_equal(standing.visit.os, ECONNRESET);
	assert_int_equal(count_fds(), fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_answered_at_the_port_that_was_mapped),
		cmocka_unit_test(a_server_may_speak_first),
		cmocka_unit_test(half_a_connection_ends_alone),
		cmocka_unit_test(a_large_download_arrives_whole),
		cmocka_unit_test(a_slow_reader_holds_up_nobody_else),
		cmocka_unit_test(a_reset_arrives_as_a_reset),
		cmocka_unit_test(a_client_that_goes_away_is_let_go),
		cmocka_unit_test(a_port_where_nobody_listens_is_refused_at_once),
		cmocka_unit_test(the_next_address_is_tried_when_one_fails),
		cmocka_unit_test(many_connections_live_side_by_side),
		cmocka_unit_test(above_the_ceiling_connections_wait_for_their_turn),
		cmocka_unit_test(closing_cuts_what_still_stands),
	};
	const struct rlimit files = {.rlim_cur = 16384, .rlim_max = 16384};

	/* CROWD connections are 8 descriptors each where all sides are in one process. */
	if (geteuid() != 0 || setrlimit(RLIMIT_NOFILE, &files) < 0 || !world_enter())
		return 125;
	return cmocka_run_group_tests_name("sandbox/egress", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine's network is, and what cannot be reached from it. */
#include "layers/base/clock.h"
#include "tests/check.h"
#include "tests/sandbox/world.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/ip_icmp.h>
#include <nftables/libnftables.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/un.h>

#define QUICK_MS 5000 /* "at once", on a busy machine: a lost SYN costs a second each */

/* Count the connections that reach the host. */
static void count_all(int fd, void *ctx)
{
	atomic_int *count = ctx;
	int client;

	while ((client = accept(fd, NULL, NULL)) >= 0) {
		atomic_fetch_add(count, 1);
		(void)!write(client, "x", 1);
		(void)close(client);
	}
}

/* One attempt: what connect() said, and whether a byte came after it. */
struct attempt {
	const char *address;
	in_port_t port;
	int connected;
	bool got_byte;
};

static void try_to_reach(void *ctx)
{
	struct attempt *attempt = ctx;
	char byte;

	attempt->connected = world_connect(attempt->address, attempt->port);
	if (attempt->connected < 0)
		return;
	attempt->got_byte = read(attempt->connected, &byte, 1) == 1;
	(void)close(attempt->connected);
	attempt->connected = 0;
}

static void an_address_is_dialled_from_the_host(void **state)
{
	static const char *const addresses[] = {"93.184.216.34", "10.99.0.1", "192.168.7.7"};
	struct network *network = world_network(NULL, 0);
	struct world_server server;
	atomic_int count = 0;

	(void)state;
	world_server_start(&server, "0.0.0.0", count_all, &count);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct attempt attempt = {addresses[i], server.port};

		world_inside(network, try_to_reach, &attempt);
		assert_int_equal(attempt.connected, 0);
		assert_true(attempt.got_byte);
	}
	network_close(network);
	world_server_stop(&server);
	assert_int_equal(count, 3);
}

static void what_leads_back_to_the_host_is_never_dialled(void **state)
{
	static const char *const addresses[] = {
		"127.0.0.1",  "127.9.9.9",       "0.0.0.0",    "169.254.169.254", "169.254.1.1",
		"224.0.0.1",  "255.255.255.255", "240.0.0.1",  "100.100.100.200", "168.63.129.16",
		"198.18.0.1", "198.18.77.77",    "198.19.0.1", "192.0.0.192"};
	struct network *network = world_network(NULL, 0);
	struct world_server server;
	atomic_int count = 0;
	int64_t start = clock_monotonic_ms();

	(void)state;
	world_server_start(&server, "0.0.0.0", count_all, &count);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct attempt attempt = {addresses[i], server.port};

		world_inside(network, try_to_reach, &attempt);
		if (attempt.got_byte)
			fail_msg("%s was reached", addresses[i]);
	}
	network_close(network);
	world_server_stop(&server);
	assert_int_equal(count, 0);
	assert_true(clock_monotonic_ms() - start < QUICK_MS);
}

/* No accepted connection that is reset later, but a plain refusal. */
static void what_is_refused_anyhow_is_refused_at_once(void **state)
{
	static const char *const addresses[] = {"169.254.169.254", "127.9.9.9", "127.0.0.1",
						"198.18.0.1"};
	struct network *network = world_network(NULL, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct attempt attempt = {addresses[i], 59999};

		world_inside(network, try_to_reach, &attempt);
		assert_int_equal(attempt.connected, -ECONNREFUSED);
	}
	network_close(network);
}

static void reach_by_name(void *ctx)
{
	struct attempt *attempt = ctx;

	attempt->connected = world_connect_name(attempt->address, attempt->port);
	if (attempt->connected < 0)
		return;
	(void)close(attempt->connected);
	attempt->connected = 0;
}

static void a_name_that_leads_back_does_not_exist(void **state)
{
	static const char *const names[] = {"trap.test", "metadata.test", "zero.test",
					    "synthetic.test", "mapped.test"};
	struct network *network = world_network(NULL, 0);
	struct world_server server;
	atomic_int count = 0;

	(void)state;
	world_server_start(&server, "0.0.0.0", count_all, &count);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct attempt attempt = {names[i], server.port};

		world_inside(network, reach_by_name, &attempt);
		assert_int_equal(attempt.connected, -ENOENT);
	}
	network_close(network);
	world_server_stop(&server);
	assert_int_equal(count, 0);
}

static void send_a_datagram(void *ctx)
{
	const struct sockaddr_in name = {.sin_family = AF_INET,
					 .sin_port = htons(443),
					 .sin_addr.s_addr = inet_addr("93.184.216.34")};
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*(int *)ctx =
		sendto(fd, "x", 1, 0, (const struct sockaddr *)&name, sizeof(name)) < 0 ? errno : 0;
}

/* Echo requests to an address outside and to one inside; 0 is an answer. */
struct pings {
	int outside;
	int inside;
};

static int ping(const char *address)
{
	const struct sockaddr_in name = {.sin_family = AF_INET,
					 .sin_addr.s_addr = inet_addr(address)};
	const struct timeval patience = {.tv_sec = 5};
	struct icmphdr request = {.type = ICMP_ECHO, .checksum = 0xfff7}; /* 8, complemented */
	auto_close int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	char answer[256];

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (sendto(fd, &request, sizeof(request), 0, (const struct sockaddr *)&name, sizeof(name)) <
	    0)
		return errno;
	return recv(fd, answer, sizeof(answer), 0) > 0 ? 0 : errno;
}

static void ping_both(void *ctx)
{
	struct pings *pings = ctx;

	pings->outside = ping("93.184.216.34");
	pings->inside = ping("127.0.0.1");
}

static void connect_over_ipv6(void *ctx)
{
	struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
	auto_close int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)inet_pton(AF_INET6, "2606:4700::1111", &name.sin6_addr);
	*(int *)ctx = connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0 ? errno : 0;
}

static void all_but_tcp_over_ipv4_is_refused_at_once(void **state)
{
	struct network *network = world_network(NULL, 0);
	struct pings pings = {-1, -1};
	int os = 0;

	(void)state;
	world_inside(network, send_a_datagram, &os);
	assert_int_equal(os, EPERM);
	world_inside(network, connect_over_ipv6, &os);
	assert_int_equal(os, ENETUNREACH);
	world_inside(network, ping_both, &pings);
	assert_int_equal(pings.outside, EPERM);
	assert_int_equal(pings.inside, 0);
	network_close(network);
}

/* Serve inside at all addresses, and be a client of that at one of them. */
struct own {
	const char *address;
	bool answered;
};

static void serve_oneself(void *ctx)
{
	struct own *own = ctx;
	struct world_server server;
	struct attempt attempt = {.address = own->address};
	atomic_int count = 0;

	world_server_start(&server, "0.0.0.0", count_all, &count);
	attempt.port = server.port;
	try_to_reach(&attempt);
	world_server_stop(&server);
	own->answered = attempt.got_byte && count == 1;
}

static void a_machine_reaches_itself(void **state)
{
	struct network *open = world_network(NULL, 0);
	struct own by_loopback = {"127.0.0.1"};
	struct own by_address = {"198.18.0.1"};
	struct own alone = {"127.0.0.1"};
	struct network *none;
	struct err err;

	(void)state;
	world_inside(open, serve_oneself, &by_loopback);
	world_inside(open, serve_oneself, &by_address);
	network_close(open);
	check_ok(network_open(NETWORK_NONE, NULL, 0, &none, &err), &err);
	world_inside(none, serve_oneself, &alone);
	network_close(none);
	assert_true(by_loopback.answered);
	assert_true(by_address.answered);
	assert_true(alone.answered);
}

static void none_has_lo_and_nothing_else(void **state)
{
	static const char *const addresses[] = {"93.184.216.34", "198.18.0.1", "10.99.0.1"};
	struct network *network;
	struct err err;
	int os = 0;

	(void)state;
	check_ok(network_open(NETWORK_NONE, NULL, 0, &network, &err), &err);
	check_ok(network_serve(network, &err), &err);
	assert_int_equal(network_resolv_conf(network).len, 0);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct attempt attempt = {addresses[i], 80};

		world_inside(network, try_to_reach, &attempt);
		assert_int_equal(attempt.connected, -ENETUNREACH);
	}
	world_inside(network, send_a_datagram, &os);
	assert_int_equal(os, ENETUNREACH);
	network_close(network);
}

static void reach_by_abstract_name(void *ctx)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_un *name = ctx;
	int result = connect(fd, (const struct sockaddr *)name, sizeof(*name));

	((struct sockaddr_un *)ctx)->sun_family = result < 0 ? (sa_family_t)errno : 0;
}

/* They are of no file system, and of a network namespace: each has its own. */
static void abstract_sockets_of_the_host_are_not_there(void **state)
{
	auto_close int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct sockaddr_un outside;
	struct network *network = world_network(NULL, 0);

	(void)state;
	(void)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "hearth-test-%d",
		       (int)getpid());
	assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(listener, 1), 0);
	outside = name;
	reach_by_abstract_name(&outside);
	assert_int_equal(outside.sun_family, 0);
	world_inside(network, reach_by_abstract_name, &name);
	assert_int_equal(name.sun_family, ECONNREFUSED);
	network_close(network);
}

static void read_first_port(void *ctx)
{
	auto_close int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_RDONLY);
	char text[8] = "";

	*(bool *)ctx = read(fd, text, sizeof(text) - 1) == 2 && text[0] == '0';
}

static void every_port_may_be_bound_inside(void **state)
{
	struct network *network = world_network(NULL, 0);
	bool is_zero = false;

	(void)state;
	world_inside(network, read_first_port, &is_zero);
	network_close(network);
	assert_true(is_zero);
}

static void sysfs_shows_the_machines_interfaces_and_is_read_only(void **state)
{
	struct network *network = world_network(NULL, 0);
	struct dirent *entry;
	struct err err;
	int fd = -1;
	DIR *dir;

	(void)state;
	check_ok(network_sysfs(network, &fd, &err), &err);
	assert_int_equal(openat(fd, "class/net/lo/mtu", O_WRONLY | O_CLOEXEC), -1);
	assert_int_equal(errno, EROFS);
	dir = fdopendir(openat(fd, "class/net", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		assert_true(entry->d_name[0] == '.' || strcmp(entry->d_name, "lo") == 0);
	(void)closedir(dir);
	(void)close(fd);
	network_close(network);
}

DEFINE_AUTO(nft, struct nft_ctx *, nft_ctx_free);

static void add_file(const char *path, struct buf *out)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char bytes[4096];
	struct err err;
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		check_ok(buf_add(out, (struct str){bytes, (size_t)n}, &err), &err);
}

/* All of a host's network that a machine could have changed. */
static void describe_host(struct buf *out)
{
	AUTO(nft) struct nft_ctx *nft = nft_ctx_new(NFT_CTX_DEFAULT);
	struct err err;

	(void)nft_ctx_buffer_output(nft);
	assert_int_equal(nft_run_cmd_from_buffer(nft, "list ruleset"), 0);
	check_ok(buf_add(out, str_of(nft_ctx_get_output_buffer(nft)), &err), &err);
	add_file("/proc/thread-self/net/fib_trie", out);
	add_file("/proc/thread-self/net/if_inet6", out);
	add_file("/proc/thread-self/net/route", out);
	add_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", out);
	add_file("/proc/self/mountinfo", out);
}

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

/* A thread that was joined is listed until the kernel has let it go. */
static size_t count_threads(size_t expected)
{
	size_t count = count_entries("/proc/self/task");

	for (int i = 0; i < 10000 && count > expected; i++) {
		(void)poll(NULL, 0, 1);
		count = count_entries("/proc/self/task");
	}
	return count;
}

static void nothing_changes_on_the_host_and_nothing_stays(void **state)
{
	auto_buf struct buf before = BUF_INIT(1 << 20);
	auto_buf struct buf during = BUF_INIT(1 << 20);
	auto_buf struct buf after = BUF_INIT(1 << 20);
	size_t fds;
	size_t threads;

	(void)state;
	describe_host(&before);
	fds = count_entries("/proc/self/fd");
	threads = count_entries("/proc/self/task");
	for (int i = 0; i < 20; i++) {
		struct network *network = world_network(NULL, 0);
		struct attempt attempt = {"private.test", 1};

		world_inside(network, reach_by_name, &attempt);
		if (i == 0)
			describe_host(&during);
		network_close(network);
	}
	describe_host(&after);
	assert_string_equal(before.ptr, during.ptr);
	assert_string_equal(before.ptr, after.ptr);
	assert_int_equal(count_entries("/proc/self/fd"), fds);
	assert_true(count_threads(threads) <= threads);
}

static void too_many_hosts_are_refused(void **state)
{
	static struct network_host hosts[NETWORK_HOSTS_MAX + 1];
	struct network *network;
	struct err err;

	(void)state;
	check_err(network_open(NETWORK_OPEN, hosts, NETWORK_HOSTS_MAX + 1, &network, &err), &err,
		  ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_dialled_from_the_host),
		cmocka_unit_test(what_leads_back_to_the_host_is_never_dialled),
		cmocka_unit_test(what_is_refused_anyhow_is_refused_at_once),
		cmocka_unit_test(a_name_that_leads_back_does_not_exist),
		cmocka_unit_test(all_but_tcp_over_ipv4_is_refused_at_once),
		cmocka_unit_test(a_machine_reaches_itself),
		cmocka_unit_test(none_has_lo_and_nothing_else),
		cmocka_unit_test(abstract_sockets_of_the_host_are_not_there),
		cmocka_unit_test(every_port_may_be_bound_inside),
		cmocka_unit_test(sysfs_shows_the_machines_interfaces_and_is_read_only),
		cmocka_unit_test(nothing_changes_on_the_host_and_nothing_stays),
		cmocka_unit_test(too_many_hosts_are_refused),
	};

	if (geteuid() != 0 || !world_enter())
		return 125;
	return cmocka_run_group_tests_name("sandbox/network", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine's resolver says. */
#include "layers/base/clock.h"
#include "sandbox/nameserver_priv.h"
#include "sandbox/resolver_priv.h"
#include "tests/check.h"
#include "tests/sandbox/world.h"

#include <arpa/inet.h>
#include <errno.h>

enum { TYPE_MX = 15, TYPE_TXT = 16, TYPE_SRV = 33, TYPE_HTTPS = 65 };

struct ask {
	const char *name;
	unsigned type;
	int rcode;
	struct world_answer answer;
};

static void ask(void *ctx)
{
	struct ask *one = ctx;

	one->rcode = world_ask(one->name, one->type, &one->answer);
}

static struct ask asked(const struct network *network, const char *name, unsigned type)
{
	struct ask one = {.name = name, .type = type};

	world_inside(network, ask, &one);
	return one;
}

static void a_name_has_an_address_of_its_own_and_keeps_it(void **state)
{
	static const char *const hosts[] = {"git.test=127.0.0.1:80", "web.test=[::1]"};
	struct network *network = world_network(hosts, 2);
	struct ask git = asked(network, "git.test", DNS_A);
	struct ask web = asked(network, "WEB.test", DNS_A);
	struct ask public = asked(network, "public.test", DNS_A);
	struct ask again = asked(network, "git.test", DNS_A);

	(void)state;
	network_close(network);
	assert_int_equal(git.rcode, DNS_NOERROR);
	assert_int_equal(git.answer.data_len, 4);
	assert_memory_equal(git.answer.data, "\xc6\x12\0\2", 4);
	assert_memory_equal(web.answer.data, "\xc6\x12\0\3", 4);
	assert_memory_equal(public.answer.data, "\xc6\x12\0\4", 4);
	assert_memory_equal(again.answer.data, git.answer.data, 4);
}

static void a_name_has_nothing_but_an_address(void **state)
{
	static const char *const hosts[] = {"git.test=127.0.0.1"};
	static const unsigned types[] = {DNS_AAAA, TYPE_MX, TYPE_TXT, TYPE_SRV, TYPE_HTTPS};
	struct network *network = world_network(hosts, 1);

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ask one = asked(network, "git.test", types[i]);

		assert_int_equal(one.rcode, DNS_NOERROR);
		assert_int_equal(one.answer.count, 0);
	}
	assert_int_equal(asked(network, "_http._tcp.git.test", TYPE_SRV).rcode, DNS_NXDOMAIN);
	network_close(network);
}

static void a_name_that_the_host_does_not_know_does_not_exist(void **state)
{
	struct network *network = world_network(NULL, 0);

	(void)state;
	assert_int_equal(asked(network, "nowhere.test", DNS_A).rcode, DNS_NXDOMAIN);
	assert_int_equal(asked(network, "nowhere.test", DNS_AAAA).rcode, DNS_NXDOMAIN);
	assert_int_equal(asked(network, "a.broken.test", DNS_A).rcode, DNS_SERVFAIL);
	network_close(network);
}

static void localhost_is_the_machine(void **state)
{
	struct network *network = world_network(NULL, 0);
	struct ask four = asked(network, "localhost", DNS_A);
	struct ask six = asked(network, "a.localhost", DNS_AAAA);

	(void)state;
	network_close(network);
	assert_int_equal(four.answer.count, 1);
	assert_memory_equal(four.answer.data, "\x7f\0\0\1", 4);
	assert_int_equal(six.answer.count, 1);
	assert_memory_equal(six.answer.data, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
}

static void an_address_has_its_name_back(void **state)
{
	static const char *const hosts[] = {"git.test=127.0.0.1"};
	struct network *network = world_network(hosts, 1);
	struct ask known = asked(network, "2.0.18.198.in-addr.arpa", DNS_PTR);

	(void)state;
	assert_int_equal(known.rcode, DNS_NOERROR);
	assert_memory_equal(known.answer.data, "\3git\4test", 10);
	assert_int_equal(asked(network, "3.0.18.198.in-addr.arpa", DNS_PTR).rcode, DNS_NXDOMAIN);
	assert_int_equal(asked(network, "8.8.8.8.in-addr.arpa", DNS_PTR).rcode, DNS_NXDOMAIN);
	assert_int_equal(asked(network, "in-addr.arpa", DNS_PTR).rcode, DNS_NXDOMAIN);
	network_close(network);
}

/* Two questions in one segment and a third in pieces, over one TCP connection. */
static void ask_over_tcp(void *ctx)
{
	auto_close int fd = world_connect(RESOLVER_SELF, 53);
	uint8_t bytes[2 * DNS_QUERY_MAX];
	size_t len = world_query("git.test", DNS_A, bytes + 2);
	struct world_answer answer = {0};
	int *answered = ctx;
	bool sent;

	bytes[0] = 0;
	bytes[1] = (uint8_t)len;
	memcpy(bytes + 2 + len, bytes, 2 + len);
	sent = world_write_all(fd, bytes, 2 * (2 + len)) && world_write_all(fd, bytes, 1) &&
	       world_write_all(fd, bytes + 1, 7) && world_write_all(fd, bytes + 8, len - 6);
	for (int i = 0; sent && i < 3; i++) {
		uint8_t head[2];

		if (!world_read_all(fd, head, 2) ||
		    !world_read_all(fd, bytes, (size_t)(head[0] << 8 | head[1])))
			break;
		if (world_read_answer(bytes, (size_t)(head[0] << 8 | head[1]), &answer) == 0 &&
		    memcmp(answer.data, "\xc6\x12\0\2", 4) == 0)
			(*answered)++;
	}
}

static void tcp_will_do_as_well(void **state)
{
	static const char *const hosts[] = {"git.test=127.0.0.1"};
	struct network *network = world_network(hosts, 1);
	int answered = 0;

	(void)state;
	world_inside(network, ask_over_tcp, &answered);
	network_close(network);
	assert_int_equal(answered, 3);
}

static void send_too_much_over_tcp(void *ctx)
{
	auto_close int fd = world_connect(RESOLVER_SELF, 53);
	char byte;

	*(bool *)ctx = world_write_all(fd, "\xff\xff", 2) && read(fd, &byte, 1) <= 0;
}

/* Its length is enough: it is not cut off for its silence. */
static void a_query_longer_than_any_is_cut_off(void **state)
{
	struct network *network = world_network(NULL, 0);
	int64_t start = clock_monotonic_ms();
	bool was_cut = false;

	(void)state;
	world_inside(network, send_too_much_over_tcp, &was_cut);
	network_close(network);
	assert_true(was_cut);
	assert_true(clock_monotonic_ms() - start < NAMESERVER_IDLE_MS);
}

static void ask_and_leave(void *ctx)
{
	const struct sockaddr_in server = {.sin_family = AF_INET,
					   .sin_port = htons(53),
					   .sin_addr.s_addr = inet_addr(RESOLVER_SELF)};
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t bytes[DNS_QUERY_MAX];
	size_t len = world_query(ctx, DNS_A, bytes);

	(void)sendto(fd, bytes, len, 0, (const struct sockaddr *)&server, sizeof(server));
}

/* While one lookup hangs, other names are answered, and closing does not wait for it. */
static void a_resolver_that_hangs_holds_nothing_up(void **state)
{
	struct network *network = world_network(NULL, 0);
	struct ask stuck = {.name = "a.silent.test", .type = DNS_A};
	char name[] = "b.silent.test";
	struct world_client client;
	int64_t start;

	(void)state;
	world_client_start(&client, network, ask, &stuck);
	assert_int_equal(asked(network, "public.test", DNS_A).rcode, DNS_NOERROR);
	world_client_end(&client);
	assert_int_equal(stuck.rcode, DNS_SERVFAIL);

	start = clock_monotonic_ms();
	world_inside(network, ask_and_leave, name);
	assert_int_equal(asked(network, "private.test", DNS_A).rcode, DNS_NOERROR);
	network_close(network);
	assert_true(clock_monotonic_ms() - start < WORLD_SILENCE_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_an_address_of_its_own_and_keeps_it),
		cmocka_unit_test(a_name_has_nothing_but_an_address),
		cmocka_unit_test(a_name_that_the_host_does_not_know_does_not_exist),
		cmocka_unit_test(localhost_is_the_machine),
		cmocka_unit_test(an_address_has_its_name_back),
		cmocka_unit_test(tcp_will_do_as_well),
		cmocka_unit_test(a_query_longer_than_any_is_cut_off),
		cmocka_unit_test(a_resolver_that_hangs_holds_nothing_up),
	};

	if (geteuid() != 0 || !world_enter())
		return 125;
	return cmocka_run_group_tests_name("sandbox/nameserver", tests, NULL, NULL);
}

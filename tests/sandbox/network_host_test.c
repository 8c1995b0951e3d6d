/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/address_priv.h"
#include "sandbox/network.h"
#include "tests/check.h"

#include <arpa/inet.h>

static void check_host(const char *text, const char *name, const char *address, in_port_t port)
{
	char found[INET6_ADDRSTRLEN];
	struct network_host host;
	union address target;
	struct err err;

	check_ok(network_host_parse(str_of(text), &host, &err), &err);
	assert_string_equal(host.name, name);
	assert_true(address_from((const struct sockaddr *)&host.address, &target));
	assert_non_null(inet_ntop(target.any.sa_family,
				  target.any.sa_family == AF_INET6 ? (void *)&target.in6.sin6_addr
								   : (void *)&target.in.sin_addr,
				  found, sizeof(found)));
	assert_string_equal(found, address);
	assert_int_equal(address_port(&target), port);
}

static void a_host_is_a_name_an_address_and_perhaps_a_port(void **state)
{
	(void)state;
	check_host("Git.Example.com=127.0.0.1", "git.example.com", "127.0.0.1", 0);
	check_host("git.example.com.=127.0.0.1:8080", "git.example.com", "127.0.0.1", 8080);
	check_host("a=10.0.0.1:65535", "a", "10.0.0.1", 65535);
	check_host("a=[::1]", "a", "::1", 0);
	check_host("a=[2001:db8::1]:443", "a", "2001:db8::1", 443);
}

static void anything_else_says_what_was_expected(void **state)
{
	static const struct str wrong[] = {
		STR(""),
		STR("="),
		STR("a"),
		STR("a="),
		STR("=127.0.0.1"),
		STR("a=b"),
		STR("a=127.1"),
		STR("a=0x7f000001"),
		STR("a=127.0.0.1:"),
		STR("a=127.0.0.1:0"),
		STR("a=127.0.0.1:007"),
		STR("a=127.0.0.1:-12"),
		STR("a=127.0.0.1:91337"),
		STR("a=127.0.0.1:65536"),
		STR("a=127.0.0.1:999999"),
		STR("a=127.0.0.1:https"),
		STR("a=127.0.0.1:80 "),
		STR("a=::1"),
		STR("a=[::1"),
		STR("a=[::1]80"),
		STR("a=[127.0.0.1]"),
		STR("a=[]"),
		STR("127.0.0.1=127.0.0.1"),
		STR("a b=127.0.0.1"),
		STR("a=127.0.0.1\0"),
		STR("*.a=127.0.0.1"),
		STR("a=fe80::1%lo"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct network_host host = {.name = "untouched"};
		struct err err = {0};

		check_err(network_host_parse(wrong[i], &host, &err), &err, ERR_INVALID);
		assert_non_null(strstr(err.text, "expected "));
		assert_string_equal(host.name, "untouched");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_is_a_name_an_address_and_perhaps_a_port),
		cmocka_unit_test(anything_else_says_what_was_expected),
	};

	return cmocka_run_group_tests_name("sandbox/network_host", tests, NULL, NULL);
}

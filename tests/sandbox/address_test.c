/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/address_priv.h"
#include "tests/check.h"

#include <arpa/inet.h>
#include <string.h>

static union address parse(const char *text)
{
	union address address = {0};

	if (strchr(text, ':')) {
		address.in6.sin6_family = AF_INET6;
		assert_int_equal(inet_pton(AF_INET6, text, &address.in6.sin6_addr), 1);
	} else {
		address.in.sin_family = AF_INET;
		assert_int_equal(inet_pton(AF_INET, text, &address.in.sin_addr), 1);
	}
	return address;
}

static void check_kind(const char *const *texts, enum address_kind kind)
{
	for (; *texts; texts++) {
		union address address = parse(*texts);

		if (address_kind(&address) != kind)
			fail_msg("%s is not of kind %d", *texts, kind);
	}
}

static void what_leads_back_or_nowhere_is_refused(void **state)
{
	static const char *const texts[] = {"0.0.0.0",
					    "0.1.2.3",
					    "127.0.0.1",
					    "127.255.255.254",
					    "169.254.0.1",
					    "169.254.169.254",
					    "168.63.129.16",
					    "100.100.100.200",
					    "192.0.0.192",
					    "192.88.99.1",
					    "198.18.0.0",
					    "198.19.255.255",
					    "224.0.0.1",
					    "239.255.255.255",
					    "240.0.0.1",
					    "255.255.255.255",
					    "::",
					    "::1",
					    "fe80::1",
					    "febf::1",
					    "fec0::1",
					    "ff02::1",
					    "fd00:ec2::254",
					    "fd20:ce::254",
					    "100::1",
					    NULL};

	(void)state;
	check_kind(texts, ADDRESS_REFUSED);
}

static void what_hides_another_address_is_refused(void **state)
{
	static const char *const texts[] = {"::ffff:127.0.0.1",
					    "::ffff:169.254.169.254",
					    "::ffff:8.8.8.8",
					    "::127.0.0.1",
					    "64:ff9b::a9fe:a9fe",
					    "64:ff9b::808:808",
					    "64:ff9b:1::1",
					    "2002:a00:1::1",
					    "2002:808:808::1",
					    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
					    "2001::1",
					    NULL};

	(void)state;
	check_kind(texts, ADDRESS_REFUSED);
}

static void private_networks_end_where_they_end(void **state)
{
	static const char *const inside[] = {
		"10.0.0.1",    "10.255.255.255",  "172.16.0.1", "172.31.255.255",
		"192.168.0.1", "192.168.255.255", "100.64.0.1", "100.127.255.254",
		"fc00::1",     "fdff::1",         NULL};
	static const char *const outside[] = {"9.255.255.255",   "11.0.0.0",
					      "172.15.255.255",  "172.32.0.0",
					      "192.167.255.255", "192.169.0.0",
					      "100.63.255.254",  "100.128.0.1",
					      "1.1.1.1",         "126.255.255.255",
					      "128.0.0.1",       "169.253.255.255",
					      "169.255.0.0",     "198.17.255.255",
					      "198.20.0.0",      "223.255.255.255",
					      "2606:4700::1111", "2001:4860:4860::8888",
					      "2003::1",         NULL};

	(void)state;
	check_kind(inside, ADDRESS_PRIVATE);
	check_kind(outside, ADDRESS_PUBLIC);
}

static void a_port_is_set_in_either_family(void **state)
{
	union address four = parse("10.0.0.1");
	union address six = parse("fc00::1");

	(void)state;
	address_set_port(&four, 80);
	address_set_port(&six, 443);
	assert_int_equal(four.in.sin_port, htons(80));
	assert_int_equal(six.in6.sin6_port, htons(443));
	assert_int_equal(address_port(&six), 443);
	assert_int_equal(address_size(&four), sizeof(struct sockaddr_in));
	assert_int_equal(address_size(&six), sizeof(struct sockaddr_in6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leads_back_or_nowhere_is_refused),
		cmocka_unit_test(what_hides_another_address_is_refused),
		cmocka_unit_test(private_networks_end_where_they_end),
		cmocka_unit_test(a_port_is_set_in_either_family),
	};

	return cmocka_run_group_tests_name("sandbox/address", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/auth_priv.h"
#include "registry/url_priv.h"
#include "tests/check.h"

/* Who may be asked for a token, and who may see the password then. */
static void credentials_stay_in_the_family(void **state)
{
	static const struct {
		const char *registry;
		const char *realm;
		bool ask;
		bool trust;
	} cases[] = {
		{"https://registry-1.docker.io/", "https://auth.docker.io/token", true, true},
		{"https://registry.gitlab.com/", "https://gitlab.com/jwt/auth", true, true},
		{"https://ghcr.io/", "https://ghcr.io/token", true, true},
		{"https://ghcr.io/", "https://GHCR.io:8443/token", true, true},
		{"https://reg.acme.co.uk/", "https://auth.acme.co.uk/t", true, true},
		/* another owner, however alike */
		{"https://reg.acme.com/", "https://evil.example/t", true, false},
		{"https://reg.acme.com/", "https://acme.com.evil.example/t", true, false},
		{"https://reg.acme.com/", "https://notacme.com/t", true, false},
		{"https://acme.co.uk/", "https://evil.co.uk/t", true, false},
		{"https://a.com/", "https://com/t", true, false},
		/* no downgrade */
		{"https://reg.acme.com/", "http://reg.acme.com/t", false, false},
		{"http://reg.acme.com/", "http://reg.acme.com/t", true, true},
		{"http://reg.acme.com/", "https://auth.acme.com/t", true, true},
		{"http://reg.acme.com/", "http://auth.acme.com/t", true, false},
		/* addresses belong to nobody, and near ones are not for strangers */
		{"https://reg.acme.com/", "https://169.254.169.254/t", false, false},
		{"https://reg.acme.com/", "https://localhost/t", false, false},
		{"https://reg.acme.com/", "https://[::ffff:10.0.0.1]/t", false, false},
		{"https://reg.acme.com/", "https://[fe80::1]/t", false, false},
		{"https://reg.acme.com/", "https://0x7f.1/t", false, false},
		{"https://reg.acme.com/", "https://1.2.3.4/t", true, false},
		{"http://127.0.0.1:5000/", "http://127.0.0.1:5001/t", true, true},
		{"http://127.0.0.1:5000/", "http://localhost:5001/t", false, false},
		{"http://10.0.0.1/", "http://10.0.0.2/t", false, false},
		{"http://10.0.0.1/", "http://10.0.0.1:81/t", true, true},
		/* what is no URL of ours */
		{"https://reg.acme.com/", "file:///etc/passwd", false, false},
		{"https://reg.acme.com/", "", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (auth_may_ask(cases[i].registry, cases[i].realm) != cases[i].ask)
			fail_msg("asking %s for %s", cases[i].realm, cases[i].registry);
		if (auth_trusts(cases[i].registry, cases[i].realm) != cases[i].trust)
			fail_msg("trusting %s for %s", cases[i].realm, cases[i].registry);
	}
}

static void hosts_are_told_apart(void **state)
{
	static const struct {
		const char *host;
		bool loopback;
		bool near;
	} cases[] = {
		{"127.0.0.1", true, true},
		{"127.9.9.9", true, true},
		{"[::1]", true, true},
		{"localhost", true, true},
		{"LOCALHOST", true, true},
		{"128.0.0.1", false, false},
		{"10.1.2.3", false, true},
		{"172.16.0.1", false, true},
		{"172.32.0.1", false, false},
		{"192.168.1.1", false, true},
		{"100.64.0.1", false, true},
		{"[fd00::1]", false, true},
		{"[2001:db8::1]", false, false},
		{"[::ffff:127.0.0.1]", true, true},
		{"[::]", false, true},
		{"0.0.0.0", false, true},
		{"localhost.evil.example", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (url_host_is_loopback(cases[i].host) != cases[i].loopback ||
		    url_host_is_private(cases[i].host) != cases[i].near)
			fail_msg("%s", cases[i].host);
	}
}

static void how_near_a_host_is(void **state)
{
	static const struct {
		const char *host;
		enum url_nearness nearness;
	} cases[] = {
		{"registry.example", URL_PUBLIC},
		{"203.0.113.5", URL_PUBLIC},
		{"[2001:db8::1]", URL_PUBLIC},
		{"localhost.evil.example", URL_PUBLIC},
		{"notlocalhost", URL_PUBLIC},
		{"10.1.2.3", URL_PRIVATE},
		{"100.64.0.1", URL_PRIVATE},
		{"[fd00::1]", URL_PRIVATE},
		{"[::ffff:192.168.0.1]", URL_PRIVATE},
		{"127.0.0.1", URL_HOME},
		{"[::1]", URL_HOME},
		{"0.0.0.0", URL_HOME},
		{"[::]", URL_HOME},
		{"[::ffff:0.0.0.0]", URL_HOME},
		{"localhost", URL_HOME},
		{"LocalHost.", URL_HOME},
		{"a.localhost", URL_HOME},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (url_host_nearness(cases[i].host) != cases[i].nearness)
			fail_msg("%s", cases[i].host);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(credentials_stay_in_the_family),
		cmocka_unit_test(hosts_are_told_apart),
		cmocka_unit_test(how_near_a_host_is),
	};

	return cmocka_run_group_tests_name("registry/auth", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/live.h"

#include <fcntl.h>
#include <sys/stat.h>

int live_new(void **state)
{
	struct live *live = calloc(1, sizeof(*live));
	void *pulling = NULL;

	assert_non_null(live);
	assert_int_equal(pulling_new(&pulling), 0);
	live->pulling = pulling;
	live->registry.proc = PROC_INIT;
	live->registry.logfd = -1;
	(void)snprintf(live->dir, sizeof(live->dir), "%s/registry", live->pulling->made->parent);
	assert_int_equal(mkdir(live->dir, 0700), 0);
	pulling_make(live->pulling, SAMPLE_FINE);
	*state = live;
	return 0;
}

int live_free(void **state)
{
	struct live *live = *state;
	void *pulling = live->pulling;

	live_registry_stop(&live->registry);
	free(live);
	return pulling_free(&pulling);
}

/* me:secret */
static const char password_line[] =
	"me:$2b$04$xjRrvKZIlqeSvUdcoW0bfOsoAeVJGRKZwnp1yfEDJvbKnEZjweGi6\n";

void live_start_with_password(struct live *live)
{
	char path[128];
	char auth[256];

	(void)snprintf(path, sizeof(path), "%s/htpasswd", live->dir);
	{
		auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		assert_true(write(fd, password_line, strlen(password_line)) > 0);
	}
	(void)snprintf(auth, sizeof(auth), "auth: {htpasswd: {realm: a realm, path: %s}}\n", path);
	live_registry_start(&live->registry, live->dir, auth, "");
}

void live_start_with_tls(struct live *live)
{
	char key[128];
	char http[512];

	(void)snprintf(live->ca, sizeof(live->ca), "%s/cert.pem", live->dir);
	(void)snprintf(key, sizeof(key), "%s/key.pem", live->dir);
	live_run("/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
		 "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test",
		 "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", live->ca);
	(void)snprintf(http, sizeof(http), "  tls: {certificate: %s, key: %s}\n", live->ca, key);
	live_registry_start(&live->registry, live->dir, "", http);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/registry/live_registry.h"

#include "layers/base/buf.h"
#include "layers/base/fd.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#undef live_run

#define LIVE_LOG_BYTES ((size_t)1024 * 1024)
#define LIVE_TIMEOUT_MS 60000

static const char *const live_programs[] = {"/usr/bin/docker-registry", "/usr/bin/skopeo",
					    "/usr/bin/openssl"};

/* All of it: what a caller has set would change a registry (REGISTRY_*) or a login. */
static const char *const live_environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
					       "HOME=/nonexistent", NULL};

bool live_registry_can_run(void)
{
	for (size_t i = 0; i < sizeof(live_programs) / sizeof(live_programs[0]); i++) {
		if (faccessat(AT_FDCWD, live_programs[i], X_OK, 0) < 0)
			return false;
	}
	return true;
}

static void live_write_config(const char *path, const char *dir, const char *more,
			      const char *http_more)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	auto_buf struct buf text = BUF_INIT(10000);
	struct err err = {0};

	assert_true(fd >= 0);
	check_ok(buf_addf(&text, &err,
			  "version: 0.1\nlog: {level: info, accesslog: {disabled: true}}\n"
			  "storage: {filesystem: {rootdirectory: %s/storage}}\n"
			  "%shttp:\n  addr: 127.0.0.1:0\n%s",
			  dir, more, http_more),
		 &err);
	check_ok(fd_write_all(fd, text.ptr, text.len, &err), &err);
}

/* It says where it listens; the port was the kernel's choice. */
static void live_await(struct live_registry *registry)
{
	static const char mark[] = "listening on ";
	auto_buf struct buf log = BUF_INIT(LIVE_LOG_BYTES);
	struct err err = {0};
	char chunk[1024];
	const char *at = NULL;

	while (!at || !strpbrk(at + strlen(mark), ",\" \n")) {
		ssize_t n = read(registry->logfd, chunk, sizeof(chunk));

		if (n <= 0)
			fail_msg("the registry ended: %s", buf_str(&log).ptr);
		check_ok(buf_add(&log, (struct str){chunk, (size_t)n}, &err), &err);
		at = strstr(log.ptr, mark);
	}
	at += strlen(mark);
	(void)snprintf(registry->host, sizeof(registry->host), STR_FMT, (int)strcspn(at, ",\" \n"),
		       at);
}

void live_registry_start(struct live_registry *registry, const char *dir, const char *more,
			 const char *http_more)
{
	char config[256];
	const char *const argv[] = {"docker-registry", "serve", config, NULL};
	struct proc_spec spec = {.path = live_programs[0],
				 .argv = argv,
				 .envp = live_environment,
				 .fd_count = 3,
				 .die_with_parent = true};
	struct err err = {0};
	int fds[2];

	(void)snprintf(config, sizeof(config), "%s/registry.yml", dir);
	live_write_config(config, dir, more, http_more);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	(void)fcntl(fds[1], F_SETPIPE_SZ, (int)LIVE_LOG_BYTES);
	spec.fds[0] = -1;
	spec.fds[1] = spec.fds[2] = fds[1];
	registry->logfd = fds[0];
	check_ok(proc_spawn(&spec, &registry->proc, &err), &err);
	(void)close(fds[1]);
	live_await(registry);
}

void live_registry_stop(struct live_registry *registry)
{
	proc_done(&registry->proc);
	(void)close(registry->logfd);
}

void live_run(const char *const *argv)
{
	auto_proc struct proc proc = PROC_INIT;
	const struct proc_spec spec = {.path = argv[0],
				       .argv = argv,
				       .envp = live_environment,
				       .fds = {-1, -1, 2},
				       .fd_count = 3};
	struct err err = {0};
	int status;

	check_ok(proc_spawn(&spec, &proc, &err), &err);
	check_ok(proc_wait(&proc, LIVE_TIMEOUT_MS, NULL, &status, &err), &err);
	if (status != 0)
		fail_msg("%s %s ends with %d", argv[0], argv[1], status);
}

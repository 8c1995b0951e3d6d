/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/helper.h"

#include "layers/base/clock.h"
#include "layers/base/proc.h"
#include "registry/hub.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define HELPER_PREFIX "docker-credential-"
#define HELPER_PATH_MAX ((size_t)4096)

/* A program that is running, and the ends of its standard input and output that are ours. */
struct helper {
	struct proc proc;
	int fd; /* of a socket: both ways */
	int64_t until_ms;
	const struct cancel *cancel;
};

static void auto_helper_release(struct helper *helper)
{
	proc_done(&helper->proc);
	auto_close_release(&helper->fd);
}

/* In the directories' order; relative ones are passed over. */
static int helper_find(const char *search, const char *name, struct buf *out, struct err *err)
{
	struct str rest = str_of(search);
	struct str dir;

	while (str_cut(&rest, ':', &dir)) {
		struct stat st;

		buf_clear(out);
		if (dir.len == 0 || dir.ptr[0] != '/')
			continue;
		if (buf_addf(out, err, STR_FMT "/" HELPER_PREFIX "%s", STR_ARG(dir), name) < 0)
			return -1;
		if (stat(out->ptr, &st) == 0 && S_ISREG(st.st_mode) &&
		    faccessat(AT_FDCWD, out->ptr, X_OK, AT_EACCESS) == 0)
			return 0;
	}
	return err_set(err, ERR_UNAVAILABLE,
		       "there is no program " HELPER_PREFIX "%s in PATH, which keeps its "
		       "credentials",
		       name);
}

static int helper_start(struct helper *helper, const char *path, const char *verb, struct err *err)
{
	const char *const argv[] = {path, verb, NULL};
	struct proc_spec spec = {
		.path = path, .argv = argv, .fd_count = 3, .die_with_parent = true};
	int fds[2];
	int result;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return err_os(err, errno, "talk to %s", path);
	helper->fd = fds[0];
	spec.fds[0] = spec.fds[1] = fds[1];
	spec.fds[2] = -1;
	result = proc_spawn(&spec, &helper->proc, err);
	(void)close(fds[1]);
	return result;
}

/* A helper that does not read is no failure, if it answers. */
static void helper_say(const struct helper *helper, struct str text)
{
	(void)!send(helper->fd, text.ptr, text.len, MSG_NOSIGNAL);
	(void)shutdown(helper->fd, SHUT_WR);
}

/* 1 and a piece, 0 at the end, -1. */
static int helper_hear_piece(const struct helper *helper, struct buf *out, struct err *err)
{
	struct pollfd fds[] = {{.fd = helper->fd, .events = POLLIN},
			       {.fd = cancel_fd(helper->cancel), .events = POLLIN}};
	int64_t left = helper->until_ms - clock_monotonic_ms();
	char piece[4096];
	ssize_t n;
	int result;

	if (left <= 0)
		return err_set(err, ERR_TIMEOUT, "it does not answer");
	if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
		return err_os(err, errno, "wait");
	if (cancel_check(helper->cancel, err) < 0)
		return -1;
	if (!fds[0].revents)
		return 1;
	n = recv(helper->fd, piece, sizeof(piece), 0);
	if (n <= 0)
		return 0; /* a reset is an end, too */
	result = buf_add(out, (struct str){piece, (size_t)n}, err);
	explicit_bzero(piece, sizeof(piece));
	return result < 0 ? -1 : 1;
}

static int helper_hear(struct helper *helper, struct buf *out, int *out_status, struct err *err)
{
	int64_t left;
	int more = 1;

	while (more > 0)
		more = helper_hear_piece(helper, out, err);
	if (more < 0)
		return -1;
	left = helper->until_ms - clock_monotonic_ms();
	return proc_wait(&helper->proc, left > 0 ? (int)left : 0, helper->cancel, out_status, err);
}

static int helper_read(struct str text, struct credentials *out, struct err *err)
{
	AUTO(json) json_t *document = NULL;
	struct err hidden;
	struct str user;
	struct str password;

	if (json_parse(text, HELPER_ANSWER_MAX, &document, &hidden) < 0 ||
	    json_need_string(document, "", "Username", &user, &hidden) < 0 ||
	    json_need_string(document, "", "Secret", &password, &hidden) < 0 ||
	    user.len >= sizeof(out->user) || memchr(user.ptr, '\0', user.len))
		return err_set(err, ERR_INVALID, "its answer is not Username and Secret as JSON");
	(void)snprintf(out->user, sizeof(out->user), STR_FMT, STR_ARG(user));
	return secret_put(&out->password, password, err);
}

/* Say something to a program by this name, and hear how it ended. */
static int helper_talk(const struct helper_spec *spec, const char *name, const char *verb,
		       struct str said, struct buf *answer, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(HELPER_PATH_MAX);
	AUTO(helper)
	struct helper helper = {
		.proc = PROC_INIT,
		.fd = -1,
		.until_ms = clock_monotonic_ms() +
			    (spec->timeout_ms > 0 ? spec->timeout_ms : HELPER_MS),
		.cancel = spec->cancel,
	};
	int status;

	if (helper_find(spec->search, name, &path, err) < 0)
		return -1;
	if (helper_start(&helper, path.ptr, verb, err) < 0)
		return -1;
	helper_say(&helper, said);
	if (helper_hear(&helper, answer, &status, err) < 0 ||
	    proc_check_started(status, path.ptr, err) < 0)
		return -1;
	return status;
}

/* What it calls a host. */
static struct str helper_server(struct str host)
{
	return str_equal(host, STR(HUB_HOST)) ? STR(HUB_LOGIN) : host;
}

static int helper_failed(const struct helper_spec *spec, const char *name, struct err *err)
{
	if (err->kind == ERR_CANCELLED || err->kind == ERR_UNAVAILABLE)
		return -1;
	return err_ctx(err, "credentials for " STR_FMT ": " HELPER_PREFIX "%s", STR_ARG(spec->host),
		       name);
}

int helper_ask(const struct helper_spec *spec, struct credentials *credentials, struct err *err)
{
	auto_buf struct buf answer = BUF_WIPED(HELPER_ANSWER_MAX);
	int status = helper_talk(spec, credentials->helper, "get", helper_server(spec->host),
				 &answer, err);

	if (status > 0)
		(void)err_set(err, ERR_UNAUTHORIZED, "it has none, and ends with %d", status);
	if (status != 0 || helper_read(buf_str(&answer), credentials, err) < 0)
		return helper_failed(spec, credentials->helper, err);
	return 0;
}

int helper_store(const struct helper_spec *spec, const struct credentials *credentials,
		 struct err *err)
{
	auto_buf struct buf said = BUF_WIPED(HELPER_ANSWER_MAX);
	auto_buf struct buf answer = BUF_WIPED(HELPER_ANSWER_MAX);
	AUTO(json) json_t *value = json_object();
	int status = -1;

	json_set(value, "ServerURL", json_from_str(helper_server(spec->host)));
	json_set_text(value, "Username", credentials->user);
	json_set(value, "Secret", json_from_str(secret_bytes(&credentials->password)));
	if (json_format(value, &said, err) == 0)
		status = helper_talk(spec, credentials->helper, "store", buf_str(&said), &answer,
				     err);
	if (status > 0)
		(void)err_set(err, ERR_DENIED, "it does not keep them, and ends with %d", status);
	return status == 0 ? 0 : helper_failed(spec, credentials->helper, err);
}

int helper_erase(const struct helper_spec *spec, const char *name, struct err *err)
{
	auto_buf struct buf answer = BUF_WIPED(HELPER_ANSWER_MAX);
	int status = helper_talk(spec, name, "erase", helper_server(spec->host), &answer, err);

	if (status < 0)
		return helper_failed(spec, name, err);
	return status == 0;
}

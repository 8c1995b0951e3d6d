/* SPDX-License-Identifier: Apache-2.0 */
#define ERR_ITSELF
#include "layers/base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Exit codes follow sysexits.h where it has a fitting one. */
static const struct {
	const char *name;
	int exit_code;
	int http_status;
} err_faces[] = {
	[ERR_NONE] = {"None", 0, 200},
	[ERR_OS] = {"Internal", 70, 500},
	[ERR_INVALID] = {"InvalidArgument", 64, 400},
	[ERR_UNAUTHORIZED] = {"Unauthorized", 77, 401},
	[ERR_DENIED] = {"Forbidden", 77, 403},
	[ERR_NOT_FOUND] = {"NotFound", 66, 404},
	[ERR_NO_METHOD] = {"UnknownMethod", 64, 404},
	[ERR_NO_TOOL] = {"UnknownTool", 66, 404},
	[ERR_NOT_READY] = {"AgentNotReady", 75, 409},
	[ERR_CONFLICT] = {"Conflict", 75, 409},
	[ERR_GONE] = {"Gone", 66, 410},
	[ERR_LIMIT] = {"TooLarge", 65, 413},
	[ERR_REFUSED] = {"StepRefused", 65, 422},
	[ERR_STEP] = {"StepFailed", 1, 422},
	[ERR_CORRUPT] = {"Corrupt", 65, 422},
	[ERR_BUSY] = {"TooManyRequests", 75, 429},
	[ERR_UNSUPPORTED] = {"NotSupported", 69, 501},
	[ERR_REMOTE] = {"UpstreamFailed", 69, 502},
	[ERR_UNAVAILABLE] = {"Unavailable", 75, 503},
	[ERR_NO_PROVIDER] = {"ProviderUnavailable", 75, 503},
	[ERR_TIMEOUT] = {"TimedOut", 75, 504},
	[ERR_FULL] = {"StoreFull", 74, 507},
	[ERR_CANCELLED] = {"Cancelled", 130, 409},
};

static void err_begin(struct err *err, enum err_kind kind, int os)
{
	err->kind = kind;
	err->os = os;
	err->path[0] = '\0';
	err->expected[0] = '\0';
}

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	assert(kind != ERR_NONE);
	err_begin(err, kind, 0);
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

/* The system calls that fail by a limit, of the disk or of this process. */
static const struct err_limit {
	int os;
	enum err_kind kind;
	const char *advice;
} err_limits[] = {
	{ENOSPC, ERR_FULL, ""},
	{EDQUOT, ERR_FULL, ""},
	{EFBIG, ERR_UNSUPPORTED, " (ulimit -f, or the file system's ceiling)"},
	{EMFILE, ERR_UNSUPPORTED, "; raise the limit of open files (ulimit -n)"},
	{ENFILE, ERR_UNSUPPORTED, "; raise the system's limit (sysctl fs.file-max)"},
	{ENOMEM, ERR_UNSUPPORTED, "; give it more (ulimit -v, or a cgroup's memory.max)"},
};

static const struct err_limit *err_find_limit(int os)
{
	static const struct err_limit none = {0, ERR_OS, ""};

	for (size_t i = 0; i < sizeof(err_limits) / sizeof(err_limits[0]); i++) {
		if (err_limits[i].os == os)
			return &err_limits[i];
	}
	return &none;
}

int err_os(struct err *err, int os, const char *fmt, ...)
{
	const struct err_limit *limit = err_find_limit(os);
	char reason[128];
	va_list ap;
	size_t used;

	err_begin(err, limit->kind, os);
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	used = strlen(err->text);
	(void)snprintf(err->text + used, sizeof(err->text) - used, ": %s%s",
		       strerror_r(os, reason, sizeof(reason)), limit->advice);
	return -1;
}

int err_ctx(struct err *err, const char *fmt, ...)
{
	char inner[sizeof(err->text)];
	size_t room;
	size_t used;
	va_list ap;

	assert(err->kind != ERR_NONE);
	memcpy(inner, err->text, sizeof(inner));

	/* When it gets long, shorten the context: the cause is what is needed. */
	room = sizeof(err->text) - strnlen(inner, sizeof(inner) - 3) - 2;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, room, fmt, ap);
	va_end(ap);
	used = strlen(err->text);
	(void)snprintf(err->text + used, sizeof(err->text) - used, ": %s", inner);
	return -1;
}

int err_wrong(struct err *err, const char *expected, const char *fmt, ...)
{
	va_list ap;

	err_begin(err, ERR_INVALID, 0);
	(void)snprintf(err->expected, sizeof(err->expected), "%s", expected);
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

int err_at(struct err *err, const char *path, const char *key)
{
	const char *name = key ? key : "";

	(void)snprintf(err->path, sizeof(err->path), "%s%s%s", path, *path && *name ? "." : "",
		       name);
	return err->path[0] ? err_ctx(err, "%s", err->path) : -1;
}

const char *err_name(enum err_kind kind)
{
	return err_faces[kind].name;
}

int err_exit_code(enum err_kind kind)
{
	return err_faces[kind].exit_code;
}

int err_http_status(enum err_kind kind)
{
	return err_faces[kind].http_status;
}

enum err_kind err_kind_of(const char *name, int http_status)
{
	enum err_kind same_status = ERR_OS;

	for (int kind = ERR_OS; kind <= ERR_CANCELLED; kind++) {
		if (strcmp(err_faces[kind].name, name) == 0)
			return (enum err_kind)kind;
		if (same_status == ERR_OS && err_faces[kind].http_status == http_status)
			same_status = (enum err_kind)kind;
	}
	return same_status;
}

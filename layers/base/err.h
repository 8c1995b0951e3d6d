/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - what went wrong, once, in words a user can act on.
 *
 * Every function that can fail returns an int and takes a struct err last:
 *
 *	 0  success, or a count or file descriptor (>= 0)
 *	-1  failure, and *err says why
 *
 * A lookup returns 1 for a hit and 0 for a miss. A miss is an answer, not an
 * error, and never fills *err.
 *
 * The innermost function that understands the failure calls err_set(); callers
 * that know more about the circumstances add them in front with err_ctx():
 *
 *	bake app.bake: step 3: pull alpine:3.19: unexpected status 503
 *
 * Invariants:
 *   - err lives on the caller's stack; reporting a failure never allocates.
 *   - err is never NULL and is written only on failure.
 *   - the kind is chosen by err_set() and never changed by err_ctx().
 *   - library code returns errors; only api/ and main() print them.
 */
#pragma once

#include "layers/base/auto.h"

enum err_kind {
	ERR_NONE,
	ERR_OS,           /* a system call failed; err.os holds errno */
	ERR_INVALID,      /* the user's input is wrong, and retrying will not help */
	ERR_UNAUTHORIZED, /* no credentials, or unknown ones */
	ERR_DENIED,       /* credentials or policy refuse it */
	ERR_NOT_FOUND,    /* a thing named by the user does not exist */
	ERR_NO_METHOD,    /* what was asked for is nothing that can be asked for */
	ERR_NO_TOOL,      /* no tool has that name, or the agent has no tools */
	ERR_NOT_READY,    /* the image of a version is not there yet, or never will be */
	ERR_CONFLICT,     /* not in this state */
	ERR_GONE,         /* it existed, and never will again */
	ERR_LIMIT,        /* larger than a configured ceiling */
	ERR_REFUSED,      /* an instruction that no bake executes */
	ERR_STEP,         /* the user's own command failed */
	ERR_CORRUPT,      /* bytes do not match their digest or format */
	ERR_BUSY,         /* too much at once; later is fine */
	ERR_UNSUPPORTED,  /* this host or provider cannot */
	ERR_REMOTE,       /* a registry misbehaved; retrying may help */
	ERR_UNAVAILABLE,  /* not now */
	ERR_NO_PROVIDER,  /* this host cannot make the machines that a spec asks for */
	ERR_TIMEOUT,      /* not in time */
	ERR_FULL,         /* no space left */
	ERR_CANCELLED,    /* somebody asked for that */
};

#define ERR_PATH_MAX ((size_t)160)
#define ERR_EXPECTED_MAX ((size_t)192)

struct err {
	enum err_kind kind;
	int os;
	char text[512];
	/* Of a document that is wrong, and in text, too; "" where nothing is known: */
	char path[ERR_PATH_MAX];         /* which part of it, "image.steps[2]" */
	char expected[ERR_EXPECTED_MAX]; /* what belongs there, "a string" */
};

/* Record a failure. Always returns -1, so it can be the return statement. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...) PRINTF(3, 4);

/*
 * Record a failed system call: appends strerror(os), and which limit to raise
 * where that is the cause. ERR_FULL for a disk's (ENOSPC, EDQUOT);
 * ERR_UNSUPPORTED for one of a file's size, of descriptors or of memory
 * (EFBIG, EMFILE, ENFILE, ENOMEM), since waiting does not help; else ERR_OS.
 * Always returns -1.
 */
int err_os(struct err *err, int os, const char *fmt, ...) PRINTF(3, 4);

/* Put "context: " in front of an error that is already set. Returns -1. */
int err_ctx(struct err *err, const char *fmt, ...) PRINTF(2, 3);

/* ERR_INVALID, with what was expected, which the message says as well. Returns -1. */
int err_wrong(struct err *err, const char *expected, const char *fmt, ...) PRINTF(3, 4);

/*
 * What is wrong is this part of a document: err_ctx() with "path.key" (either may
 * be empty, key may be NULL), which err->path remembers. Returns -1.
 */
int err_at(struct err *err, const char *path, const char *key);

/* What a compiler cannot see from here: that these never return 0. */
#ifndef ERR_ITSELF
#define err_set(...) ((void)err_set(__VA_ARGS__), -1)
#define err_os(...) ((void)err_os(__VA_ARGS__), -1)
#define err_ctx(...) ((void)err_ctx(__VA_ARGS__), -1)
#define err_wrong(...) ((void)err_wrong(__VA_ARGS__), -1)
#define err_at(...) ((void)err_at(__VA_ARGS__), -1)
#endif

/* How the front doors show a kind: its name to clients, the exit code, the HTTP status. */
const char *err_name(enum err_kind kind);
int err_exit_code(enum err_kind kind);
int err_http_status(enum err_kind kind);

/* The kind that clients know by this name; where none is, one with this HTTP status, or ERR_OS. */
enum err_kind err_kind_of(const char *name, int http_status);

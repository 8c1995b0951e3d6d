/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/sole_priv.h"

#include "layers/base/clock.h"
#include "layers/base/fd.h"
#include "layers/base/hold.h"

#include <fcntl.h>
#include <poll.h>

#define SOLE_DIR "pull"
#define SOLE_LOOK_MS 50 /* a lock tells nobody that it is free */

/* Its last holder removed it. As hold_try(). */
static int sole_try(struct sole *sole, struct err *err)
{
	auto_close int made =
		openat(sole->dirfd, sole->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (made < 0)
		return err_os(err, errno, "open run/" SOLE_DIR "/%s", sole->name);
	return hold_try(sole->dirfd, sole->name, &sole->fd, err);
}

static int sole_await(const struct cancel *cancel, const struct cancel *cancel_too, struct err *err)
{
	struct pollfd stops[] = {{.fd = cancel_fd(cancel), .events = POLLIN},
				 {.fd = cancel_fd(cancel_too), .events = POLLIN}};

	(void)poll(stops, 2, SOLE_LOOK_MS);
	if (cancel_check(cancel, err) < 0 || cancel_check(cancel_too, err) < 0)
		return -1;
	return 0;
}

int sole_take(struct store *store, const struct digest *blob, const struct cancel *cancel,
	      const struct cancel *cancel_too, struct sole *out, struct err *err)
{
	AUTO(sole) struct sole sole = SOLE_INIT;
	int64_t end_ms = clock_monotonic_ms() + SOLE_WAIT_MS;
	int held;

	(void)digest_format(blob, sole.name);
	sole.dirfd = fd_make_dir(store_dirfd(store, STORE_RUN), SOLE_DIR, err);
	if (sole.dirfd < 0)
		return -1;
	held = sole_try(&sole, err);
	while (held == 0 && clock_monotonic_ms() < end_ms) {
		if (sole_await(cancel, cancel_too, err) < 0)
			return -1;
		held = sole_try(&sole, err);
	}
	if (held < 0)
		return -1;
	*out = sole;
	sole = SOLE_INIT;
	return 0;
}

void sole_drop(struct sole *sole)
{
	if (sole->fd >= 0)
		(void)unlinkat(sole->dirfd, sole->name, 0); /* run/ is emptied at boot */
	auto_close_release(&sole->fd);
	auto_close_release(&sole->dirfd);
}

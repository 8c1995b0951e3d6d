/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/cancel.h"

#include <stdint.h>
#include <sys/eventfd.h>

int cancel_init(struct cancel *cancel, struct err *err)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return err_os(err, errno, "create an event descriptor");
	cancel->fd = fd;
	atomic_init(&cancel->raised, false);
	return 0;
}

void cancel_done(struct cancel *cancel)
{
	auto_close_release(&cancel->fd);
	cancel->fd = -1;
}

void cancel_raise(struct cancel *cancel)
{
	static const uint64_t one = 1;
	int saved = errno;
	ssize_t n;

	atomic_store(&cancel->raised, true);
	n = write(cancel->fd, &one, sizeof(one));
	(void)n; /* a full counter is readable too */
	errno = saved;
}

bool cancel_is_raised(const struct cancel *cancel)
{
	return cancel && atomic_load(&cancel->raised);
}

int cancel_fd(const struct cancel *cancel)
{
	return cancel ? cancel->fd : -1;
}

int cancel_check(const struct cancel *cancel, struct err *err)
{
	if (cancel_is_raised(cancel))
		return err_set(err, ERR_CANCELLED, "cancelled");
	return 0;
}

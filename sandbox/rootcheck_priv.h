/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootcheck_priv.h - checks of an image's root before a runtime sees it.
 *
 * Runtimes have been led astray by a /dev, /proc or /sys that is a link, and by
 * a working directory in /proc. The merged root is checked here, with nothing
 * mounted in it and nothing running.
 */
#pragma once

#include "layers/base/buf.h"

/* ERR_REFUSED unless /, /dev, /proc and /sys are directories, not links. */
int rootcheck_mounts(int rootfd, struct err *err) MUST_CHECK;

/*
 * Append the working directory with all links resolved. ERR_REFUSED when it is
 * no directory of the image, or lies where something else is mounted later.
 */
int rootcheck_cwd(int rootfd, const char *cwd, struct buf *out, struct err *err) MUST_CHECK;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub.h - Docker Hub, which has several names.
 *
 * References call it docker.io, where nobody answers; its registry has a host of
 * its own, and logins are kept under a URL of its first protocol.
 */
#pragma once

#include "layers/base/buf.h"

#define HUB_HOST "docker.io"
#define HUB_REGISTRY "registry-1.docker.io"
#define HUB_LOGIN "https://index.docker.io/v1/"

/* Whether a host, in lower case, is one of its names. */
bool hub_is_host(struct str host);

/* What docker, podman and we call a host where its login is kept. */
struct str hub_login_key(struct str host);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registries.h - the configuration of registries, for one command: hosts in
 * plain HTTP, and mirrors with their credentials from the user's files.
 */
#pragma once

#include "api/cli.h"
#include "registry/credentials.h"
#include "registry/places.h"

struct registries {
	struct places places;         /* views of what follows, and of the configuration */
	struct str *insecure;         /* owned */
	struct place_mirror *mirrors; /* owned */
	struct credentials *logins;   /* owned; of each mirror */
	size_t login_count;
};

/*
 * Credentials are looked up for the mirrors of the registry that the reference
 * (text) names; others are asked anonymously. The cli's configuration is
 * borrowed.
 */
int registries_open(const struct cli *cli, struct str text, struct registries *out, struct err *err)
	MUST_CHECK;
void registries_done(struct registries *registries);

static inline void auto_registries_release(struct registries *slot)
{
	registries_done(slot);
}
#define auto_registries AUTO(registries)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_fields_priv.h - the fields of one --mount as they are written, before it
 * is known what each of them means.
 *
 * Invariant: each option is there once, and after mount_fields_type() each is
 * one that its type has.
 */
#pragma once

#include "bake/mount.h"

enum mount_option {
	MOUNT_OPTION_TYPE,
	MOUNT_OPTION_FROM,
	MOUNT_OPTION_SOURCE,
	MOUNT_OPTION_TARGET,
	MOUNT_OPTION_READ_ONLY,
	MOUNT_OPTION_READ_WRITE,
	MOUNT_OPTION_REQUIRED,
	MOUNT_OPTION_SIZE,
	MOUNT_OPTION_ID,
	MOUNT_OPTION_SHARING,
	MOUNT_OPTION_MODE,
	MOUNT_OPTION_UID,
	MOUNT_OPTION_GID,
	MOUNT_OPTION_ENV,
	MOUNT_OPTION_CACHE,
	MOUNT_OPTIONS,
};

struct mount_fields {
	const struct state *state;      /* for variables; NULL: they have no values yet */
	char *value[MOUNT_OPTIONS];     /* owned; NULL where the field is absent or bare */
	const char *key[MOUNT_OPTIONS]; /* as the user has it; NULL where it is absent */
	bool unknown[MOUNT_OPTIONS];    /* its variables have no values yet */
};

/* Read the fields; variables in them expand with fields->state. */
int mount_fields_read(struct mount_fields *fields, struct str text, struct err *err) MUST_CHECK;
void mount_fields_done(struct mount_fields *fields);

/* The type, which may not be unknown. ERR_REFUSED where it does not have one of the others. */
int mount_fields_type(const struct mount_fields *fields, enum mount_type *out, struct err *err)
	MUST_CHECK;

/* A value that can be checked now, or NULL. */
const char *mount_fields_value(const struct mount_fields *fields, enum mount_option option);

/* "bind", "cache", "secret", "tmpfs". */
const char *mount_type_name(enum mount_type type);

static inline void auto_mount_fields_release(struct mount_fields *slot)
{
	mount_fields_done(slot);
}
#define auto_mount_fields AUTO(mount_fields)

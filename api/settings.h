/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h - settings: from options first, then the environment, then the
 * configuration's file, then defaults. settings.c is the only file that reads
 * the environment.
 *
 * 	HEARTH_CONFIG     the configuration (config.h)
 * 	HEARTH_DATA       the data directory
 * 	HEARTH_MAP_BYTES  bytes of each of the store's two maps, for hosts without
 * 	                  the address space
 * 	HEARTH_LOG        modules whose debug lines go to standard error:
 * 	                  "layers,registry", or "all"
 * 	HEARTH_URL        the daemon that commands ask, http(s)://HOST[:PORT] or unix:/SOCKET;
 * 	                  else that of the data directory
 * 	HEARTH_TOKEN      the token by which it knows them
 * 	NOTIFY_SOCKET     where systemd hears of the daemon
 * 	DOCKER_CONFIG     the directory of config.json, for credentials
 * 	REGISTRY_AUTH_FILE  where podman login keeps them
 * 	SOURCE_DATE_EPOCH the latest time in a reproducible image, in seconds
 *
 * HEARTH_CONFIG, HEARTH_DATA and HEARTH_MAP_BYTES that are set but empty are
 * ERR_INVALID: they are a script's mistake, and the default is another data
 * directory. A switch that is empty is off. DOCKER_CONFIG, SOURCE_DATE_EPOCH, HOME,
 * XDG_CONFIG_HOME and XDG_DATA_HOME are not ours, and count as unset then, as
 * elsewhere.
 */
#pragma once

#include "api/cli.h"

/* Fill the cli's configuration and paths. */
int settings_load(struct cli *cli, struct err *err) MUST_CHECK;

/* The same for a role of ours, which is told where the store is. */
int settings_role(struct cli *cli, struct err *err) MUST_CHECK;

/* The log's settings alone, in every process. */
int settings_log(struct err *err) MUST_CHECK;

/* Whether a live display is wanted on standard error, and how wide it is. */
bool settings_terminal(int *out_columns);

/* The text of SOURCE_DATE_EPOCH, or NULL. */
const char *settings_source_date_epoch(void);

/* The path of Docker's config.json, or NULL. The caller frees it. */
char *settings_docker_config(void);

/* The path of the auth.json of podman, buildah and skopeo, or NULL. The caller frees it. */
char *settings_auth_file(void);

/* HEARTH_URL and HEARTH_TOKEN; NULL where they are not set. */
int settings_daemon(const char **out_url, const char **out_token, struct err *err) MUST_CHECK;

/* The text of NOTIFY_SOCKET, or NULL. */
const char *settings_notify_socket(void);

/* Where programs are looked for, as PATH has it; "" for nowhere. */
const char *settings_search(void);

/* Any variable that the user names; NULL where it is not set. */
const char *settings_named(const char *name);

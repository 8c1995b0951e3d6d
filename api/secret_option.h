/* SPDX-License-Identifier: Apache-2.0 */
/* secret_option.h - where a bake's secrets come from: --secret, or the configuration. */
#pragma once

#include "api/cli.h"
#include "bake/secrets.h"

#define SECRET_OPTION                                                                \
	{                                                                            \
		"secret", "id=ID,src=FILE|env=NAME",                                 \
			"give a file or a variable to RUN --mount=type=secret", true \
	}

/* Read all that are given. ERR_NOT_FOUND for a file or a variable that is not there. */
int secret_option_read(const struct cli *cli, struct secrets *out, struct err *err) MUST_CHECK;

/* Those of the configuration. One that is not there now is left out, and the log says so. */
int secret_option_read_config(const struct config *config, struct secrets *out, struct err *err)
	MUST_CHECK;

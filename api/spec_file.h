/* SPDX-License-Identifier: Apache-2.0 */
/* spec_file.h - the spec that a command's first argument names, as its options change it. */
#pragma once

#include "api/cli.h"
#include "bake/spec.h"

#define SPEC_FILE_OPTIONS                                                                          \
	{"base", "REF", "use this base instead of the spec's", false},                             \
		{"context", "DIR|TAR|-|DIGEST", "what COPY reads, instead of the spec's", false},  \
		{"source-date-epoch", "SECONDS", "bake reproducibly: later times become this one", \
		 false},                                                                           \
	{                                                                                          \
		"platform", "OS/ARCH", "bake for this platform; for the host's by default", false  \
	}

/* Warnings about it go to standard error. ERR_NOT_FOUND for a file that is not there. */
int spec_file_read(const struct cli *cli, struct spec *out, struct err *err) MUST_CHECK;

/*
 * The directory that COPY reads: --context, or the spec's (context_arg.h). *out
 * stays as it is where there is none.
 */
int spec_file_open_context(const struct cli *cli, const struct spec *spec, struct store *store,
			   int *out, struct err *err) MUST_CHECK;

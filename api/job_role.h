/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_role.h - the roles of the program `hearth` itself: `hearth role NAME` is
 * started by the daemon only, and is not in --help.
 */
#pragma once

/* argv begins with the role's name. The exit code. */
int job_role_run(int argc, char **argv);

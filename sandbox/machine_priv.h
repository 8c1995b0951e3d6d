/* SPDX-License-Identifier: Apache-2.0 */
/* machine_priv.h - a machine, as machine.c makes it and machine_run.c uses it. */
#pragma once

#include "sandbox/etc_priv.h"
#include "sandbox/inner_priv.h"
#include "sandbox/machine.h"
#include "sandbox/slot_priv.h"
#include "sandbox/stack_priv.h"

#define MACHINE_PATH_MAX ((size_t)128)

struct machine {
	struct store *store;
	struct slot slot;
	struct stack stack;
	struct digest *diff_ids; /* of the distinct trees */
	size_t diff_id_count;
	enum network_mode network_mode;
	struct network_host *hosts;
	size_t host_count;
	struct network *network; /* from the first run on */
	struct machine_limits limits;
	unsigned limits_hit; /* by the last command; enum report_limit, or-ed */
	char runtime[256];
	char *agent_path;
	int machinesfd; /* opened in our mount namespace: the store's own may be older than it */
	int treesfd;
	int basefd; /* run/base, of all machines */
	char scratch[MACHINE_PATH_MAX];
	int scratchfd;
	int volumefd;         /* of a limited disk, where up/ and work/ lie; else -1 */
	struct err unlimited; /* why there is none although it was asked for */
	int rootfd;
	struct etc etc;
	struct inner inner;
	bool has_extras; /* sysfs and the agent are mounted */
	unsigned runs;
	unsigned images; /* that were looked at */
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties: what a state makes of a mount has an absolute target below the
 * root, and its form alone was taken as well.
 */
#include "bake/mount.h"
#include "bake/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct mount *mount)
{
	if (mount->target && (mount->target[0] != '/' || mount->target[1] == '\0'))
		abort();
	if (!mount->target && (mount->type != MOUNT_SECRET || !mount->env))
		abort();
	if ((mount->type == MOUNT_CACHE || mount->type == MOUNT_SECRET) && !mount->id)
		abort();
	if (mount->mode > 07777 || mount->uid > 65535 || mount->gid > 65535)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = {(const char *)data, size};
	struct platform platform;
	auto_state struct state state = {0};
	auto_mount struct mount made = {0};
	auto_mount struct mount form = {0};
	struct err err;

	platform_host(&platform);
	if (state_from_scratch(&platform, &state, &err) < 0)
		abort();
	if (mount_parse(input, &state, &made, &err) < 0)
		return 0;
	check(&made);
	if (mount_parse(input, NULL, &form, &err) < 0)
		abort();
	return 0;
}

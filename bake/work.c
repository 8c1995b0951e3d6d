/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/work.h"

#include "bake/wire.h"

int work_receive(struct buf *out, struct err *err)
{
	enum wire_type type;
	int got = wire_receive(WORK_FD_ASKER, NULL, &type, out, err);

	if (got < 0)
		return -1;
	if (got == 0 || type != WIRE_REQUEST)
		return err_set(err, ERR_UNAVAILABLE, "no request came");
	return 0;
}

int work_need_root(struct err *err)
{
	if (geteuid() == 0)
		return 0;
	return err_set(
		err, ERR_UNSUPPORTED,
		"layers are unpacked and steps run by root here: use sudo; hearth doctor says "
		"more");
}

/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_MODULE "registry"
#include "registry/v2_mount.h"

#include "layers/base/log.h"
#include "registry/intake.h"
#include "registry/repository.h"
#include "registry/v2_upload.h"

struct v2_mount {
	struct v2_call *call;
	struct meta *meta;
	struct digest digest;
};

/* Whether who asks may read the blob there: 1, 0, -1. */
static int v2_mount_is_from(const struct v2_mount *mount, struct str repository, struct err *err)
{
	const struct v2_call *call = mount->call;
	struct repository_item item;

	if (!str_equal(repository, call->path.repository) &&
	    !call->may(call->may_ctx, repository, V2_PULL))
		return 0;
	return repository_find(mount->meta, repository, REPOSITORY_BLOB, &mount->digest, &item,
			       err);
}

static int v2_mount_find_anywhere(const struct v2_mount *mount, struct err *err)
{
	char name[GRAMMAR_NAME_MAX + 1] = "";
	int found = v2_mount_is_from(mount, mount->call->path.repository, err);

	for (size_t i = 0; found == 0 && i < V2_MOUNT_NAMES_MAX; i++) {
		int more = repository_next_name(mount->meta, name, err);

		if (more <= 0)
			return more;
		found = v2_mount_is_from(mount, str_of(name), err);
	}
	return found;
}

/* 1 a repository gives it, 0 none does, -1. */
static int v2_mount_find(const struct v2_mount *mount, struct err *err)
{
	struct str from;

	if (!v2_path_find(mount->call->request, STR("from"), &from))
		return v2_mount_find_anywhere(mount, err);
	return grammar_is_name(from) ? v2_mount_is_from(mount, from, err) : 0;
}

static int v2_mount_try(struct v2_call *call, const struct digest *digest, struct err *err)
{
	struct v2_mount mount = {.call = call, .digest = *digest};
	int found;

	if (meta_begin(call->v2->store, META_READ, &mount.meta, err) < 0)
		return -1;
	found = v2_mount_find(&mount, err);
	meta_abort(mount.meta);
	if (found <= 0)
		return found;
	return intake_mount(call->v2->store, digest, call->path.repository, err);
}

bool v2_mount(struct v2_call *call)
{
	struct digest digest;
	struct str text;
	struct err err;
	int mounted;

	if (!v2_path_find(call->request, STR("mount"), &text) ||
	    digest_parse(text, &digest, &err) < 0)
		return false;
	mounted = v2_mount_try(call, &digest, &err);
	if (mounted < 0)
		log_warn("blob not mounted why=\"%s\"", err.text);
	if (mounted == 1)
		v2_upload_answer_kept(call, &digest);
	return mounted == 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* copy_owner.c - --chown: names are looked up in the root that is copied into. */
#include "bake/copy.h"

#include "sandbox/user.h"

#define COPY_OWNER_MAX ((size_t)1024)

static bool copy_is_number(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
	}
	return text.len > 0;
}

int copy_find_owner(int rootfd, const char *text, uid_t *out_uid, gid_t *out_gid, struct err *err)
{
	auto_buf struct buf spelled = BUF_INIT(COPY_OWNER_MAX);
	const char *colon = strchr(text, ':');
	struct str name = {text, colon ? (size_t)(colon - text) : strlen(text)};
	struct str group = str_of(colon ? colon + 1 : "");
	struct user user;

	if (colon ? group.len == 0 : name.len == 0)
		return err_set(err, ERR_REFUSED,
			       "owner \"%s\": expected USER, USER:GROUP or :GROUP", text);
	if (name.len == 0)
		name = STR("0");
	if (!colon && (copy_is_number(name) || str_equal(name, STR("root"))))
		group = name;
	name = str_equal(name, STR("root")) ? STR("0") : name;
	group = str_equal(group, STR("root")) ? STR("0") : group;
	if (buf_addf(&spelled, err, STR_FMT "%s" STR_FMT, STR_ARG(name), group.len ? ":" : "",
		     STR_ARG(group)) < 0 ||
	    user_find_in_root(rootfd, buf_str(&spelled), &user, err) < 0)
		return err_ctx(err, "owner \"%s\"", text);
	*out_uid = user.uid;
	*out_gid = user.gid;
	return 0;
}

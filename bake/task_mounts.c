/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/task_mounts_priv.h"

#include "bake/wire.h"
#include "layers/digest_json.h"

static json_t *task_mount_format(const struct task_mount *entry)
{
	const struct mount *mount = &entry->mount;
	json_t *object = json_object();

	json_set_int(object, "type", mount->type);
	json_set_int(object, "sharing", mount->sharing);
	json_set_int(object, "mode", mount->mode);
	json_set_int(object, "uid", mount->uid);
	json_set_int(object, "gid", mount->gid);
	json_set_size(object, "size", mount->size);
	json_set_text(object, "target", mount->target);
	json_set_text(object, "source", mount->source);
	json_set_text(object, "from", mount->from);
	json_set_text(object, "id", mount->id);
	json_set_text(object, "env", mount->env);
	if (mount->type == MOUNT_BIND)
		digest_json_set(object, "content", &mount->content);
	json_set_bool(object, "readOnly", mount->read_only);
	json_set_bool(object, "given", entry->secret != NULL);
	return object;
}

json_t *task_mounts_format(const struct task *task)
{
	json_t *array = json_array();

	for (size_t i = 0; i < task->mount_count; i++)
		(void)json_array_append_new(array, task_mount_format(&task->mounts[i]));
	return array;
}

static int mount_get_text(const json_t *object, const char *key, char **out, struct err *err)
{
	struct str text;
	int found = json_get_string(object, "mounts", key, &text, err);

	if (found <= 0)
		return found;
	*out = str_dup(text);
	return 0;
}

static int mount_get_texts(const json_t *object, struct mount *mount, struct err *err)
{
	if (mount_get_text(object, "target", &mount->target, err) < 0 ||
	    mount_get_text(object, "source", &mount->source, err) < 0 ||
	    mount_get_text(object, "from", &mount->from, err) < 0 ||
	    mount_get_text(object, "id", &mount->id, err) < 0)
		return -1;
	return mount_get_text(object, "env", &mount->env, err);
}

static int mount_get_numbers(const json_t *object, struct mount *mount, struct err *err)
{
	int64_t values[6];
	static const char *const keys[] = {"type", "sharing", "mode", "uid", "gid", "size"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (json_need_int(object, "mounts", keys[i], &values[i], err) < 0)
			return -1;
	}
	mount->type = (enum mount_type)values[0];
	mount->sharing = (enum cache_sharing)values[1];
	mount->mode = (mode_t)values[2];
	mount->uid = (uid_t)values[3];
	mount->gid = (gid_t)values[4];
	mount->size = (uint64_t)values[5];
	return json_get_bool(object, "mounts", "readOnly", &mount->read_only, err) < 0 ? -1 : 0;
}

static int task_mount_parse(const json_t *object, struct task_mount *entry, struct err *err)
{
	struct mount *mount = &entry->mount;
	bool given = false;

	if (mount_get_numbers(object, mount, err) < 0 || mount_get_texts(object, mount, err) < 0 ||
	    json_get_bool(object, "mounts", "given", &given, err) < 0)
		return -1;
	entry->secret = given ? &entry->received : NULL;
	if (mount->type != MOUNT_BIND)
		return 0;
	return digest_json_need(object, "mounts", "content", &mount->content, err);
}

int task_mounts_parse(const json_t *document, struct task *task, struct err *err)
{
	json_t *array;

	if (json_need_array(document, "", "mounts", &array, err) < 0)
		return -1;
	task->mounts = calloc(json_array_size(array) + 1, sizeof(*task->mounts));
	if (!task->mounts)
		abort();
	task->mount_count = json_array_size(array);
	for (size_t i = 0; i < task->mount_count; i++) {
		if (task_mount_parse(json_array_get(array, i), &task->mounts[i], err) < 0)
			return -1;
	}
	return 0;
}

void task_mounts_done(struct task *task)
{
	for (size_t i = 0; i < task->mount_count; i++) {
		mount_done(&task->mounts[i].mount);
		secret_done(&task->mounts[i].received);
	}
	free(task->mounts);
}

int task_send_secrets(const struct task *task, int fd, struct err *err)
{
	for (size_t i = 0; i < task->mount_count; i++) {
		const struct secret *secret = task->mounts[i].secret;

		if (secret && wire_send(fd, WIRE_SECRET, secret_bytes(secret), err) < 0)
			return -1;
	}
	return 0;
}

int task_receive_secrets(struct task *task, int fd, struct err *err)
{
	for (size_t i = 0; i < task->mount_count; i++) {
		auto_buf struct buf bytes = BUF_WIPED(SECRET_FILE_MAX);
		enum wire_type type;
		int got;

		if (!task->mounts[i].secret)
			continue;
		got = wire_receive(fd, NULL, &type, &bytes, err);
		if (got < 0)
			return err_ctx(err, "secret");
		if (got == 0 || type != WIRE_SECRET)
			return err_set(err, ERR_UNAVAILABLE, "a secret did not come");
		secret_take(&task->mounts[i].received, &bytes);
	}
	return 0;
}

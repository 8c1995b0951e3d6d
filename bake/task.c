/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/task.h"

#include "bake/task_hosts_priv.h"
#include "bake/task_mounts_priv.h"
#include "layers/digest_json.h"

#include <arpa/inet.h>
#include <assert.h>

static json_t *words_json(const char *const *words, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(array, json_from_str(str_of(words[i])));
	return array;
}

static json_t *layers_json(const struct task_layer *layers, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *layer = json_object();

		digest_json_set(layer, "blob", &layers[i].blob);
		digest_json_set(layer, "diffId", &layers[i].diff_id);
		json_set_size(layer, "size", layers[i].size);
		(void)json_array_append_new(array, layer);
	}
	return array;
}

static json_t *images_json(const struct task *task)
{
	json_t *array = json_array();

	for (size_t i = 0; i < task->image_count; i++)
		(void)json_array_append_new(
			array, layers_json(task->images[i].layers, task->images[i].layer_count));
	return array;
}

void task_meeting(const struct task *task, struct digest *out)
{
	AUTO(hasher) struct hasher hasher = {0};

	*out = task->key;
	if (!task->draft)
		return;
	hasher_init(&hasher);
	hasher_add(&hasher, (struct str){(const char *)task->key.bytes, sizeof(task->key.bytes)});
	hasher_add(&hasher, str_of(task->draft));
	hasher_final(&hasher, out);
}

json_t *task_format(const struct task *task)
{
	json_t *value = json_object();

	digest_json_set(value, "key", &task->key);
	digest_json_set(value, "parent", &task->parent);
	(void)json_object_set_new(value, "layers", layers_json(task->layers, task->layer_count));
	(void)json_object_set_new(value, "images", images_json(task));
	json_set_text(value, "imageName", task->image_name);
	(void)json_object_set_new(value, "argv", words_json(task->argv, task->argc));
	(void)json_object_set_new(value, "env", words_json(task->env, task->env_count));
	(void)json_object_set_new(value, "hosts", task_hosts_format(task->hosts, task->host_count));
	(void)json_object_set_new(value, "mounts", task_mounts_format(task));
	json_set_int(value, "kind", task->kind);
	json_set_int(value, "network", task->network);
	json_set_size(value, "memoryBytes", task->limits.memory_bytes);
	json_set_size(value, "cpuMillis", task->limits.cpu_millis);
	json_set_size(value, "pids", task->limits.pids);
	json_set_size(value, "diskBytes", task->limits.disk_bytes);
	json_set_int(value, "timeoutMs", task->timeout_ms);
	json_set_size(value, "mapBytes", task->store_map_bytes);
	json_set_text(value, "codec", layer_codec_name(task->codec));
	json_set_text(value, "platform", task->platform);
	json_set_text(value, "workdir", task->workdir);
	json_set_text(value, "user", task->user);
	json_set_text(value, "chown", task->chown);
	json_set_text(value, "chmod", task->chmod);
	json_set_text(value, "runtime", task->runtime);
	json_set_text(value, "agent", task->agent_path);
	json_set_text(value, "store", task->store_path);
	json_set_bool(value, "fresh", task->fresh);
	json_set_text(value, "draft", task->draft);
	(void)json_object_set_new(value, "excludes",
				  words_json(task->excludes, task->exclude_count));
	json_set_bool(value, "parents", task->parents);
	if (task->content)
		digest_json_set(value, "content", task->content);
	if (task->clamp)
		json_set_int(value, "clamp", *task->clamp);
	if (task->components)
		(void)json_object_set(value, "components", task->components);
	return value;
}

/* The strings of an array, NULL at the end; they lie in the document. */
static int parse_words(const json_t *object, const char *key, const char ***out, size_t *out_count,
		       struct err *err)
{
	json_t *array;
	const char **words;

	if (json_need_array(object, "", key, &array, err) < 0)
		return -1;
	words = calloc(json_array_size(array) + 1, sizeof(*words));
	if (!words)
		abort();
	*out = words; /* the task's from here on */
	for (size_t i = 0; i < json_array_size(array); i++) {
		words[i] = json_string_value(json_array_get(array, i));
		if (!words[i])
			return err_set(err, ERR_INVALID, "%s[%zu]: expected a string", key, i);
	}
	*out_count = json_array_size(array);
	return 0;
}

static int parse_layer(const json_t *object, struct task_layer *out, struct err *err)
{
	int64_t size;

	if (digest_json_need(object, "", "blob", &out->blob, err) < 0 ||
	    digest_json_need(object, "", "diffId", &out->diff_id, err) < 0 ||
	    json_need_int(object, "layers", "size", &size, err) < 0)
		return -1;
	out->size = (uint64_t)size;
	return 0;
}

static int parse_layers(const json_t *array, struct task_layer **out, size_t *out_count,
			struct err *err)
{
	struct task_layer *layers = calloc(json_array_size(array) + 1, sizeof(*layers));

	if (!layers)
		abort();
	*out = layers; /* the task's from here on */
	for (size_t i = 0; i < json_array_size(array); i++) {
		if (parse_layer(json_array_get(array, i), &layers[i], err) < 0)
			return -1;
	}
	*out_count = json_array_size(array);
	return 0;
}

static int parse_images(const json_t *object, struct task *task, struct err *err)
{
	json_t *array;

	if (json_need_array(object, "", "images", &array, err) < 0)
		return -1;
	task->images = calloc(json_array_size(array) + 1, sizeof(*task->images));
	if (!task->images)
		abort();
	task->image_count = json_array_size(array);
	for (size_t i = 0; i < task->image_count; i++) {
		struct task_image *image = &task->images[i];

		if (parse_layers(json_array_get(array, i), &image->layers, &image->layer_count,
				 err) < 0)
			return -1;
	}
	return 0;
}

static int parse_stacks(const json_t *object, struct task *task, struct err *err)
{
	json_t *array;

	if (json_need_array(object, "", "layers", &array, err) < 0 ||
	    parse_layers(array, &task->layers, &task->layer_count, err) < 0)
		return -1;
	task->image_name = json_string_value(json_object_get(object, "imageName"));
	return parse_images(object, task, err);
}

static int parse_numbers(const json_t *object, struct task *task, struct err *err)
{
	int64_t kind;
	int64_t network;
	int64_t memory;
	int64_t cpu;
	int64_t pids;
	int64_t disk;
	int64_t map;

	if (json_need_int(object, "", "kind", &kind, err) < 0 ||
	    json_need_int(object, "", "network", &network, err) < 0 ||
	    json_need_int(object, "", "memoryBytes", &memory, err) < 0 ||
	    json_need_int(object, "", "cpuMillis", &cpu, err) < 0 ||
	    json_need_int(object, "", "pids", &pids, err) < 0 ||
	    json_need_int(object, "", "diskBytes", &disk, err) < 0 ||
	    json_need_int(object, "", "timeoutMs", &task->timeout_ms, err) < 0 ||
	    json_need_int(object, "", "mapBytes", &map, err) < 0 ||
	    json_get_bool(object, "", "fresh", &task->fresh, err) < 0)
		return -1;
	task->kind = (enum instruction_kind)kind;
	task->network = (enum network_mode)network;
	task->limits.memory_bytes = (uint64_t)memory;
	task->limits.cpu_millis = (uint64_t)cpu;
	task->limits.pids = (uint64_t)pids;
	task->limits.disk_bytes = (uint64_t)disk;
	task->store_map_bytes = (uint64_t)map;
	return 0;
}

static int parse_codec(const json_t *object, struct task *task, struct err *err)
{
	struct str name;

	if (json_need_string(object, "", "codec", &name, err) < 0)
		return -1;
	return layer_codec_parse(name, &task->codec, err);
}

static int parse_content(const json_t *object, struct task *task, struct err *err)
{
	if (!json_object_get(object, "content"))
		return 0;
	task->content = &task->content_storage;
	return digest_json_need(object, "", "content", &task->content_storage, err);
}

static int parse_clamp(const json_t *object, struct task *task, struct err *err)
{
	int found = json_get_int(object, "", "clamp", &task->clamp_storage, err);

	if (found == 1)
		task->clamp = &task->clamp_storage;
	return found < 0 ? -1 : 0;
}

static int parse_platform(const json_t *object, struct task *task, struct err *err)
{
	struct str text;

	if (json_need_string(object, "", "platform", &text, err) < 0)
		return -1;
	(void)snprintf(task->platform, sizeof(task->platform), STR_FMT, STR_ARG(text));
	return 0;
}

static int parse_parts(struct task *task, struct err *err)
{
	const json_t *value = task->document;

	if (digest_json_need(value, "", "key", &task->key, err) < 0 ||
	    digest_json_need(value, "", "parent", &task->parent, err) < 0 ||
	    parse_stacks(value, task, err) < 0 ||
	    parse_words(value, "argv", &task->argv, &task->argc, err) < 0 ||
	    parse_words(value, "env", &task->env, &task->env_count, err) < 0 ||
	    parse_words(value, "excludes", &task->excludes, &task->exclude_count, err) < 0 ||
	    json_get_bool(value, "", "parents", &task->parents, err) < 0 ||
	    parse_content(value, task, err) < 0 || parse_clamp(value, task, err) < 0 ||
	    task_mounts_parse(value, task, err) < 0 || parse_platform(value, task, err) < 0 ||
	    task_hosts_parse(value, &task->hosts, &task->host_count, err) < 0 ||
	    parse_numbers(value, task, err) < 0 || parse_codec(value, task, err) < 0)
		return -1;
	task->workdir = json_string_value(json_object_get(value, "workdir"));
	task->user = json_string_value(json_object_get(value, "user"));
	task->chown = json_string_value(json_object_get(value, "chown"));
	task->chmod = json_string_value(json_object_get(value, "chmod"));
	task->runtime = json_string_value(json_object_get(value, "runtime"));
	task->agent_path = json_string_value(json_object_get(value, "agent"));
	task->store_path = json_string_value(json_object_get(value, "store"));
	task->components = json_object_get(value, "components");
	task->draft = json_string_value(json_object_get(value, "draft"));
	if (!task->workdir || !task->user || !task->store_path || !task->agent_path)
		return err_set(err, ERR_INVALID, "workdir, user, store and agent are needed");
	return 0;
}

int task_parse(struct str text, struct task *out, struct err *err)
{
	auto_task struct task task = {0};

	if (json_parse(text, SIZE_MAX, &task.document, err) < 0 || parse_parts(&task, err) < 0)
		return err_ctx(err, "task");
	*out = task;
	if (task.content)
		out->content = &out->content_storage;
	if (task.clamp)
		out->clamp = &out->clamp_storage;
	task = (struct task){0};
	return 0;
}

void task_done(struct task *task)
{
	task_mounts_done(task);
	for (size_t i = 0; i < task->image_count; i++)
		free(task->images[i].layers);
	free(task->images);
	free(task->layers);
	free(task->argv);
	free(task->env);
	free(task->excludes);
	free(task->hosts);
	json_decref(task->document);
	*task = (struct task){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/state.h"

#include "layers/base/array.h"
#include "layers/base/clock.h"
#include "layers/base/path.h"
#include "layers/digest_json.h"

#include <endian.h>
#include <stdio.h>

#define STATE_DOCUMENT_MAX ((size_t)16 * 1024 * 1024)

static const struct {
	const char *theirs;
	const char *ours;
} media_types[] = {
	{MEDIA_OCI_LAYER_ZSTD, MEDIA_OCI_LAYER_ZSTD},
	{MEDIA_OCI_LAYER_GZIP, MEDIA_OCI_LAYER_GZIP},
	{MEDIA_OCI_LAYER_TAR, MEDIA_OCI_LAYER_TAR},
	{MEDIA_DOCKER_LAYER_GZIP, MEDIA_OCI_LAYER_GZIP},
	{"application/vnd.docker.image.rootfs.diff.tar", MEDIA_OCI_LAYER_TAR},
	{"application/vnd.docker.image.rootfs.diff.tar.zstd", MEDIA_OCI_LAYER_ZSTD},
};

static int state_media_type(struct str theirs, char out[static 80], struct err *err)
{
	for (size_t i = 0; i < sizeof(media_types) / sizeof(media_types[0]); i++) {
		if (!str_equal(theirs, str_of(media_types[i].theirs)))
			continue;
		(void)snprintf(out, 80, "%s", media_types[i].ours);
		return 0;
	}
	return err_set(err, ERR_UNSUPPORTED, "a layer of the base has the unknown type " STR_FMT,
		       STR_ARG(theirs));
}

static json_t *state_part(const struct state *state)
{
	return json_object_get(state->config, "config");
}

/* The member of an object, which becomes an empty `fresh` where it is absent. */
static json_t *state_member(json_t *object, const char *key, json_t *fresh)
{
	AUTO(json) json_t *made = fresh;
	json_t *there = json_object_get(object, key);

	if (there && json_typeof(there) == json_typeof(made))
		return there;
	json_object_set(object, key, made);
	return made; /* the object holds it */
}

static int state_push_layer(struct state *state, const struct state_layer *layer, struct err *err)
{
	const struct digest *below = state->layer_count ? &state->chain_id : NULL;
	struct digest chain;

	if (state->layer_count == IMAGE_LAYERS_MAX)
		return err_set(err, ERR_LIMIT, "an image has at most %d layers; join some steps",
			       IMAGE_LAYERS_MAX);
	state->layers = array_grow(state->layers, state->layer_count, sizeof(*state->layers));
	image_config_chain_id(below, &layer->diff_id, &chain);
	state->chain_id = chain;
	state->layers[state->layer_count++] = *layer;
	return 0;
}

static int state_take_layers(struct state *state, const struct manifest *manifest,
			     const struct image_config *config, struct err *err)
{
	if (manifest->layer_count != config->diff_id_count)
		return err_set(err, ERR_CORRUPT,
			       "the base's manifest has %zu layers and its config %zu",
			       manifest->layer_count, config->diff_id_count);
	for (size_t i = 0; i < manifest->layer_count; i++) {
		struct state_layer layer = {.blob = manifest->layers[i].digest,
					    .diff_id = config->diff_ids[i],
					    .size = manifest->layers[i].size};

		if (state_media_type(manifest->layers[i].media_type, layer.media_type, err) < 0 ||
		    state_push_layer(state, &layer, err) < 0)
			return -1;
	}
	return 0;
}

/*
 * Readers pair layers with the entries of history that are not empty. Where a
 * base's do not match, entries without content are added.
 */
static void state_fix_history(struct state *state)
{
	json_t *history = state_member(state->config, "history", json_array());
	size_t filled = 0;
	json_t *entry;
	size_t i;

	json_array_foreach(history, i, entry)
	{
		if (!json_is_true(json_object_get(entry, "empty_layer")))
			filled++;
	}
	if (filled > state->layer_count) {
		json_array_clear(history);
		filled = 0;
	}
	for (; filled < state->layer_count; filled++)
		json_array_append_new(history, json_pack("{s:s}", "created_by", "unknown"));
}

/* A relative working directory in a base is one below the root. */
static int state_fix_workdir(struct state *state, struct err *err)
{
	json_t *member = json_object_get(state_part(state), "WorkingDir");

	if (!json_is_string(member) || json_string_length(member) == 0)
		return 0;
	return state_set_workdir(state, json_str(member), err);
}

static int state_check_env(const struct state *state, struct err *err)
{
	const json_t *env = state_env(state);
	size_t left = STATE_ENV_MAX;
	json_t *item;
	size_t i;

	if (json_array_size(env) > STATE_ENV_COUNT_MAX)
		return err_set(err, ERR_LIMIT, "config.Env: more than %zu variables",
			       STATE_ENV_COUNT_MAX);
	json_array_foreach(env, i, item)
	{
		size_t len = json_string_length(item);

		if (len > STATE_ENV_ENTRY_MAX)
			return err_set(err, ERR_LIMIT,
				       "config.Env[%zu]: more than %zu bytes; no program starts "
				       "with it",
				       i, STATE_ENV_ENTRY_MAX);
		if (len > left)
			return err_set(err, ERR_LIMIT, "config.Env: more than %zu bytes",
				       STATE_ENV_MAX);
		left -= len;
	}
	return 0;
}

static int state_check_base(const struct state *state, struct err *err)
{
	if (state_user(state).len > STATE_USER_MAX)
		return err_set(err, ERR_LIMIT, "config.User: more than %zu bytes", STATE_USER_MAX);
	return state_check_env(state, err);
}

static int state_fix(struct state *state, struct err *err)
{
	json_t *part = state_member(state->config, "config", json_object());
	json_t *rootfs = state_member(state->config, "rootfs", json_object());
	struct str path;

	state_member(part, "Env", json_array());
	state_member(rootfs, "diff_ids", json_array());
	json_object_set_new(rootfs, "type", json_string("layers"));
	json_object_set_new(state->config, "os", json_string(state->platform.os));
	json_object_set_new(state->config, "architecture",
			    json_string(state->platform.architecture));
	if (state->platform.variant[0] != '\0')
		json_object_set_new(state->config, "variant", json_string(state->platform.variant));
	state_fix_history(state);
	if (!state_env_get(state, STR("PATH"), &path) &&
	    state_set_env(state, STR("PATH"), STR(STATE_PATH_DEFAULT), err) < 0)
		return -1;
	return state_fix_workdir(state, err);
}

int state_from_base(const struct manifest *manifest, const struct image_config *config,
		    struct state *out, struct err *err)
{
	auto_state struct state state = {.platform = config->platform};

	if (state.platform.os[0] == '\0')
		platform_host(&state.platform);
	state.config = json_deep_copy(config->document);
	if (state_take_layers(&state, manifest, config, err) < 0 ||
	    state_check_base(&state, err) < 0 || state_fix(&state, err) < 0)
		return -1;
	*out = state;
	state = (struct state){0};
	return 0;
}

int state_from_scratch(const struct platform *platform, struct state *out, struct err *err)
{
	auto_state struct state state = {.platform = *platform};

	state.config = json_object();
	if (state_fix(&state, err) < 0)
		return -1;
	*out = state;
	state = (struct state){0};
	return 0;
}

void state_done(struct state *state)
{
	json_decref(state->config);
	free(state->layers);
	*state = (struct state){0};
}

json_t *state_env(const struct state *state)
{
	return json_object_get(state_part(state), "Env");
}

/* A base may hold entries without '='. */
static bool state_env_is(const json_t *item, struct str name)
{
	struct str entry = json_is_string(item) ? json_str(item) : STR("");

	return str_starts(entry, name) && (entry.len == name.len || entry.ptr[name.len] == '=');
}

/* The last place of a name in the environment, which a process sees, or its size. */
static size_t state_env_find(const struct state *state, struct str name)
{
	const json_t *env = state_env(state);

	for (size_t i = json_array_size(env); i-- > 0;) {
		if (state_env_is(json_array_get(env, i), name))
			return i;
	}
	return json_array_size(env);
}

/* A base may set a variable twice: remove all but the last. */
static void state_env_unify(struct state *state, struct str name, size_t last)
{
	json_t *env = state_env(state);

	while (last-- > 0) {
		if (state_env_is(json_array_get(env, last), name))
			json_array_remove(env, last);
	}
}

bool state_env_get(const struct state *state, struct str name, struct str *out)
{
	json_t *item = json_array_get(state_env(state), state_env_find(state, name));
	struct str entry = item ? json_str(item) : STR("");

	if (!item || entry.len <= name.len)
		return false;
	*out = str_skip(entry, name.len + 1);
	return true;
}

static struct str state_text(const struct state *state, const char *key, struct str fallback)
{
	const json_t *member = json_object_get(state_part(state), key);

	return json_string_length(member) > 0 ? json_str(member) : fallback;
}

struct str state_workdir(const struct state *state)
{
	return state_text(state, "WorkingDir", STR("/"));
}

struct str state_user(const struct state *state)
{
	return state_text(state, "User", STR(""));
}

json_t *state_shell(const struct state *state)
{
	json_t *shell = json_object_get(state_part(state), "Shell");

	return json_array_size(shell) > 0 ? shell : NULL;
}

json_t *state_visible(const struct state *state)
{
	json_t *visible = json_object();
	json_t *shell = state_shell(state);

	json_object_set_new(visible, "env", json_copy(state_env(state)));
	json_object_set_new(visible, "workdir", json_from_str(state_workdir(state)));
	json_object_set_new(visible, "user", json_from_str(state_user(state)));
	if (shell)
		json_object_set(visible, "shell", shell);
	return visible;
}

/* Texts with their length in front: no two lists of them have the same bytes. */
static int state_add_text(struct buf *out, struct str text, struct err *err)
{
	uint64_t length = htole64(text.len);

	if (buf_add(out, (struct str){(const char *)&length, sizeof(length)}, err) < 0)
		return -1;
	return buf_add(out, text, err);
}

static int state_add_texts(struct buf *out, const json_t *array, struct err *err)
{
	uint64_t count = htole64(json_array_size(array));
	json_t *item;
	size_t i;

	if (buf_add(out, (struct str){(const char *)&count, sizeof(count)}, err) < 0)
		return -1;
	json_array_foreach(array, i, item)
	{
		if (state_add_text(out, json_is_string(item) ? json_str(item) : STR(""), err) < 0)
			return -1;
	}
	return 0;
}

/* As JSON a thousand variables would take 300 us for every step. */
const struct digest *state_visible_digest(struct state *state)
{
	auto_buf struct buf text = BUF_INIT(STATE_DOCUMENT_MAX);
	struct err err;

	if (state->visible_known)
		return &state->visible;
	if (state_add_texts(&text, state_env(state), &err) < 0 ||
	    state_add_text(&text, state_workdir(state), &err) < 0 ||
	    state_add_text(&text, state_user(state), &err) < 0 ||
	    state_add_texts(&text, state_shell(state), &err) < 0)
		abort(); /* the config's ceiling and STATE_ENV_MAX are below it */
	digest_of(buf_str(&text), &state->visible);
	state->visible_known = true;
	return &state->visible;
}

static int state_put_env(struct state *state, size_t at, struct str entry, struct err *err)
{
	json_t *env = state_env(state);

	if (entry.len > STATE_ENV_ENTRY_MAX)
		return err_set(err, ERR_LIMIT, "more than %zu bytes; no program starts with it",
			       STATE_ENV_ENTRY_MAX);
	if (entry.len > STATE_ENV_MAX - state->env_bytes)
		return err_set(err, ERR_LIMIT, "the environment grows by more than %zu bytes",
			       STATE_ENV_MAX);
	if (at == STATE_ENV_COUNT_MAX)
		return err_set(err, ERR_LIMIT, "more than %zu variables", STATE_ENV_COUNT_MAX);
	state->env_bytes += entry.len;
	if (at < json_array_size(env))
		json_array_set_new(env, at, json_from_str(entry));
	else
		json_array_append_new(env, json_from_str(entry));
	state->visible_known = false;
	return 0;
}

int state_set_env(struct state *state, struct str name, struct str value, struct err *err)
{
	auto_buf struct buf entry = BUF_INIT(STATE_DOCUMENT_MAX);
	size_t at = state_env_find(state, name);

	if (name.len == 0 || memchr(name.ptr, '=', name.len))
		return err_set(err, ERR_REFUSED, "\"" STR_FMT "\" is no name of a variable",
			       STR_ARG(name));
	if (buf_add(&entry, name, err) < 0 || buf_add(&entry, STR("="), err) < 0 ||
	    buf_add(&entry, value, err) < 0 || state_put_env(state, at, buf_str(&entry), err) < 0)
		return err_ctx(err, "ENV");
	state_env_unify(state, name, at);
	return 0;
}

int state_set_workdir(struct state *state, struct str path, struct err *err)
{
	auto_buf struct buf joined = BUF_INIT(PATH_TEXT_MAX);
	struct str before = state_workdir(state);

	if (before.ptr[0] != '/')
		before = STR("/");
	if (path_join(before, path, &joined, err) < 0)
		return err_ctx(err, "WORKDIR");
	json_object_set_new(state_part(state), "WorkingDir", json_from_str(buf_str(&joined)));
	state->visible_known = false;
	return 0;
}

int state_add_step(struct state *state, struct str created_by, int64_t created_ms,
		   const struct state_layer *layer, struct err *err)
{
	json_t *rootfs = json_object_get(state->config, "rootfs");
	json_t *entry;
	char created[CLOCK_TEXT_MAX];
	char diff_id[DIGEST_TEXT_MAX];

	if (layer && state_push_layer(state, layer, err) < 0)
		return -1;
	if (layer)
		json_array_append_new(json_object_get(rootfs, "diff_ids"),
				      json_string(digest_format(&layer->diff_id, diff_id)));
	clock_format(created_ms, created);
	entry = json_object();
	json_object_set_new(entry, "created", json_string(created));
	json_object_set_new(entry, "created_by", json_from_str(created_by));
	if (!layer)
		json_object_set_new(entry, "empty_layer", json_true());
	json_array_append_new(json_object_get(state->config, "history"), entry);
	json_object_set_new(state->config, "created", json_string(created));
	return 0;
}

int state_write_config(const struct state *state, struct buf *out, struct err *err)
{
	return json_format(state->config, out, err);
}

static json_t *state_descriptor(const char *media_type, const struct digest *digest, uint64_t size)
{
	json_t *descriptor = json_object();

	json_set_text(descriptor, "mediaType", media_type);
	digest_json_set(descriptor, "digest", digest);
	json_set_size(descriptor, "size", size);
	return descriptor;
}

int state_write_manifest(const struct state *state, const struct digest *config,
			 uint64_t config_size, struct buf *out, struct err *err)
{
	AUTO(json) json_t *manifest = json_object();
	json_t *layers = json_array();

	json_object_set_new(manifest, "schemaVersion", json_integer(2));
	json_object_set_new(manifest, "mediaType", json_string(MEDIA_OCI_MANIFEST));
	json_object_set_new(manifest, "config",
			    state_descriptor(MEDIA_OCI_CONFIG, config, config_size));
	json_object_set_new(manifest, "layers", layers);
	for (size_t i = 0; i < state->layer_count; i++)
		json_array_append_new(layers, state_descriptor(state->layers[i].media_type,
							       &state->layers[i].blob,
							       state->layers[i].size));
	return json_format(manifest, out, err);
}

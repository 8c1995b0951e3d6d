/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/closure.h"

#include "registry/manifest_priv.h"

static enum closure_kind closure_layer_kind(const struct descriptor *layer)
{
	return manifest_is_foreign(layer->media_type) ? CLOSURE_FOREIGN : CLOSURE_BLOB;
}

static int closure_add(struct closure *closure, const json_t *value, const char *path,
		       enum closure_kind kind, struct err *err)
{
	struct descriptor what;

	if (manifest_read_descriptor(value, path, &what, err) < 0)
		return -1;
	if (kind != CLOSURE_DOCUMENT)
		kind = closure_layer_kind(&what);
	closure->items[closure->count++] = (struct closure_item){kind, what};
	return 0;
}

static int closure_add_list(struct closure *closure, const char *key, enum closure_kind kind,
			    struct err *err)
{
	json_t *list = NULL;
	json_t *item;
	size_t at;

	if (json_get_array(closure->document, "", key, &list, err) < 0)
		return -1;
	if (json_array_size(list) >= CLOSURE_ITEMS_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than %d", key, CLOSURE_ITEMS_MAX - 1);
	json_array_foreach(list, at, item)
	{
		char path[32];

		(void)snprintf(path, sizeof(path), "%s[%zu]", key, at);
		if (closure_add(closure, item, path, kind, err) < 0)
			return -1;
	}
	return 0;
}

static int closure_read(struct str text, struct closure *out, struct err *err)
{
	json_t *config;
	bool index;

	if (manifest_load(text, &out->document, &index, err) < 0)
		return -1;
	out->media_type = index ? STR(MEDIA_OCI_INDEX) : STR(MEDIA_OCI_MANIFEST);
	out->items = calloc(CLOSURE_ITEMS_MAX, sizeof(*out->items));
	if (!out->items)
		abort();
	if (json_get_string(out->document, "", "mediaType", &out->media_type, err) < 0)
		return -1;
	if (index)
		return closure_add_list(out, "manifests", CLOSURE_DOCUMENT, err);
	if (json_need_object(out->document, "", "config", &config, err) < 0 ||
	    closure_add(out, config, "config", CLOSURE_BLOB, err) < 0)
		return -1;
	return closure_add_list(out, "layers", CLOSURE_BLOB, err);
}

int closure_parse(struct str text, struct closure *out, struct err *err)
{
	auto_closure struct closure closure = {0};
	struct err why = {0};

	if (closure_read(text, &closure, &why) < 0)
		return manifest_refuse("manifest", &why, err);
	*out = closure;
	closure = (struct closure){0};
	return 0;
}

void closure_done(struct closure *closure)
{
	json_decref(closure->document);
	free(closure->items);
	*closure = (struct closure){0};
}

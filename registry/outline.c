/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/outline.h"

#include "layers/base64.h"
#include "registry/manifest_priv.h"

/* About how many values a text has, before anything is made of them. */
static int outline_check_values(struct str text, struct err *err)
{
	size_t count = 0;
	bool quoted = false;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted)
			count += c == ',' || c == '[' || c == '{';
	}
	if (count > OUTLINE_VALUES_MAX)
		return err_set(err, ERR_LIMIT,
			       "more than %zu values of JSON in it, which is the most that is "
			       "taken here, however few bytes they are",
			       OUTLINE_VALUES_MAX);
	return 0;
}

/* What an entry brings along in base64 is what its digest stands for. */
static int outline_check_data(const json_t *value, const char *path, const struct descriptor *what,
			      struct err *err)
{
	auto_free char *bytes = NULL;
	struct str text;
	size_t len;
	int found = json_get_string(value, path, "data", &text, err);

	if (found <= 0)
		return found;
	bytes = malloc(BASE64_ROOM(text.len) + 1);
	if (!bytes)
		abort();
	if (!base64_decode(text, bytes, &len) || len != what->size)
		return err_set(err, ERR_INVALID, "%s.data: not so many bytes in base64", path);
	return digest_is_of(&what->digest, (struct str){bytes, len})
		       ? 0
		       : err_set(err, ERR_INVALID, "%s.data: has another digest", path);
}

static int outline_add(struct outline *outline, const json_t *value, const char *path,
		       enum outline_kind kind, struct err *err)
{
	struct outline_item *item = &outline->items[outline->count];

	item->kind = kind;
	if (manifest_read_descriptor(value, path, &item->what, err) < 0 ||
	    outline_check_data(value, path, &item->what, err) < 0)
		return -1;
	if (kind == OUTLINE_BLOB && manifest_is_foreign(item->what.media_type))
		item->kind = OUTLINE_FOREIGN;
	outline->count++;
	return 0;
}

static int outline_add_list(struct outline *outline, const char *key, enum outline_kind kind,
			    struct err *err)
{
	json_t *list = NULL;
	json_t *item;
	size_t at;

	if (json_get_array(outline->document, "", key, &list, err) < 0)
		return -1;
	if (json_array_size(list) > OUTLINE_ITEMS_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than %zu", key, OUTLINE_ITEMS_MAX);
	outline->items = calloc(json_array_size(list) + 2, sizeof(*outline->items));
	if (!outline->items)
		abort();
	if (!outline->index && outline_add(outline, json_object_get(outline->document, "config"),
					   "config", OUTLINE_BLOB, err) < 0)
		return -1;
	json_array_foreach(list, at, item)
	{
		char path[32];

		(void)snprintf(path, sizeof(path), "%s[%zu]", key, at);
		if (outline_add(outline, item, path, kind, err) < 0)
			return -1;
	}
	return 0;
}

static int outline_read_subject(struct outline *outline, struct err *err)
{
	json_t *subject;
	int found = json_get_object(outline->document, "", "subject", &subject, err);

	if (found <= 0)
		return found;
	outline->has_subject = true;
	return manifest_read_descriptor(subject, "subject", &outline->subject, err);
}

static int outline_check_annotations(const struct outline *outline, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(outline->annotations, key, value)
	{
		if (!json_is_string(value))
			return err_set(err, ERR_INVALID, "annotations: expected strings alone");
	}
	return 0;
}

static int outline_read(struct str text, struct outline *out, struct err *err)
{
	if (outline_check_values(text, err) < 0 ||
	    manifest_load(text, &out->document, &out->index, err) < 0)
		return -1;
	out->media_type = STR("");
	out->artifact_type = STR("");
	if (json_get_string(out->document, "", "mediaType", &out->media_type, err) < 0 ||
	    json_get_string(out->document, "", "artifactType", &out->artifact_type, err) < 0 ||
	    json_get_object(out->document, "", "annotations", &out->annotations, err) < 0 ||
	    outline_check_annotations(out, err) < 0 || outline_read_subject(out, err) < 0)
		return -1;
	if (out->index)
		return outline_add_list(out, "manifests", OUTLINE_DOCUMENT, err);
	if (outline_add_list(out, "layers", OUTLINE_BLOB, err) < 0)
		return -1;
	if (out->artifact_type.len == 0)
		out->artifact_type = out->items[0].what.media_type;
	return 0;
}

int outline_parse(struct str text, struct outline *out, struct err *err)
{
	auto_outline struct outline outline = {0};

	if (outline_read(text, &outline, err) < 0)
		return -1;
	*out = outline;
	outline = (struct outline){0};
	return 0;
}

void outline_done(struct outline *outline)
{
	json_decref(outline->document);
	free(outline->items);
	*outline = (struct outline){0};
}

struct str outline_type(const struct outline *outline)
{
	return outline->index ? STR(MEDIA_OCI_INDEX) : STR(MEDIA_OCI_MANIFEST);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.c - a key's bytes.
 *
 *	field   = tag (1 byte), length (8 bytes, little endian), content
 *	fields, in this order, absent ones left out:
 *	V  KEY_VERSION, KEY_EPOCH        8 bytes each, little endian
 *	P  parent                        32 bytes; absent on scratch, and for COPY --link
 *	S  visible state                 32 bytes: state_visible_digest(); of KEY_SEES_ALL
 *	W  U  working directory, user    of KEY_SEES_PLACE
 *	I  instruction                   text
 *	C  content                       32 bytes; absent where nothing is read
 *	O  A  R  platform                os, architecture, variant
 *	N  network                       "open" or "none"
 *	T  clamp                         8 bytes, little endian; absent where times are kept
 *	M  secrets                       32 bytes; absent where no value counts
 */
#include "bake/key_priv.h"

#include "layers/digest_json.h"

#define KEY_DIGEST_BYTES ((size_t)32) /* every digest in a key is a sha256 */

static void key_number(uint64_t value, char out[static 8])
{
	for (int i = 0; i < 8; i++)
		out[i] = (char)(value >> (8 * i) & 0xff);
}

static int key_field(struct buf *out, char tag, struct str content, struct err *err)
{
	char head[9] = {tag};

	key_number(content.len, head + 1);
	if (buf_add(out, (struct str){head, sizeof(head)}, err) < 0)
		return -1;
	return buf_add(out, content, err);
}

static struct str key_digest(const struct digest *digest)
{
	return (struct str){(const char *)digest->bytes, KEY_DIGEST_BYTES};
}

static int key_platform(const struct platform *platform, struct buf *out, struct err *err)
{
	if (key_field(out, 'O', str_of(platform->os), err) < 0 ||
	    key_field(out, 'A', str_of(platform->architecture), err) < 0)
		return -1;
	return key_field(out, 'R', str_of(platform->variant), err);
}

static const char *key_network(const struct key_parts *parts)
{
	return parts->network_none ? "none" : "open";
}

static bool key_has_parent(const struct key_parts *parts)
{
	return parts->state->layer_count > 0 && !parts->detached;
}

static int key_visible(const struct key_parts *parts, struct buf *out, struct err *err)
{
	if (parts->sight == KEY_SEES_ALL)
		return key_field(out, 'S', key_digest(state_visible_digest(parts->state)), err);
	if (parts->sight == KEY_SEES_NOTHING)
		return 0;
	if (key_field(out, 'W', state_workdir(parts->state), err) < 0)
		return -1;
	return key_field(out, 'U', state_user(parts->state), err);
}

int key_encode(const struct key_parts *parts, struct buf *out, struct err *err)
{
	char version[16];
	char clamp[8];

	key_number(KEY_VERSION, version);
	key_number(KEY_EPOCH, version + 8);
	if (key_field(out, 'V', (struct str){version, sizeof(version)}, err) < 0)
		return -1;
	if (key_has_parent(parts) &&
	    key_field(out, 'P', key_digest(&parts->state->chain_id), err) < 0)
		return -1;
	if (key_visible(parts, out, err) < 0 || key_field(out, 'I', parts->instruction, err) < 0)
		return -1;
	if (parts->content && key_field(out, 'C', key_digest(parts->content), err) < 0)
		return -1;
	if (key_platform(&parts->state->platform, out, err) < 0)
		return -1;
	if (key_field(out, 'N', str_of(key_network(parts)), err) < 0)
		return -1;
	if (parts->clamp) {
		key_number((uint64_t)*parts->clamp, clamp);
		if (key_field(out, 'T', (struct str){clamp, sizeof(clamp)}, err) < 0)
			return -1;
	}
	return parts->secrets ? key_field(out, 'M', key_digest(parts->secrets), err) : 0;
}

void key_make(const struct key_parts *parts, struct digest *out)
{
	auto_buf struct buf bytes = BUF_INIT(KEY_BYTES_MAX);
	struct err err;

	if (key_encode(parts, &bytes, &err) < 0)
		abort(); /* INSTRUCTION_TEXT_MAX and a few digests are below the ceiling */
	digest_of(buf_str(&bytes), out);
}

static json_t *key_visible_json(const struct key_parts *parts)
{
	json_t *object = json_object();

	if (parts->sight == KEY_SEES_PLACE) {
		json_object_set_new(object, "workdir", json_from_str(state_workdir(parts->state)));
		json_object_set_new(object, "user", json_from_str(state_user(parts->state)));
	}
	return object;
}

json_t *key_components(const struct key_parts *parts)
{
	json_t *object = parts->sight == KEY_SEES_ALL ? state_visible(parts->state)
						      : key_visible_json(parts);
	char platform[PLATFORM_TEXT_MAX];

	json_object_set_new(object, "version", json_integer(KEY_VERSION));
	json_object_set_new(object, "epoch", json_integer(KEY_EPOCH));
	if (key_has_parent(parts))
		digest_json_set(object, "parent", &parts->state->chain_id);
	json_object_set_new(object, "instruction", json_from_str(parts->instruction));
	if (parts->content)
		digest_json_set(object, "content", parts->content);
	json_object_set_new(object, "platform",
			    json_string(platform_format(&parts->state->platform, platform)));
	json_object_set_new(object, "network", json_string(key_network(parts)));
	if (parts->clamp)
		json_object_set_new(object, "clamp", json_integer(*parts->clamp));
	if (parts->secrets)
		digest_json_set(object, "secrets", parts->secrets);
	return object;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* bake_mounts.c - what the mounts of a RUN need of the bake. */
#include "bake/bake_priv.h"

#include "bake/context.h"
#include "bake/expand.h"
#include "layers/mac.h"

static int bake_digest_bind(const struct bake *bake, struct mount *mount, struct err *err)
{
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);
	struct context_sources sources;
	const char *path;

	if (bake->options->contextfd < 0)
		return err_set(err, ERR_INVALID,
			       "a bind mount needs a context: give --context DIR, or `context` in "
			       "the spec");
	if (mount_source_word(mount, &word, err) < 0)
		return -1;
	path = word.ptr;
	sources = bake_bind_sources(bake, &path);
	if (context_digest(&sources, bake->options->cancel, &mount->content, err) < 0)
		return err_ctx(err, "mount on %s", mount->target);
	return 0;
}

/* An image counts with all of its layers. */
static int bake_find_bind(struct bake *bake, struct mount *mount, struct bake_key *out,
			  struct err *err)
{
	struct from *from = &out->binds[out->bind_count];

	if (bake_name_held(bake, err) < 0 ||
	    from_resolve(str_of(mount->from), bake->spec, bake->options, &bake->asker, from, err) <
		    0)
		return -1;
	out->bind_count++;
	mount->content = from->chain_id;
	return bake_name_image(bake, from, err);
}

int bake_digest_mounts(struct bake *bake, struct instruction *ready, struct bake_key *out,
		       struct err *err)
{
	AUTO(hasher) struct hasher hasher = {0};

	if (ready->mounts.count == 0)
		return 0;
	out->binds = calloc(ready->mounts.count, sizeof(*out->binds));
	if (!out->binds)
		abort();
	hasher_init(&hasher);
	for (size_t i = 0; i < ready->mounts.count; i++) {
		struct mount *mount = &ready->mounts.at[i];

		if (mount->type != MOUNT_BIND && !mount->from)
			continue;
		bake_end_snapshot(bake); /* it must not span the reading of files, or a pull */
		if (mount->from ? bake_find_bind(bake, mount, out, err) < 0
				: bake_digest_bind(bake, mount, err) < 0)
			return -1;
		hasher_add(&hasher, (struct str){(const char *)mount->content.bytes,
						 sizeof(mount->content.bytes)});
		out->parts.content = &out->content;
	}
	hasher_final(&hasher, &out->content);
	return 0;
}

/* A secret that nobody gave is none, and not an empty one. */
static int bake_name_secret(const struct bake *bake, const struct mount *mount, struct digest *out,
			    struct err *err)
{
	const struct secret *secret = secrets_find(bake->options->secrets, str_of(mount->id));
	auto_buf struct buf domain = BUF_INIT(MOUNT_ID_MAX + 16);

	if (buf_addf(&domain, err, "%s %s", secret ? "secret" : "no secret", mount->id) < 0)
		return -1;
	return mac_of(bake->options->store, buf_str(&domain),
		      secret ? secret_bytes(secret) : STR(""), out, err);
}

int bake_name_secrets(struct bake *bake, const struct instruction *ready, struct bake_key *out,
		      struct err *err)
{
	AUTO(hasher) struct hasher hasher = {0};

	for (size_t i = 0; i < ready->mounts.count; i++) {
		struct digest name;

		if (!ready->mounts.at[i].by_value)
			continue;
		if (bake_name_secret(bake, &ready->mounts.at[i], &name, err) < 0)
			return -1;
		if (!out->parts.secrets)
			hasher_init(&hasher);
		out->parts.secrets = &out->secrets;
		hasher_add(&hasher, (struct str){(const char *)name.bytes, sizeof(name.bytes)});
	}
	if (out->parts.secrets)
		hasher_final(&hasher, &out->secrets);
	return 0;
}

/* Checked before anything is started for the step. */
int bake_check_mounts(const struct bake *bake, const struct instruction *ready, struct err *err)
{
	for (size_t i = 0; i < ready->mounts.count; i++) {
		const struct mount *mount = &ready->mounts.at[i];

		if (mount->type == MOUNT_SECRET && mount->required &&
		    !secrets_find(bake->options->secrets, str_of(mount->id)))
			return err_set(err, ERR_NOT_FOUND,
				       "the secret %s is required: give --secret id=%s,src=FILE or "
				       "id=%s,env=NAME, or name it in the daemon's configuration",
				       mount->id, mount->id, mount->id);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/base.h"

#include "bake/agent_tag.h"
#include "bake/gc.h"

#include "layers/blob.h"
#include "registry/holding.h"
#include "registry/layout.h"
#include "registry/local_names.h"
#include "registry/tagging.h"
#include "registry/transport.h"

static json_t *base_mirror_format(const struct place_mirror *mirror, const char *reference)
{
	json_t *value = json_object();

	json_set_text(value, "reference", reference);
	json_set_bool(value, "plainHttp", mirror->plain_http);
	(void)json_object_set_new(value, "user", json_from_str(mirror->user));
	json_set_text(value, "password", secret_reveal(mirror->password));
	return value;
}

/* The mirrors to ask before the reference's registry. */
static json_t *base_mirrors_format(const struct places *places, const struct reference *reference)
{
	json_t *list = json_array();

	for (size_t i = 0; places && i < places->mirror_count; i++) {
		const struct place_mirror *mirror = &places->mirrors[i];
		auto_buf struct buf text = BUF_INIT(REFERENCE_TEXT_MAX);
		struct err ignored;

		/* One with too long a name holds no such image. */
		if (reference->kind == REFERENCE_REGISTRY &&
		    str_equal(mirror->host, reference->host) &&
		    places_format(mirror, reference, &text, &ignored) == 0)
			(void)json_array_append_new(list, base_mirror_format(mirror, text.ptr));
	}
	return list;
}

/* Apply the operator's configuration of its registry to a request. */
static void base_request_place(const struct base_request *request, json_t *out)
{
	struct reference reference;
	struct err ignored;
	bool plain = request->plain_http;

	if (reference_parse(request->reference, &reference, &ignored) == 0) {
		plain |= places_are_insecure(request->places, reference.host);
		(void)json_object_set_new(out, "mirrors",
					  base_mirrors_format(request->places, &reference));
	}
	json_set_bool(out, "plainHttp", plain);
}

json_t *base_request_format(struct store *store, const struct base_request *request)
{
	json_t *value = asker_request_new(store);
	char platform[PLATFORM_TEXT_MAX];

	(void)json_object_set_new(value, "reference", json_from_str(request->reference));
	(void)json_object_set_new(value, "name", json_from_str(request->name));
	json_set_bool(value, "unnamed", request->unnamed);
	json_set_bool(value, "nameAsThere", request->name_as_there);
	json_set_bool(value, "stream", request->stream);
	json_set_bool(value, "bare", request->bare);
	json_set_bool(value, "allPlatforms", request->all_platforms);
	json_set_bool(value, "referrers", request->referrers);
	json_set_bool(value, "anyArchive", request->any_archive);
	json_set_text(value, "platform", platform_format(&request->platform, platform));
	base_request_place(request, value);
	if (request->ca_file)
		json_set_text(value, "caFile", request->ca_file);
	json_set_size(value, "maxLayerBytes", request->max_layer_bytes);
	(void)json_object_set_new(value, "user", json_from_str(request->user));
	json_set_text(value, "password", secret_reveal(request->password));
	return value;
}

bool base_read_progress(const json_t *progress, struct digest *digest, struct bake_event *out)
{
	struct str text;
	struct err err;
	int64_t done;
	int64_t size;

	if (json_get_string(progress, "", "warning", &text, &err) == 1) {
		*out = (struct bake_event){.kind = out->kind == BAKE_PULL ? BAKE_WARNING
									  : BAKE_PUSH_WARNING,
					   .text = text};
		return true;
	}
	if (json_need_string(progress, "", "digest", &text, &err) < 0 ||
	    digest_parse(text, digest, &err) < 0 ||
	    json_need_int(progress, "", "done", &done, &err) < 0 ||
	    json_need_int(progress, "", "size", &size, &err) < 0 ||
	    json_need_string(progress, "", "event", &out->text, &err) < 0)
		return false;
	out->digest = digest;
	out->done = (uint64_t)done;
	out->size = (uint64_t)size;
	return true;
}

/* What the store holds for this reference. A layout must still say the same. */
static int base_find_tag(struct store *store, const struct reference *reference, struct str text,
			 const struct platform *platform, struct tag *out, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	struct digest named;
	struct digest now;
	int found;

	if (meta_begin(store, META_READ, &meta, err) < 0)
		return -1;
	found = tag_find(meta, text, platform, out, err);
	if (found != 1 || reference->kind != REFERENCE_LAYOUT)
		return found;
	if (layout_resolve(reference->path, reference->tag, &named, err) < 0)
		return -1;
	found = blob_find_id(store, &named, &now, err);
	return found == 1 ? digest_equal(&now, &out->target) : found;
}

static int base_load(struct store *store, const struct digest *digest, struct state *out,
		     struct err *err)
{
	auto_buf struct buf manifest_text = BUF_INIT(MANIFEST_MAX);
	auto_buf struct buf config_text = BUF_INIT(IMAGE_CONFIG_MAX);
	auto_manifest struct manifest manifest = {0};
	auto_image_config struct image_config config = {0};

	if (blob_read_all(store, digest, &manifest_text, err) < 0 ||
	    manifest_parse(buf_str(&manifest_text), &manifest, err) < 0 ||
	    local_names_take(store, &manifest, err) < 0 ||
	    blob_read_all(store, &manifest.config.digest, &config_text, err) < 0 ||
	    image_config_parse(buf_str(&config_text), &config, err) < 0 ||
	    local_names_take_diff_ids(store, &manifest, &config, err) < 0)
		return -1;
	return state_from_base(&manifest, &config, out, err);
}

static int base_pull(const struct bake_options *options, const struct asker *asker,
		     const struct base_request *what, struct err *err)
{
	const struct base_request request = {
		.reference = what->reference,
		.unnamed = what->unnamed,
		.bare = what->bare,
		.platform = what->platform,
		.plain_http = options->plain_http,
		.ca_file = options->ca_file,
		.max_layer_bytes = options->max_layer_bytes,
		.user = options->registry_user,
		.password = options->registry_password,
		.places = options->places,
	};
	AUTO(json) json_t *json = base_request_format(options->store, &request);
	AUTO(json) json_t *answer = NULL;

	/* The lease can rest without names, since nothing was found yet. */
	if (options->lease && (lease_rest(options->lease, err) < 0 ||
			       gc_make_room(options->store, options->gc, options->cancel, err) < 0))
		return -1;
	if (asker_call(asker, "pull", json, &answer, err) < 0)
		return -1;
	return options->lease ? lease_resume(options->lease, err) : 0;
}

/* A tag of ours is of the platforms that we gave it: no registry knows more of it. */
static int base_check_ours(const struct bake_options *options, struct str text,
			   const struct platform *wanted, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;
	char here[PLATFORM_TEXT_MAX];
	char asked[PLATFORM_TEXT_MAX];
	struct tag tag;
	int found;

	if (meta_begin(options->store, META_READ, &meta, err) < 0)
		return -1;
	found = tag_find_only(meta, text, &tag, err);
	if (found != 1 || tag.pulled)
		return found < 0 ? -1 : 0;
	if (tagging_is_opaque(&tag))
		return err_set(err, ERR_NOT_FOUND, STR_FMT " is here, and no image of any platform",
			       STR_ARG(text));
	return err_set(err, ERR_NOT_FOUND,
		       STR_FMT " is here for %s alone, and %s was asked for: --platform %s takes "
			       "it, --pull asks its registry",
		       STR_ARG(text), platform_format(&tag.platform, here),
		       platform_format(wanted, asked), here);
}

/* What an archive holds only a pull can tell; it reads nothing that the store has. */
static int base_held(const struct bake_options *options, const struct reference *reference,
		     struct str text, const struct spec *spec, struct tag *out, struct err *err)
{
	bool remote = reference->kind == REFERENCE_REGISTRY;
	int held;

	if (transport_is_archive(reference->kind) || (options->pull && remote))
		return 0;
	held = base_find_tag(options->store, reference, text, &spec->platform, out, err);
	if (held == 0 && remote)
		return base_check_ours(options, text, &spec->platform, err);
	/* A tag that was made here is not asked for; no registry knows it. */
	return held == 1 && options->rebake && remote && out->pulled ? 0 : held;
}

/* The registry's answer was that it has no such image, at least for us. */
static bool base_is_refused(const struct err *err)
{
	return err->kind == ERR_NOT_FOUND || err->kind == ERR_UNAUTHORIZED ||
	       err->kind == ERR_DENIED;
}

/* Of a name of ours that nobody has: where it was looked for beside the registry. */
static int base_say_ours(const struct reference *reference, struct err *err)
{
	const struct err why = *err;

	if (!str_equal(reference->host, STR(HOLDING_HOST)))
		return -1;
	return err_set(err, why.kind, "%s; nor is it here: hearth images lists what is", why.text);
}

/* Where the registry has no such image, an agent's of that name: 1, else -1 and why. */
static int base_find_agent(struct store *store, const struct reference *reference,
			   const struct platform *platform, struct tag *out, struct err *err)
{
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	AUTO(meta) struct meta *meta = NULL;
	const struct err why = *err;
	struct err ignored;

	if (meta_begin(store, META_READ, &meta, &ignored) < 0 ||
	    agent_tag_find(meta, reference, platform, &name, out, &ignored) != 1)
		return base_say_ours(reference, err);
	if (base_is_refused(&why))
		return 1;
	return err_set(err, why.kind, "%s; the agent's image of that name is " STR_FMT, why.text,
		       STR_ARG(buf_str(&name)));
}

/* What is looked for, and how. */
struct base_search {
	const struct bake_options *options;
	const struct asker *asker;
	const struct reference *reference;
	const struct platform *platform;
};

/* Pull an image by its digest, unpacked or bare, but under no name. */
static int base_pull_digest(const struct base_search *search, const struct digest *digest,
			    bool bare, struct err *err)
{
	const struct reference *reference = search->reference;
	auto_buf struct buf text = BUF_INIT(REFERENCE_TEXT_MAX);
	char name[DIGEST_TEXT_MAX];
	struct base_request request = {
		.bare = bare, .unnamed = !bare, .platform = *search->platform};

	if (buf_addf(&text, err, STR_FMT "/" STR_FMT "@%s", STR_ARG(reference->host),
		     STR_ARG(reference->path), digest_format(digest, name)) < 0)
		return -1;
	request.reference = buf_str(&text);
	return base_pull(search->options, search->asker, &request, err);
}

/* Have an image of the store unpacked by a pull, which asks nobody for what is here. */
static int base_prove(const struct base_search *search, const struct digest *digest,
		      struct err *err)
{
	auto_buf struct buf text = BUF_INIT(REFERENCE_TEXT_MAX);
	struct base_request request = {.unnamed = true, .platform = *search->platform};

	if (search->reference->kind == REFERENCE_REGISTRY)
		return base_pull_digest(search, digest, false, err);
	if (reference_format(search->reference, &text, err) < 0)
		return -1;
	request.reference = buf_str(&text);
	return base_pull(search->options, search->asker, &request, err);
}

/*
 * Load an image of the store. One that was pushed, say, nobody has unpacked: it
 * may claim any layers, and every key of its steps would follow from that.
 */
static int base_load_known(const struct base_search *search, const struct digest *digest,
			   struct state *out, struct err *err)
{
	struct store *store = search->options->store;
	struct lease *lease = search->options->lease;

	if (base_load(store, digest, out, err) == 0)
		return 0;
	if (err->kind != ERR_UNAVAILABLE || search->options->held_only)
		return -1;
	if ((lease && lease_add(lease, digest, err) < 0) || base_prove(search, digest, err) < 0)
		return -1;
	return base_load(store, digest, out, err);
}

/* 1 it is here, and for this platform; 0 it is not; -1. */
static int base_load_held(const struct base_search *search, const struct digest *digest,
			  struct state *out, struct err *err)
{
	auto_state struct state state = {0};

	if (base_load_known(search, digest, &state, err) < 0)
		return err->kind == ERR_NOT_FOUND ? 0 : -1;
	if (!platform_matches(search->platform, &state.platform))
		return 0;
	*out = state;
	state = (struct state){0};
	return 1;
}

/*
 * Take the digest that the base had in the version before, while its name is
 * the same: most likely its documents alone are missing. 1, 0 it has to be
 * resolved, -1.
 */
static int base_inherit(const struct base_search *search, struct str text, struct state *out,
			struct err *err)
{
	const struct bake_options *options = search->options;
	struct tag tag;
	int held;

	if (!options->base || options->pull || options->rebake ||
	    search->reference->kind != REFERENCE_REGISTRY)
		return 0;
	held = base_load_held(search, options->base, out, err);
	if (held != 0 || options->held_only)
		return held;
	held = base_find_tag(options->store, search->reference, text, search->platform, &tag, err);
	if (held < 0 || (held == 1 && !tag.pulled))
		return held < 0 ? -1 : 0;
	if (base_pull_digest(search, options->base, true, err) < 0)
		return base_is_refused(err) ? 0 : -1;
	return base_load_held(search, options->base, out, err);
}

static int base_check_kind(const struct reference *reference, struct err *err)
{
	if (reference->kind == REFERENCE_REGISTRY || reference->kind == REFERENCE_SCRATCH)
		return 0;
	return err_set(err, ERR_INVALID,
		       "a file of this host is not read here: name an image of a registry, one "
		       "that is tagged in the store, or scratch");
}

int base_check_remote(struct str text, struct err *err)
{
	struct reference reference;

	if (reference_parse(text, &reference, err) < 0)
		return -1;
	return base_check_kind(&reference, err);
}

int base_resolve(const struct spec *spec, const struct bake_options *options,
		 const struct asker *asker, struct state *out, struct digest *out_digest,
		 bool *out_cached, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(REFERENCE_TEXT_MAX);
	struct reference reference;
	const struct base_search search = {options, asker, &reference, &spec->platform};
	struct tag tag;
	int held;

	if (reference_parse(spec->base, &reference, err) < 0 ||
	    (options->no_host_files && base_check_kind(&reference, err) < 0))
		return err_ctx(err, "base");
	*out_cached = true;
	*out_digest = (struct digest){0};
	if (reference.kind == REFERENCE_SCRATCH)
		return state_from_scratch(&spec->platform, out, err);
	if (reference_format(&reference, &text, err) < 0)
		return -1;
	held = base_inherit(&search, buf_str(&text), out, err);
	if (held == 1)
		*out_digest = *options->base;
	if (held != 0)
		return held < 0 ? err_ctx(err, "base " STR_FMT, STR_ARG(spec->base)) : 0;
	held = base_held(options, &reference, buf_str(&text), spec, &tag, err);
	if (held == 0 && options->held_only)
		return err_set(err, ERR_NOT_FOUND,
			       "base " STR_FMT " is not here: every step would run",
			       STR_ARG(spec->base));
	if (held == 0) {
		const struct base_request request = {.reference = buf_str(&text),
						     .platform = spec->platform};

		*out_cached = false;
		held = base_pull(options, asker, &request, err) < 0
			       ? base_find_agent(options->store, &reference, &spec->platform, &tag,
						 err)
			       : base_find_tag(options->store, &reference, buf_str(&text),
					       &spec->platform, &tag, err);
		if (held < 0)
			return -1; /* the error already names what was pulled */
	}
	if (held == 0)
		return err_set(err, ERR_CONFLICT, "base " STR_FMT ": it changed while it was read",
			       STR_ARG(spec->base));
	if (held < 0 || base_load_known(&search, &tag.manifest, out, err) < 0)
		return err_ctx(err, "base " STR_FMT, STR_ARG(spec->base));
	*out_digest = tag.manifest;
	return 0;
}

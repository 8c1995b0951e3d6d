/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/from.h"

#include "bake/base.h"

struct task_layer *from_layers(const struct state *state)
{
	struct task_layer *layers = calloc(state->layer_count + 1, sizeof(*layers));

	if (!layers)
		abort();
	for (size_t i = 0; i < state->layer_count; i++) {
		layers[i].blob = state->layers[i].blob;
		layers[i].diff_id = state->layers[i].diff_id;
		layers[i].size = state->layers[i].size;
	}
	return layers;
}

/* Whether the image is of the base's registry: no other one may see the credentials. */
static bool from_is_neighbour(struct str reference, struct str base)
{
	struct reference image;
	struct reference other;
	struct err ignored;

	return reference_parse(reference, &image, &ignored) == 0 &&
	       reference_parse(base, &other, &ignored) == 0 && image.kind == REFERENCE_REGISTRY &&
	       other.kind == REFERENCE_REGISTRY && str_equal(image.host, other.host);
}

int from_resolve(struct str reference, const struct spec *spec, const struct bake_options *options,
		 const struct asker *asker, struct from *out, struct err *err)
{
	const struct spec image = {.base = reference, .platform = spec->platform};
	struct bake_options asked = *options;
	auto_state struct state state = {0};
	struct digest manifest;
	bool cached;

	asked.base = NULL;
	if (!from_is_neighbour(reference, spec->base)) {
		asked.registry_user = STR("");
		asked.registry_password = NULL;
	}
	if (base_resolve(&image, &asked, asker, &state, &manifest, &cached, err) < 0)
		return err_ctx(err, "--from");
	if (state.layer_count == 0)
		return err_set(err, ERR_REFUSED, "--from=" STR_FMT ": it holds no files",
			       STR_ARG(reference));
	*out = (struct from){
		.layers = from_layers(&state),
		.layer_count = state.layer_count,
		.chain_id = state.chain_id,
	};
	return 0;
}

void from_done(struct from *from)
{
	free(from->layers);
	*from = (struct from){0};
}

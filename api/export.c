/* SPDX-License-Identifier: Apache-2.0 */
#include "api/export.h"

#include "bake/asker.h"
#include "layers/digest_json.h"
#include "layers/lease.h"
#include "registry/layout.h"
#include "registry/oci_archive.h"
#include "registry/output.h"
#include "registry/transport.h"

#include <unistd.h>

struct export
{
	const struct cli *cli;
	struct store *store;
	const struct export_spec *spec;
	struct reference to;
};

bool export_is_stream(const char *to)
{
	struct reference reference;
	struct err ignored;

	return reference_parse(str_of(to), &reference, &ignored) == 0 &&
	       transport_is_archive(reference.kind) && str_equal(reference.path, STR("-"));
}

int export_check(const char *to, bool stdout_is_free, struct err *err)
{
	struct reference reference;

	if (transport_check_known(str_of(to), err) < 0)
		return -1;
	if (!transport_find(str_of(to)))
		return err_set(err, ERR_INVALID,
			       "%s: expected oci:DIR[:TAG], oci-archive:FILE[:TAG] or "
			       "docker-archive:FILE[:REF]",
			       to);
	if (reference_parse(str_of(to), &reference, err) < 0)
		return -1;
	if (!export_is_stream(to))
		return 0;
	if (!stdout_is_free)
		return err_set(err, ERR_INVALID, "%s: standard output is for the digest", to);
	if (isatty(STDOUT_FILENO))
		return err_set(err, ERR_INVALID,
			       "%s: standard output is a terminal; redirect it, or name a file",
			       to);
	return 0;
}

/* The tag in a layout of an image for which none was asked. */
static struct str export_tag(const struct export *export)
{
	return export->to.tag.len > 0 ? export->to.tag : STR("latest");
}

static int export_oci_archive(const struct export *export, struct output *output, struct err *err)
{
	const json_t *name = json_array_get(export->spec->names, 0);
	const struct oci_archive_spec spec = {
		.image = export->spec->image,
		.tag = export_tag(export),
		.name = json_is_string(name) ? json_str(name) : STR(""),
	};

	return oci_archive_write(export->store, &spec, &output->sink, err);
}

/* The names to write: the tag that was asked for, else the image's names here. */
static json_t *export_names(const struct export *export)
{
	json_t *names;

	if (export->to.tag.len == 0 && export->spec->names)
		return json_deep_copy(export->spec->names);
	names = json_array();
	if (export->to.tag.len > 0)
		(void)json_array_append_new(names, json_from_str(export->to.tag));
	return names;
}

/* Its layers are inflated, which takes a worker. */
static int export_docker_archive(const struct export *export, struct output *output,
				 struct err *err)
{
	const struct asker asker = {
		.store = export->store,
		.worker_path = export->cli->worker_path,
		.streamfd = output->fd,
		.cancel = export->cli->cancel,
	};
	AUTO(json) json_t *request = asker_request_new(export->store);
	AUTO(json) json_t *answer = NULL;

	digest_json_set(request, "manifest", &export->spec->image);
	(void)json_object_set_new(request, "names", export_names(export));
	return asker_call(&asker, "export", request, &answer, err);
}

static int export_archive(const struct export *export, struct err *err)
{
	auto_output struct output output = OUTPUT_INIT;
	int result;

	if (output_open(export->to.path, STDOUT_FILENO, export->cli->cancel, &output, err) < 0)
		return -1;
	result = export->to.kind == REFERENCE_OCI_ARCHIVE
			 ? export_oci_archive(export, &output, err)
			 : export_docker_archive(export, &output, err);
	if (result == 0)
		result = output_commit(&output, err);
	return result < 0 ? err_ctx(err, "%s", export->spec->to) : 0;
}

int export_image(const struct cli *cli, struct store *store, struct progress *progress,
		 const struct export_spec *spec, struct err *err)
{
	struct export export = {.cli = cli, .store = store, .spec = spec};
	struct bake_event event = {.kind = BAKE_EXPORT, .text = str_of(spec->to)};
	AUTO(lease) struct lease *lease = NULL; /* all of it stays until it is written */
	int result;

	if (reference_parse(str_of(spec->to), &export.to, err) < 0 ||
	    lease_open(store, &lease, err) < 0 || lease_add(lease, &spec->image, err) < 0 ||
	    lease_rest(lease, err) < 0)
		return -1;
	progress_event(progress, &event);
	if (export.to.kind == REFERENCE_LAYOUT)
		result = layout_write(store, &spec->image, export.to.path, export_tag(&export),
				      cli->cancel, err);
	else
		result = export_archive(&export, err);
	if (result < 0)
		return -1;
	event.kind = BAKE_EXPORT_DONE;
	progress_event(progress, &event);
	return 0;
}

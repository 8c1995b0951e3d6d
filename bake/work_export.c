/* SPDX-License-Identifier: Apache-2.0 */
/* work_export.c - the role that writes an image whose layers are inflated for it. */
#include "bake/work.h"
#include "bake/work_call.h"
#include "registry/docker_archive.h"
#include "registry/output.h"

static int export_answer(struct work_call *call, json_t **out, struct err *err)
{
	auto_output struct output output = OUTPUT_INIT; /* the asker gives it its name */
	struct docker_archive_spec spec;
	struct str manifest;
	json_t *names;

	if (json_need_string(call->request, "", "manifest", &manifest, err) < 0 ||
	    json_need_array(call->request, "", "names", &names, err) < 0 ||
	    digest_parse(manifest, &spec.image, err) < 0)
		return -1;
	spec.names = names;
	if (output_open(STR("-"), WORK_FD_STREAM, &call->cancel, &output, err) < 0 ||
	    docker_archive_write(call->store, &spec, &output.sink, err) < 0 ||
	    output_commit(&output, err) < 0)
		return -1;
	*out = json_object();
	return 0;
}

int work_export(void)
{
	return work_call_run(export_answer);
}

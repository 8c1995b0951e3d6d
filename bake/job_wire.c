/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_wire.c - the documents of a job.
 *
 *	request    store, mapBytes, bakeId, spec (its text), base, previous,
 *	           rebake, fromStep, hosts, secrets (names), runtime
 *	progress   phase, step, of, text, done, cached, ms, bytes, size
 *	result     bakeId, rebake, digest, base, sizeBytes, steps, cachedSteps, unchanged, push,
 *	           kinds: [all, cached] of each;
 *	           and for the record: layers, createdMs, platform, slug, baseText, keys
 *	error      kind, os, text, exitCode (wire.c), step, line, terminal, logTail
 */
#include "bake/job_priv.h"

#include "bake/task_hosts_priv.h"
#include "bake/wire.h"
#include "layers/digest_json.h"

static const char *const job_phases[] = {
	[JOB_PULLING] = "pulling",
	[JOB_RUNNING] = "running",
	[JOB_EXPORTING] = "exporting",
};
#define JOB_PHASES (sizeof(job_phases) / sizeof(job_phases[0]))

const char *job_phase_name(enum job_phase phase)
{
	return job_phases[phase];
}

static int job_get_size(const json_t *object, const char *key, uint64_t *out, struct err *err)
{
	int64_t value = 0;

	if (json_get_int(object, "", key, &value, err) < 0)
		return -1;
	*out = (uint64_t)value;
	return 0;
}

/* One that is absent is all zero. */
static int job_get_digest(const json_t *object, const char *key, struct digest *out,
			  struct err *err)
{
	struct str text;
	int found = json_get_string(object, "", key, &text, err);

	*out = (struct digest){0};
	return found == 1 ? digest_parse(text, out, err) : found;
}

static json_t *job_secret_names(const struct secrets *secrets)
{
	json_t *names = json_array();

	for (size_t i = 0; secrets && i < secrets->count; i++)
		(void)json_array_append_new(names, json_from_str(str_of(secrets->at[i].id)));
	return names;
}

json_t *job_request_format(const struct job_request *request)
{
	json_t *value = json_object();

	json_set_text(value, "store", store_path(request->store));
	json_set_size(value, "mapBytes", store_map_bytes(request->store));
	(void)json_object_set_new(value, "spec", json_from_str(request->spec));
	if (request->previous)
		digest_json_set(value, "previous", request->previous);
	if (request->base)
		digest_json_set(value, "base", request->base);
	json_set_text(value, "bakeId", request->bake_id);
	json_set_bool(value, "rebake", request->rebake);
	json_set_size(value, "fromStep", request->from_step);
	(void)json_object_set_new(value, "hosts",
				  task_hosts_format(request->hosts, request->host_count));
	(void)json_object_set_new(value, "secrets", job_secret_names(request->secrets));
	json_set_text(value, "runtime", request->runtime);
	return value;
}

int job_order_parse(struct str text, struct job_order *out, struct err *err)
{
	struct str spec;
	struct str bake_id;
	uint64_t from_step;
	const json_t *value;

	if (json_parse(text, WIRE_PAYLOAD_MAX, &out->document, err) < 0)
		return -1;
	value = out->document;
	if (json_need_string(value, "", "store", &out->store_path, err) < 0 ||
	    json_need_string(value, "", "spec", &spec, err) < 0 ||
	    job_get_size(value, "mapBytes", &out->map_bytes, err) < 0 ||
	    job_get_digest(value, "previous", &out->previous, err) < 0 ||
	    job_get_digest(value, "base", &out->base, err) < 0 ||
	    json_need_string(value, "", "bakeId", &bake_id, err) < 0 ||
	    json_get_bool(value, "", "rebake", &out->rebake, err) < 0 ||
	    job_get_size(value, "fromStep", &from_step, err) < 0 ||
	    task_hosts_parse(value, &out->hosts, &out->host_count, err) < 0)
		return err_ctx(err, "request of a job");
	out->bake_id = bake_id.ptr;
	out->from_step = (size_t)from_step;
	out->runtime = json_string_value(json_object_get(value, "runtime"));
	return spec_parse(spec, &out->spec, err);
}

void job_order_done(struct job_order *order)
{
	spec_done(&order->spec);
	secrets_done(&order->secrets);
	free(order->hosts);
	json_decref(order->document);
	*order = (struct job_order){0};
}

int job_send_secrets(const struct secrets *secrets, int fd, struct err *err)
{
	for (size_t i = 0; secrets && i < secrets->count; i++) {
		if (wire_send(fd, WIRE_SECRET, secret_bytes(&secrets->at[i].value), err) < 0)
			return -1;
	}
	return 0;
}

int job_receive_secrets(struct job_order *order, int fd, struct err *err)
{
	json_t *names;

	if (json_need_array(order->document, "", "secrets", &names, err) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(names); i++) {
		auto_buf struct buf bytes = BUF_WIPED(SECRET_FILE_MAX);
		const char *name = json_string_value(json_array_get(names, i));
		enum wire_type type;
		int got = wire_receive(fd, NULL, &type, &bytes, err);

		if (got < 0)
			return err_ctx(err, "secret");
		if (got == 0 || type != WIRE_SECRET || !name)
			return err_set(err, ERR_UNAVAILABLE, "a secret did not come");
		if (secrets_add(&order->secrets, name, &bytes, err) < 0)
			return -1;
	}
	return 0;
}

json_t *job_progress_format(const struct job_progress *progress)
{
	json_t *value = json_object();

	json_set_int(value, "phase", progress->phase);
	json_set_size(value, "step", progress->step);
	json_set_size(value, "of", progress->of);
	(void)json_object_set_new(value, "text", json_from_str(progress->text));
	json_set_bool(value, "done", progress->done);
	json_set_bool(value, "cached", progress->cached);
	json_set_int(value, "ms", progress->duration_ms);
	json_set_size(value, "bytes", progress->bytes);
	json_set_size(value, "size", progress->size);
	return value;
}

int job_progress_parse(const json_t *value, struct job_progress *out, struct err *err)
{
	uint64_t phase;
	uint64_t step;
	uint64_t of;

	*out = (struct job_progress){0};
	if (job_get_size(value, "phase", &phase, err) < 0 ||
	    job_get_size(value, "step", &step, err) < 0 ||
	    job_get_size(value, "of", &of, err) < 0 ||
	    json_need_string(value, "", "text", &out->text, err) < 0 ||
	    json_get_bool(value, "", "done", &out->done, err) < 0 ||
	    json_get_bool(value, "", "cached", &out->cached, err) < 0 ||
	    json_get_int(value, "", "ms", &out->duration_ms, err) < 0 ||
	    job_get_size(value, "bytes", &out->bytes, err) < 0 ||
	    job_get_size(value, "size", &out->size, err) < 0)
		return -1;
	if (phase >= JOB_PHASES)
		return err_set(err, ERR_CORRUPT, "a job's phase %d", (int)phase);
	out->phase = (enum job_phase)phase;
	out->step = (size_t)step;
	out->of = (size_t)of;
	return 0;
}

json_t *job_error_format(const struct job_error *error)
{
	json_t *value = wire_error(&error->why, error->exit_code);

	json_set_size(value, "step", error->step);
	json_set_size(value, "line", error->line);
	json_set_bool(value, "terminal", error->terminal);
	(void)json_object_set_new(value, "logTail", json_from_str(error->log_tail));
	return value;
}

void job_error_parse(const json_t *value, struct job_error *out)
{
	struct err ignored; /* an absent member is as good */
	uint64_t step = 0;
	uint64_t line = 0;

	*out = (struct job_error){.terminal = true, .log_tail = STR("")};
	(void)wire_error_read(value, &out->exit_code, &out->why);
	(void)!job_get_size(value, "step", &step, &ignored);
	(void)!job_get_size(value, "line", &line, &ignored);
	(void)!json_get_bool(value, "", "terminal", &out->terminal, &ignored);
	(void)!json_get_string(value, "", "logTail", &out->log_tail, &ignored);
	out->step = (size_t)step;
	out->line = (size_t)line;
}

static void job_read_counts(const json_t *value, struct instruction_counts *out)
{
	const json_t *list = json_object_get(value, "kinds");

	for (size_t kind = 0; kind < INSTRUCTION_KINDS; kind++) {
		const json_t *pair = json_array_get(list, kind);

		out->all[kind] = (uint64_t)json_integer_value(json_array_get(pair, 0));
		out->cached[kind] = (uint64_t)json_integer_value(json_array_get(pair, 1));
	}
}

static int job_result_read(const json_t *value, struct job_result *out, struct err *err)
{
	uint64_t steps;
	uint64_t cached;
	json_t *pushes;
	struct str bake_id;

	if (json_need_string(value, "", "bakeId", &bake_id, err) < 0 ||
	    job_get_digest(value, "digest", &out->image, err) < 0 ||
	    job_get_digest(value, "base", &out->base, err) < 0 ||
	    job_get_size(value, "sizeBytes", &out->size, err) < 0 ||
	    job_get_size(value, "steps", &steps, err) < 0 ||
	    job_get_size(value, "cachedSteps", &cached, err) < 0 ||
	    json_get_bool(value, "", "unchanged", &out->unchanged, err) < 0 ||
	    json_need_array(value, "", "push", &pushes, err) < 0)
		return err_ctx(err, "result of a job");
	out->steps = (size_t)steps;
	out->cached_steps = (size_t)cached;
	out->pushes = pushes;
	job_read_counts(value, &out->counts);
	out->bake_id = bake_id.ptr;
	return 0;
}

int job_result_parse(json_t *document, struct job_result *out, struct err *err)
{
	*out = (struct job_result){.document = document};
	return job_result_read(document, out, err);
}

void job_result_done(struct job_result *result)
{
	json_decref(result->document);
	*result = (struct job_result){0};
}

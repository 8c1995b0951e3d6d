/* SPDX-License-Identifier: Apache-2.0 */
#include "api/await.h"

#include "api/human.h"

#include <string.h>

#define AWAIT_COLUMNS ((size_t)200)

const char *await_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static bool await_is_baking(const json_t *object)
{
	return strcmp(await_text(object, "status"), "baking") == 0;
}

static bool await_is_settled(const json_t *status)
{
	return !await_is_baking(status) && !await_is_baking(json_object_get(status, "rebake"));
}

int await_ask(struct await *await, int64_t wait_s, struct err *err)
{
	AUTO(json) json_t *args = json_object();
	AUTO(json) json_t *answer = NULL;
	struct call_spec spec = {.method = "agents.imageStatus", .args = args, .etag = await->etag};

	(void)json_object_set_new(args, "id", json_from_str(str_of(await->agent)));
	(void)json_object_set_new(args, "wait", json_integer(wait_s));
	if (await->version > 0)
		(void)json_object_set_new(args, "version", json_integer(await->version));
	if (call_daemon(await->cli, &spec, &answer, err) < 0)
		return -1;
	if (json_is_null(answer))
		return 0;
	json_decref(await->status);
	await->status = steal_ptr(&answer);
	return 1;
}

/* The phase, and which step. */
static char *await_phase(const json_t *at)
{
	const json_t *step = json_object_get(at, "step");
	const json_t *fault = json_object_get(at, "error");
	char *text;
	int len;

	if (json_is_object(step))
		len = asprintf(&text, "[%lld/%lld] %s%s",
			       (long long)json_integer_value(json_object_get(step, "n")),
			       (long long)json_integer_value(json_object_get(step, "of")),
			       json_is_true(json_object_get(step, "cached")) ? "CACHED " : "",
			       await_text(step, "text"));
	else if (fault)
		len = asprintf(&text, "%s (it is tried again at %s)", await_text(fault, "message"),
			       await_text(at, "retryAt"));
	else
		len = asprintf(&text, "%s",
			       json_object_get(at, "phase") ? await_text(at, "phase") : "queued");
	if (len < 0)
		abort();
	return text;
}

char *await_line(const json_t *status)
{
	const json_t *rebake = json_object_get(status, "rebake");
	bool first = await_is_baking(status);
	auto_free char *phase = await_phase(first ? status : rebake);
	auto_buf struct buf line = BUF_INIT(4 * AWAIT_COLUMNS + 1);
	auto_free char *text = NULL;
	struct err err;

	if (asprintf(&text, "%s version %lld: %s%s%s", await_text(status, "slug"),
		     (long long)json_integer_value(json_object_get(status, "version")),
		     await_text(status, "status"),
		     first                     ? ", "
		     : await_is_baking(rebake) ? ", rebake: "
					       : "",
		     await_is_settled(status) ? "" : phase) < 0 ||
	    human_line(str_of(text), AWAIT_COLUMNS, &line, &err) < 0)
		abort(); /* four bytes a column are the ceiling */
	return str_dup(buf_str(&line));
}

/* Print a line once, even if other parts of the answer change. */
static void await_tell(struct await *await)
{
	auto_free char *line = await_line(await->status);

	if (await->silent || (await->told && strcmp(await->told, line) == 0))
		return;
	(void)fprintf(stderr, "%s\n", line);
	free(await->told);
	await->told = steal_ptr(&line);
}

int await_change(struct await *await, struct err *err)
{
	int changed = await_ask(await, await->status ? AWAIT_WAIT_S : 0, err);

	while (changed == 0)
		changed = await_ask(await, AWAIT_WAIT_S, err);
	if (changed == 1)
		await_tell(await);
	return changed < 0 ? -1 : 0;
}

int await_settled(struct await *await, struct err *err)
{
	do {
		if (await_change(await, err) < 0)
			return -1;
	} while (!await_is_settled(await->status));
	return 0;
}

/* Line by line, without control characters: it is a step's output. */
static void await_tell_tail(struct str rest)
{
	struct str line;

	while (rest.len > 0 && str_cut(&rest, '\n', &line)) {
		auto_free char *shown = human_text(line);

		(void)fprintf(stderr, "  | %s\n", shown);
	}
}

int await_fail(const json_t *fault, struct err *err)
{
	await_tell_tail(str_of(await_text(fault, "logTail")));
	return err_set(err, err_kind_of(await_text(fault, "code"), 0), "%s",
		       await_text(fault, "message"));
}

int await_check(const json_t *status, struct err *err)
{
	const char *slug = await_text(status, "slug");
	long long version = json_integer_value(json_object_get(status, "version"));

	if (await_is_baking(status))
		return err_set(err, ERR_NOT_READY, "%s version %lld is still being baked", slug,
			       version);
	if (strcmp(await_text(status, "status"), "failed") != 0)
		return 0;
	(void)await_fail(json_object_get(status, "error"), err);
	return err_ctx(err, "%s version %lld", slug, version);
}

void await_done(struct await *await)
{
	json_decref(await->status);
	free(await->told);
	*await = (struct await){0};
}

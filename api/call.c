/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"

#include "api/admin_token.h"
#include "api/settings.h"

#include <fcntl.h>
#include <string.h>

/* Use the socket of this data directory's daemon, and its admin.token. */
static int call_find_local(const struct cli *cli, json_t *request, struct secret *token,
			   struct err *err)
{
	auto_close int datafd = open(cli->data_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int found;

	(void)json_object_set_new(request, "data", json_string(cli->data_path));
	if (!secret_is_empty(token))
		return 0;
	found = datafd < 0 ? 0 : admin_token_read(datafd, token, err);
	if (found == 0)
		return err_set(err, ERR_UNAVAILABLE,
			       "no daemon has served %s yet: start one by hearth serve, or set "
			       "HEARTH_URL and HEARTH_TOKEN",
			       cli->data_path);
	return found < 0 ? -1 : 0;
}

static int call_find_daemon(const struct cli *cli, json_t *request, struct err *err)
{
	auto_secret struct secret token = {0};
	const char *url = NULL;
	const char *text = NULL;

	if (settings_daemon(&url, &text, err) < 0)
		return -1;
	if (text && secret_put(&token, str_of(text), err) < 0)
		return -1;
	if (url && !text)
		return err_set(err, ERR_UNAUTHORIZED,
			       "HEARTH_URL is set, and HEARTH_TOKEN is not: set it to a token of "
			       "that daemon's");
	if (url)
		(void)json_object_set_new(request, "url", json_from_str(str_of(url)));
	else if (call_find_local(cli, request, &token, err) < 0)
		return -1;
	(void)json_object_set_new(request, "token", json_from_str(secret_bytes(&token)));
	return 0;
}

/* The role's result where an etag is asked for: {"etag", "answer"}. */
static int call_read_tagged(const json_t *said, char *etag, json_t **out, struct err *err)
{
	struct str tag;
	json_t *answer = NULL;
	int found = json_get_object(said, "", "answer", &answer, err);

	if (found < 0 || json_need_string(said, "", "etag", &tag, err) < 0)
		return -1;
	if (tag.len >= HTTP_ETAG_MAX)
		return err_set(err, ERR_REMOTE, "the daemon's answer has no fitting ETag");
	memcpy(etag, tag.ptr, tag.len);
	etag[tag.len] = '\0';
	*out = found == 1 ? json_incref(answer) : json_null();
	return 0;
}

/*
 * Say by which command one goes on. Of a token that the daemon refused: the
 * usual advice for this kind is about a registry's credentials.
 */
static int call_refused(struct err *err)
{
	const struct err why = *err;

	if (why.kind == ERR_NOT_FOUND && str_starts(str_of(why.text), STR("there is no agent ")))
		return err_set(err, why.kind, "%s; hearth status lists them", why.text);
	if (why.kind != ERR_UNAUTHORIZED)
		return -1;
	return err_set(err, ERR_DENIED, "%s; hearth token create makes one, on the daemon's host",
		       why.text);
}

int call_daemon(const struct cli *cli, const struct call_spec *spec, json_t **out, struct err *err)
{
	AUTO(json)
	json_t *request = json_pack("{s:s, s:b, s:b}", "method", spec->method, "raw",
				    spec->heard != NULL, "stream", spec->streamfd > 0);
	AUTO(json) json_t *said = NULL;
	const struct asker asker = {
		.worker_path = cli->puller_path,
		.log = spec->heard,
		.streamfd = spec->streamfd,
		.ctx = spec->ctx,
		.cancel = cli->cancel,
	};

	if (call_find_daemon(cli, request, err) < 0)
		return call_refused(err);
	if (spec->args)
		(void)json_object_set(request, "args", drop_const(spec->args));
	if (spec->etag)
		(void)json_object_set_new(request, "etag", json_string(spec->etag));
	if (asker_call(&asker, "call", request, &said, err) < 0)
		return call_refused(err);
	if (spec->etag)
		return call_read_tagged(said, spec->etag, out, err);
	*out = steal_ptr(&said);
	return 0;
}

int call_registry(const struct cli *cli, const char *path, json_t **out, bool *out_more,
		  struct err *err)
{
	AUTO(json) json_t *request = json_pack("{s:s}", "path", path);
	AUTO(json) json_t *said = NULL;
	const struct asker asker = {.worker_path = cli->puller_path, .cancel = cli->cancel};
	json_t *answer;

	if (call_find_daemon(cli, request, err) < 0 ||
	    asker_call(&asker, "call", request, &said, err) < 0)
		return call_refused(err);
	if (json_need_object(said, "", "answer", &answer, err) < 0)
		return -1;
	*out_more = json_string_length(json_object_get(said, "link")) > 0;
	*out = json_incref(answer);
	return 0;
}

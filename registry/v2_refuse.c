/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/v2_refuse.h"

#include "layers/digest_json.h"
#define LOG_MODULE "registry"
#include "layers/base/log.h"

#include <stdarg.h>
#include <stdio.h>

#define V2_REFUSE_TEXT_MAX 1024
#define V2_REFUSE_RETRY_S "1" /* when what is too much now may be tried again */

static const char *const v2_refuse_codes[] = {
	[V2_UNKNOWN] = "UNKNOWN",
	[V2_BLOB_UNKNOWN] = "BLOB_UNKNOWN",
	[V2_BLOB_UPLOAD_INVALID] = "BLOB_UPLOAD_INVALID",
	[V2_BLOB_UPLOAD_UNKNOWN] = "BLOB_UPLOAD_UNKNOWN",
	[V2_DENIED] = "DENIED",
	[V2_DIGEST_INVALID] = "DIGEST_INVALID",
	[V2_MANIFEST_BLOB_UNKNOWN] = "MANIFEST_BLOB_UNKNOWN",
	[V2_MANIFEST_INVALID] = "MANIFEST_INVALID",
	[V2_MANIFEST_UNKNOWN] = "MANIFEST_UNKNOWN",
	[V2_NAME_INVALID] = "NAME_INVALID",
	[V2_NAME_UNKNOWN] = "NAME_UNKNOWN",
	[V2_RANGE_INVALID] = "RANGE_INVALID",
	[V2_SIZE_INVALID] = "SIZE_INVALID",
	[V2_TAG_INVALID] = "TAG_INVALID",
	[V2_TOOMANYREQUESTS] = "TOOMANYREQUESTS",
	[V2_UNAUTHORIZED] = "UNAUTHORIZED",
	[V2_UNAVAILABLE] = "UNAVAILABLE",
	[V2_UNSUPPORTED] = "UNSUPPORTED",
};

static void v2_refuse_write(struct http_response *out, unsigned status, enum v2_code code,
			    const char *message, const json_t *detail)
{
	AUTO(json) json_t *text = json_from_str(str_of(message));
	AUTO(json)
	json_t *body = json_pack("{s:[{s:s, s:O, s:O?}]}", "errors", "code", v2_refuse_codes[code],
				 "message", text, "detail", detail);
	auto_free char *line = json_dumps(body, JSON_COMPACT);

	if (!line)
		abort();
	out->status = status;
	http_set_body(out, "application/json", str_of(line));
}

void v2_refuse(struct http_response *out, unsigned status, enum v2_code code, const char *format,
	       ...)
{
	char message[V2_REFUSE_TEXT_MAX];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	v2_refuse_write(out, status, code, message, NULL);
}

void v2_refuse_digest(struct http_response *out, unsigned status, enum v2_code code,
		      const struct digest *digest, const char *message)
{
	AUTO(json) json_t *detail = json_object();

	digest_json_set(detail, "digest", digest);
	v2_refuse_write(out, status, code, message, detail);
}

/* The code that a kind has where its caller knows no better one. */
static enum v2_code v2_refuse_code(enum err_kind kind)
{
	static const enum v2_code codes[] = {
		[ERR_INVALID] = V2_UNSUPPORTED,     [ERR_UNAUTHORIZED] = V2_UNAUTHORIZED,
		[ERR_DENIED] = V2_DENIED,           [ERR_NOT_FOUND] = V2_NAME_UNKNOWN,
		[ERR_LIMIT] = V2_SIZE_INVALID,      [ERR_UNSUPPORTED] = V2_UNSUPPORTED,
		[ERR_BUSY] = V2_TOOMANYREQUESTS,    [ERR_REMOTE] = V2_UNAVAILABLE,
		[ERR_UNAVAILABLE] = V2_UNAVAILABLE, [ERR_TIMEOUT] = V2_UNAVAILABLE,
		[ERR_FULL] = V2_UNAVAILABLE,
	};

	return (size_t)kind < sizeof(codes) / sizeof(codes[0]) ? codes[kind] : V2_UNKNOWN;
}

void v2_refuse_err(struct http_response *out, const struct err *why)
{
	/* Of a body, 422 would say that its grammar is right: what is corrupt here is ours. */
	unsigned status = why->kind == ERR_CORRUPT ? 500 : (unsigned)err_http_status(why->kind);

	if (why->kind == ERR_BUSY || why->kind == ERR_UNAVAILABLE)
		http_add_header(out, "Retry-After", STR(V2_REFUSE_RETRY_S));
	if (status >= 500)
		log_error("registry request failed status=%u why=\"%s\"", status, why->text);
	v2_refuse_write(
		out, status, v2_refuse_code(why->kind),
		status == 500 ? "it went wrong here; the daemon's log says what" : why->text, NULL);
}

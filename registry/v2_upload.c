/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_MODULE "registry"
#include "registry/v2_upload.h"

#include "layers/base/log.h"
#include "registry/intake.h"
#include "registry/range_priv.h"
#include "registry/uploads.h"
#include "registry/v2_mount.h"

#include <inttypes.h>

#define V2_UPLOAD_LENGTH_UNKNOWN UINT64_MAX

/* How an upload's last request ends; all but a failure is answered. */
enum v2_upload_end {
	V2_UPLOAD_FAILED = -1,
	V2_UPLOAD_KEPT,    /* it is a blob of the repository */
	V2_UPLOAD_WRONG,   /* its bytes are not those of its digest */
	V2_UPLOAD_REFUSED, /* the request is wrong, the upload is as it was */
};

/* What the headers say of the body. */
struct v2_upload_body {
	struct source *from;
	uint64_t length; /* or V2_UPLOAD_LENGTH_UNKNOWN */
	bool ranged;     /* it is these bytes of the blob: */
	uint64_t first;
	uint64_t last; /* inclusive */
};

static void v2_upload_refuse(struct v2_call *call, const struct err *why)
{
	if (why->kind == ERR_CONFLICT)
		v2_refuse(call->response, 409, V2_BLOB_UPLOAD_INVALID, "%s", why->text);
	else
		v2_refuse_err(call->response, why);
}

static void v2_upload_refuse_unknown(struct v2_call *call)
{
	v2_refuse(call->response, 404, V2_BLOB_UPLOAD_UNKNOWN,
		  "this repository has no such upload: it ended, or nothing was added to it for "
		  "long");
}

/* Location, and how much came so far. An empty session says the same as one of a byte. */
static void v2_upload_describe(struct v2_call *call, const char *id, uint64_t size)
{
	auto_buf struct buf text = BUF_INIT(GRAMMAR_NAME_MAX + 256);
	struct err err;

	if (buf_addf(&text, &err, "/v2/" STR_FMT "/blobs/uploads/%s",
		     STR_ARG(call->path.repository), id) < 0)
		abort(); /* names are bounded */
	http_add_header(call->response, "Location", buf_str(&text));
	buf_clear(&text);
	if (buf_addf(&text, &err, "0-%" PRIu64, size > 0 ? size - 1 : 0) < 0)
		abort();
	http_add_header(call->response, "Range", buf_str(&text));
	http_add_header(call->response, "Docker-Upload-UUID", str_of(id));
}

void v2_upload_answer_kept(struct v2_call *call, const struct digest *digest)
{
	auto_buf struct buf text = BUF_INIT(GRAMMAR_NAME_MAX + DIGEST_TEXT_MAX + 256);
	char name[DIGEST_TEXT_MAX];
	struct err err;

	if (buf_addf(&text, &err, "/v2/" STR_FMT "/blobs/%s", STR_ARG(call->path.repository),
		     digest_format(digest, name)) < 0)
		abort();
	call->response->status = 201;
	http_add_header(call->response, "Location", buf_str(&text));
	http_add_header(call->response, "Docker-Content-Digest", str_of(name));
}

/* ?digest=: 1 it is there, 0 it is not, -1 it is none, which is answered. */
static int v2_upload_read_digest(struct v2_call *call, struct digest *out)
{
	struct str text;
	struct err err;

	if (!v2_path_find(call->request, STR("digest"), &text))
		return 0;
	if (digest_parse(text, out, &err) == 0)
		return 1;
	v2_refuse(call->response, 400, V2_DIGEST_INVALID, "%s", err.text);
	return -1;
}

/* "0-99", and "bytes 0-99/1000" of clients that know the header from elsewhere. */
static bool v2_upload_parse_range(struct str text, struct v2_upload_body *out)
{
	if (str_starts(text, STR("bytes ")) || str_starts(text, STR("bytes=")))
		text = str_skip(text, sizeof("bytes ") - 1);
	if (!str_take_number(&text, &out->first) || !str_starts(text, STR("-")))
		return false;
	text = str_skip(text, 1);
	if (!str_take_number(&text, &out->last) || (text.len > 0 && text.ptr[0] != '/'))
		return false;
	out->ranged = true;
	return out->first <= out->last && out->last < UPLOADS_BLOB_MAX;
}

/* False: the headers contradict each other, which is answered. */
static bool v2_upload_read_body(struct v2_call *call, struct v2_upload_body *out)
{
	const char *length = http_find_header(call->request, "Content-Length");
	const char *range = http_find_header(call->request, "Content-Range");

	*out = (struct v2_upload_body){.from = call->request->stream};
	if (http_find_header(call->request, "Transfer-Encoding") ||
	    (length && !range_parse_number(str_of(length), &out->length)))
		out->length = V2_UPLOAD_LENGTH_UNKNOWN;
	if (!out->from || out->length == 0 || !range)
		return true;
	if (!v2_upload_parse_range(str_of(range), out)) {
		v2_refuse(call->response, 400, V2_RANGE_INVALID,
			  "Content-Range %.100s: expected FIRST-LAST", range);
		return false;
	}
	if (out->length == V2_UPLOAD_LENGTH_UNKNOWN || out->length == out->last - out->first + 1)
		return true;
	v2_refuse(call->response, 400, V2_SIZE_INVALID,
		  "Content-Range %.100s is not what Content-Length says", range);
	return false;
}

static bool v2_upload_has_body(const struct v2_upload_body *body)
{
	return body->from && body->length != 0;
}

/* A body has to begin where the session ends. */
static bool v2_upload_is_next(struct v2_call *call, const struct v2_upload_body *body,
			      const char *id, uint64_t size)
{
	if (!body->ranged || body->first == size)
		return true;
	v2_refuse(call->response, 416, V2_RANGE_INVALID,
		  "the next byte of this upload is number %" PRIu64 ", and not %" PRIu64, size,
		  body->first);
	v2_upload_describe(call, id, size);
	return false;
}

/* Whether so much came as the range says; if not, that is answered. */
static bool v2_upload_is_range(struct v2_call *call, const struct v2_upload_body *body,
			       uint64_t came)
{
	if (!body->ranged || came == body->last - body->first + 1)
		return true;
	v2_refuse(call->response, 400, V2_SIZE_INVALID, "the body is not what Content-Range says");
	return false;
}

/* 0 all of it was added; 1 it was refused, and nothing of it is there; -1. */
static int v2_upload_append(struct v2_call *call, struct uploads_session *session,
			    const struct v2_upload_body *body, struct err *err)
{
	uint64_t before = uploads_size(session);
	uint64_t most = body->ranged ? body->last - body->first + 1 : UINT64_MAX;
	int more;

	if (!v2_upload_has_body(body))
		return 0;
	more = uploads_append(session, body->from, most, err);
	if (more < 0)
		return -1;
	if (v2_upload_is_range(call, body, uploads_size(session) - before + (uint64_t)more))
		return 0;
	return uploads_cut(session, before, err) < 0 ? -1 : 1;
}

/* A session's bytes, or the body's, on their way into the store. */
struct v2_upload_intake {
	struct sink sink;
	struct intake *intake;
};

static int v2_upload_intake_write(struct sink *sink, struct str bytes, struct err *err)
{
	return intake_add(container_of(sink, struct v2_upload_intake, sink)->intake, bytes, err);
}

static int v2_upload_take_in_session(struct uploads_session *session, struct intake *intake,
				     struct err *err)
{
	struct v2_upload_intake into = {{v2_upload_intake_write}, intake};

	return uploads_copy(session, &into.sink, err);
}

static int v2_upload_too_large(struct err *err)
{
	return err_set(err, ERR_LIMIT, "a blob of more than %llu bytes",
		       (unsigned long long)UPLOADS_BLOB_MAX);
}

static int v2_upload_take_in_body(const struct v2_upload_body *body, struct intake *intake,
				  struct err *err)
{
	struct str bytes;
	int more;

	while ((more = body->from->read(body->from, &bytes, err)) == 1) {
		if (bytes.len > UPLOADS_BLOB_MAX - intake_size(intake))
			return v2_upload_too_large(err);
		if (intake_add(intake, bytes, err) < 0)
			return -1;
	}
	return more;
}

/* All bytes are there. */
static enum v2_upload_end v2_upload_finish(struct v2_call *call, struct intake *intake,
					   const struct digest *digest, struct err *err)
{
	if (intake_check(intake, err) < 0) {
		if (err->kind != ERR_CORRUPT)
			return V2_UPLOAD_FAILED;
		v2_refuse(call->response, 400, V2_DIGEST_INVALID, "%s", err->text);
		return V2_UPLOAD_WRONG;
	}
	if (intake_keep(intake, call->path.repository, err) < 0)
		return V2_UPLOAD_FAILED;
	v2_upload_answer_kept(call, digest);
	return V2_UPLOAD_KEPT;
}

/* Where it is said beforehand how much comes, what there is no room for is not begun. */
static int v2_upload_ask_for_room(struct v2_call *call, const struct v2_upload_body *body,
				  struct err *err)
{
	if (!v2_upload_has_body(body) || body->length == V2_UPLOAD_LENGTH_UNKNOWN)
		return 0;
	if (body->length > UPLOADS_BLOB_MAX)
		return v2_upload_too_large(err);
	return vacancy_ask(uploads_vacancy(call->v2->uploads), body->length, err);
}

static enum v2_upload_end v2_upload_keep_body(struct v2_call *call,
					      const struct v2_upload_body *body,
					      const struct digest *digest, struct err *err)
{
	AUTO(intake) struct intake *intake = NULL;

	if (intake_open(call->v2->store, digest, &intake, err) < 0 ||
	    (v2_upload_has_body(body) && v2_upload_take_in_body(body, intake, err) < 0))
		return V2_UPLOAD_FAILED;
	if (!v2_upload_is_range(call, body, intake_size(intake)))
		return V2_UPLOAD_REFUSED;
	return v2_upload_finish(call, intake, digest, err);
}

static enum v2_upload_end v2_upload_keep_session(struct v2_call *call,
						 struct uploads_session *session,
						 const struct digest *digest, struct err *err)
{
	AUTO(intake) struct intake *intake = NULL;

	if (intake_open(call->v2->store, digest, &intake, err) < 0 ||
	    v2_upload_take_in_session(session, intake, err) < 0)
		return V2_UPLOAD_FAILED;
	return v2_upload_finish(call, intake, digest, err);
}

/* As it comes. A place among the writers was taken for it. */
static enum v2_upload_end v2_upload_keep_direct(struct v2_call *call,
						const struct v2_upload_body *body,
						const struct digest *digest, struct err *err)
{
	enum v2_upload_end end = v2_upload_keep_body(call, body, digest, err);
	bool known = body->length != V2_UPLOAD_LENGTH_UNKNOWN;
	struct err ignored;

	uploads_leave(call->v2->uploads);
	/* What of it was written is nobody's, and has to go for others to have its space. */
	if (end == V2_UPLOAD_FAILED && err->kind == ERR_FULL &&
	    vacancy_make(uploads_vacancy(call->v2->uploads), known ? body->length : 0, &ignored) <
		    0)
		log_warn("no room made why=\"%s\"", ignored.text);
	return end;
}

static enum v2_upload_end v2_upload_keep_session_in_turn(struct v2_call *call,
							 struct uploads_session *session,
							 const struct digest *digest,
							 struct err *err)
{
	enum v2_upload_end end;

	(void)uploads_enter(call->v2->uploads, true);
	end = v2_upload_keep_session(call, session, digest, err);
	uploads_leave(call->v2->uploads);
	return end;
}

/* Behind what the session has already; what was added stays after a failure. */
static enum v2_upload_end v2_upload_keep_gathered(struct v2_call *call,
						  struct uploads_session *session,
						  const struct v2_upload_body *body,
						  const struct digest *digest, struct err *err)
{
	int wrong = v2_upload_append(call, session, body, err);
	enum v2_upload_end end;
	struct err ignored;

	if (wrong != 0)
		return wrong < 0 ? V2_UPLOAD_FAILED : V2_UPLOAD_REFUSED;
	end = v2_upload_keep_session_in_turn(call, session, digest, err);
	if (end != V2_UPLOAD_FAILED || err->kind != ERR_FULL ||
	    vacancy_make(uploads_vacancy(call->v2->uploads), uploads_size(session), &ignored) != 1)
		return end;
	return v2_upload_keep_session_in_turn(call, session, digest, err);
}

/*
 * What the session has (NULL for none), and this body behind it. A body that is the
 * whole blob goes into the store as it comes, where that can be; else it is
 * gathered first, since a slow client would hold up others.
 */
static enum v2_upload_end v2_upload_keep(struct v2_call *call, struct uploads_session *session,
					 const struct v2_upload_body *body,
					 const struct digest *digest, struct err *err)
{
	AUTO(uploads_session) struct uploads_session *own = NULL;

	if (v2_upload_ask_for_room(call, body, err) < 0)
		return V2_UPLOAD_FAILED;
	if ((!session || uploads_size(session) == 0) && uploads_enter(call->v2->uploads, false))
		return v2_upload_keep_direct(call, body, digest, err);
	if (!session && uploads_take_new(call->v2->uploads, &own, err) < 0)
		return V2_UPLOAD_FAILED;
	return v2_upload_keep_gathered(call, session ? session : own, body, digest, err);
}

/* POST uploads/?digest= */
static void v2_upload_post_whole(struct v2_call *call, const struct digest *digest)
{
	struct v2_upload_body body;
	struct err err;

	if (!v2_upload_read_body(call, &body))
		return;
	if (body.ranged && body.first != 0)
		v2_refuse(call->response, 416, V2_RANGE_INVALID, "a whole blob begins at byte 0");
	else if (v2_upload_keep(call, NULL, &body, digest, &err) == V2_UPLOAD_FAILED)
		v2_upload_refuse(call, &err);
}

/* ?digest-algorithm=, which says nothing that the digest would not say in the end. */
static bool v2_upload_check_algorithm(struct v2_call *call)
{
	struct str name;

	if (!v2_path_find(call->request, STR("digest-algorithm"), &name) ||
	    str_equal(name, STR("sha256")) || str_equal(name, STR("sha512")))
		return true;
	v2_refuse(call->response, 400, V2_DIGEST_INVALID,
		  "digest-algorithm: expected sha256 or sha512");
	return false;
}

static void v2_upload_post(struct v2_call *call)
{
	char id[ULID_TEXT_MAX];
	struct digest digest;
	struct err err;
	int given;

	if (v2_mount(call) || !v2_upload_check_algorithm(call))
		return;
	given = v2_upload_read_digest(call, &digest);
	if (given == 1)
		v2_upload_post_whole(call, &digest);
	if (given != 0)
		return;
	if (uploads_begin(call->v2->uploads, call->path.repository, id, &err) < 0) {
		v2_upload_refuse(call, &err);
		return;
	}
	call->response->status = 202;
	v2_upload_describe(call, id, 0);
}

/* Hold the session that the path names; false: it cannot be, which is answered. */
static bool v2_upload_take(struct v2_call *call, struct uploads_session **out)
{
	struct err err;
	int found = uploads_take(call->v2->uploads, call->path.repository, call->path.reference,
				 out, &err);

	if (found < 0)
		v2_upload_refuse(call, &err);
	else if (found == 0)
		v2_upload_refuse_unknown(call);
	return found == 1;
}

static void v2_upload_patch(struct v2_call *call)
{
	AUTO(uploads_session) struct uploads_session *session = NULL;
	struct v2_upload_body body;
	struct err err;
	int result;

	if (!v2_upload_take(call, &session) || !v2_upload_read_body(call, &body) ||
	    !v2_upload_is_next(call, &body, uploads_id(session), uploads_size(session)))
		return;
	result = v2_upload_ask_for_room(call, &body, &err);
	if (result == 0)
		result = v2_upload_append(call, session, &body, &err);
	if (result < 0)
		v2_upload_refuse(call, &err);
	else if (result == 0)
		call->response->status = 202;
	v2_upload_describe(call, uploads_id(session), uploads_size(session));
}

static void v2_upload_put(struct v2_call *call)
{
	AUTO(uploads_session) struct uploads_session *session = NULL;
	struct v2_upload_body body;
	struct digest digest;
	struct err err;
	int given = v2_upload_read_digest(call, &digest);
	enum v2_upload_end end;

	if (given == 0)
		v2_refuse(call->response, 400, V2_DIGEST_INVALID,
			  "?digest= is missing: an upload ends with the digest of all of it");
	if (given != 1 || !v2_upload_take(call, &session) || !v2_upload_read_body(call, &body) ||
	    !v2_upload_is_next(call, &body, uploads_id(session), uploads_size(session)))
		return;
	end = v2_upload_keep(call, session, &body, &digest, &err);
	if (end == V2_UPLOAD_FAILED)
		v2_upload_refuse(call, &err);
	else if (end != V2_UPLOAD_REFUSED && uploads_remove(session, &err) < 0)
		log_warn("upload not removed why=\"%s\"", err.text);
}

static void v2_upload_get(struct v2_call *call)
{
	char id[ULID_TEXT_MAX];
	uint64_t size;
	struct err err;
	int found = uploads_find(call->v2->uploads, call->path.repository, call->path.reference,
				 &size, &err);

	if (found < 0) {
		v2_upload_refuse(call, &err);
	} else if (found == 0) {
		v2_upload_refuse_unknown(call);
	} else {
		memcpy(id, call->path.reference.ptr, call->path.reference.len);
		id[call->path.reference.len] = '\0';
		call->response->status = 204;
		v2_upload_describe(call, id, size);
	}
}

static void v2_upload_delete(struct v2_call *call)
{
	AUTO(uploads_session) struct uploads_session *session = NULL;
	struct err err;

	if (!v2_upload_take(call, &session))
		return;
	if (uploads_remove(session, &err) < 0)
		v2_upload_refuse(call, &err);
	else
		call->response->status = 204;
}

void v2_upload_answer(struct v2_call *call)
{
	if (call->path.kind == V2_UPLOADS) {
		v2_upload_post(call);
		return;
	}
	switch (call->request->method) {
	case HTTP_PATCH:
		v2_upload_patch(call);
		break;
	case HTTP_PUT:
		v2_upload_put(call);
		break;
	case HTTP_DELETE:
		v2_upload_delete(call);
		break;
	case HTTP_GET:
	case HTTP_HEAD:
		v2_upload_get(call);
		break;
	case HTTP_OTHER:
	case HTTP_POST:
	case HTTP_OPTIONS:
		v2_refuse(call->response, 405, V2_UNSUPPORTED, "an upload knows no such method");
		break;
	}
}

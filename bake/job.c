/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/job_priv.h"

#include "bake/wire.h"
#include "bake/work.h"
#include "layers/base/proc.h"

#include <poll.h>
#include <sys/socket.h>

#define JOB_PIECE ((size_t)16 * 1024)

struct job {
	struct proc proc;
	int sockfd;
	struct buf in; /* what came */
	size_t used;   /* bytes of it that are done with */
	bool ended;    /* its last event was told */
	bool cancelled;
	json_t *document; /* owned: what the last event lends */
	struct job_result result;
	struct job_error error;
};

static int job_spawn(const struct job_request *request, int theirs, struct proc *out,
		     struct err *err)
{
	/* Without a configuration the list ends here. */
	const char *option = request->config ? "--config" : NULL;
	const char *const argv[] = {"hearth", "role", "bake", option, request->config, NULL};
	const struct proc_spec spec = {
		.path = request->program,
		.argv = argv,
		.fds = {-1, -1, STDERR_FILENO, theirs},
		.fd_count = WORK_FD_ASKER + 1,
		.new_session = true,
	};

	return proc_spawn(&spec, out, err);
}

static int job_ask(const struct job *job, const struct job_request *request, struct err *err)
{
	AUTO(json) json_t *value = job_request_format(request);

	if (wire_send_json(job->sockfd, WIRE_REQUEST, value, err) < 0)
		return -1;
	return job_send_secrets(request->secrets, job->sockfd, err);
}

int job_start(const struct job_request *request, struct job **out, struct err *err)
{
	AUTO(job) struct job *job = calloc(1, sizeof(*job));
	int ends[2];

	if (!job)
		abort();
	*job = (struct job){
		.proc = PROC_INIT, .sockfd = -1, .in = BUF_INIT(WIRE_PAYLOAD_MAX + JOB_PIECE)};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_os(err, errno, "make a socket");
	job->sockfd = ends[0];
	auto_close int theirs = ends[1];

	if (job_spawn(request, theirs, &job->proc, err) < 0)
		return -1;
	auto_close_release(&theirs);
	theirs = -1;
	/* That the job died is reported when it is read. */
	if (job_ask(job, request, err) < 0 && err->kind != ERR_UNAVAILABLE)
		return -1;
	*out = steal_ptr(&job);
	return 0;
}

int job_fd(const struct job *job)
{
	return job->sockfd;
}

/* 1 a whole frame, 0 not yet, -1 it is none. */
static int job_next_frame(struct job *job, enum wire_type *out, struct str *payload)
{
	const unsigned char *at = (const unsigned char *)job->in.ptr + job->used;
	size_t left = job->in.len - job->used;
	size_t len;

	if (left < WIRE_HEADER)
		return 0;
	len = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
	if (len > WIRE_PAYLOAD_MAX)
		return -1;
	if (left - WIRE_HEADER < len)
		return 0;
	*out = (enum wire_type)at[4];
	*payload = (struct str){(const char *)at + WIRE_HEADER, len};
	job->used += WIRE_HEADER + len;
	return 1;
}

/* What is done with makes room. */
static void job_forget_used(struct job *job)
{
	if (job->used == 0)
		return;
	job->in.len -= job->used;
	memmove(job->in.ptr, job->in.ptr + job->used, job->in.len + 1);
	job->used = 0;
}

/* 1 more came, 0 nothing yet, -1 nothing will. */
static int job_receive(struct job *job)
{
	char piece[JOB_PIECE];
	struct err ignored;
	ssize_t n;

	do {
		n = recv(job->sockfd, piece, sizeof(piece), MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return -1;
	job_forget_used(job);
	return buf_add(&job->in, (struct str){piece, (size_t)n}, &ignored) < 0 ? -1 : 1;
}

static int job_tell_error(struct job *job, struct job_event *out)
{
	job->ended = true;
	*out = (struct job_event){.kind = JOB_ERROR, .error = &job->error};
	return 1;
}

/* It ended without a last word. */
static int job_tell_death(struct job *job, struct job_event *out)
{
	struct err *why = &job->error.why;

	job->error = (struct job_error){.log_tail = STR("")};
	if (job->cancelled)
		(void)err_set(why, ERR_CANCELLED, "cancelled");
	else
		(void)err_set(why, ERR_UNAVAILABLE,
			      "the bake's process died: was it killed, or is memory short? dmesg "
			      "may tell");
	return job_tell_error(job, out);
}

static int job_tell_result(struct job *job, struct job_event *out)
{
	struct err *why = &job->error.why;

	if (job_result_parse(steal_ptr(&job->document), &job->result, why) < 0) {
		job->error = (struct job_error){.why = *why, .terminal = true, .log_tail = STR("")};
		return job_tell_error(job, out);
	}
	job->ended = true;
	*out = (struct job_event){.kind = JOB_RESULT, .result = &job->result};
	return 1;
}

static int job_tell_progress(struct job *job, struct job_event *out)
{
	struct err ignored;

	*out = (struct job_event){.kind = JOB_PROGRESS};
	return job_progress_parse(job->document, &out->progress, &ignored) == 0;
}

/* 1 there is something to tell, 0 not of this frame. */
static int job_hear(struct job *job, enum wire_type type, struct str payload, struct job_event *out)
{
	struct err ignored;

	if (type == WIRE_LOG) {
		*out = (struct job_event){.kind = JOB_LOG, .log = payload};
		return 1;
	}
	json_decref(job->document);
	job->document = NULL;
	if (json_parse(payload, WIRE_PAYLOAD_MAX, &job->document, &ignored) < 0)
		return job_tell_death(job, out);
	switch (type) {
	case WIRE_PROGRESS:
		return job_tell_progress(job, out);
	case WIRE_RESULT:
		return job_tell_result(job, out);
	case WIRE_ERROR:
		job_error_parse(job->document, &job->error);
		return job_tell_error(job, out);
	case WIRE_REQUEST:
	case WIRE_SECRET:
	case WIRE_LEAVE:
	case WIRE_LOG:
		break;
	}
	return 0;
}

int job_read(struct job *job, struct job_event *out)
{
	int more = 1;

	while (!job->ended && more > 0) {
		struct str payload;
		enum wire_type type;
		int got = job_next_frame(job, &type, &payload);

		if (got == 1 && job_hear(job, type, payload, out) == 1)
			return 1;
		if (got == 0)
			more = job_receive(job);
		if (got < 0 || more < 0)
			return job_tell_death(job, out);
	}
	return 0;
}

void job_cancel(struct job *job)
{
	job->cancelled = true;
	(void)shutdown(job->sockfd, SHUT_WR);
}

void job_end(struct job *job)
{
	struct err ignored;
	int status;

	if (!job)
		return;
	auto_close_release(&job->sockfd);
	if (job->proc.pid > 0 && proc_wait(&job->proc, JOB_LINGER_MS, NULL, &status, &ignored) < 0)
		proc_done(&job->proc);
	job_result_done(&job->result);
	json_decref(job->document);
	buf_done(&job->in);
	free(job);
}

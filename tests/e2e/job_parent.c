/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_parent.c - a daemon of one bake: starts a job, prints what it tells, and
 * publishes.
 *
 *	job_parent HEARTH DATA SPEC [NAME=VALUE...]
 *
 *	version=N         what the image is published as; 1
 *	previous=DIGEST   the image that is served
 *	base=DIGEST       what the base was for the version before
 *	rebake=STEP       bake anew from that step on; 0 for all of them
 *	id=ID             of the bake; without one it gets its own, and a record
 *	config=FILE
 *	host=NAME=ADDR:PORT
 *	secret=ID:VALUE
 *	keep=FILE         wait with publishing until the file is there
 *
 * A line on standard output for each event; a line on standard input cancels.
 * The exit code is the error's.
 */
#include "bake/bakes.h"
#include "bake/job.h"
#include "layers/base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PARENT_SPEC_MAX ((size_t)1 << 20)

struct parent {
	struct job_request request;
	struct job_names names;
	struct bakes_record bake;
	struct digest previous;
	struct digest base;
	struct secrets secrets;
	struct network_host host;
	const char *keep; /* or NULL */
	int64_t started_ms;
};

static int parent_add_secret(struct parent *parent, struct str value, struct err *err)
{
	auto_buf struct buf bytes = BUF_WIPED(SECRET_FILE_MAX);
	auto_free char *id = NULL;
	struct str name;

	if (!str_cut(&value, ':', &name))
		return err_set(err, ERR_INVALID, "secret=ID:VALUE");
	id = str_dup(name);
	if (buf_add(&bytes, value, err) < 0)
		return -1;
	return secrets_add(&parent->secrets, id, &bytes, err);
}

static int parent_set_rebake(struct parent *parent, struct str value)
{
	uint64_t step = 0;

	parent->request.rebake = true;
	if (!str_take_number(&value, &step))
		return -1;
	parent->request.from_step = (size_t)step;
	return 0;
}

static int parent_set(struct parent *parent, const char *argument, struct err *err)
{
	struct str value = str_of(argument);
	struct str name;

	if (!str_cut(&value, '=', &name))
		return err_set(err, ERR_INVALID, "%s", argument);
	if (str_equal(name, STR("version")))
		return str_take_number(&value, &parent->names.version) ? 0 : -1;
	if (str_equal(name, STR("id"))) {
		parent->request.bake_id = value.ptr;
		return 0;
	}
	if (str_equal(name, STR("config"))) {
		parent->request.config = value.ptr;
		return 0;
	}
	if (str_equal(name, STR("host"))) {
		parent->request.hosts = &parent->host;
		parent->request.host_count = 1;
		return network_host_parse(value, &parent->host, err);
	}
	if (str_equal(name, STR("rebake")))
		return parent_set_rebake(parent, value);
	if (str_equal(name, STR("base"))) {
		parent->request.base = &parent->base;
		return digest_parse(value, &parent->base, err);
	}
	if (str_equal(name, STR("secret")))
		return parent_add_secret(parent, value, err);
	if (str_equal(name, STR("keep"))) {
		parent->keep = value.ptr;
		return 0;
	}
	if (str_equal(name, STR("previous"))) {
		parent->request.previous = &parent->previous;
		return digest_parse(value, &parent->previous, err);
	}
	return err_set(err, ERR_INVALID, "%s", argument);
}

static void parent_print_progress(const struct job_progress *progress)
{
	const char *what = progress->done ? "done" : "begun";

	(void)printf("%s %zu/%zu %s " STR_FMT "\n", job_phase_name(progress->phase), progress->step,
		     progress->of, progress->cached ? "cached" : what, STR_ARG(progress->text));
}

static int parent_publish(const struct parent *parent, const struct job_result *result,
			  struct err *err)
{
	struct store *store = parent->request.store;
	AUTO(meta) struct meta *meta = NULL;

	(void)fflush(stdout);
	while (parent->keep && faccessat(AT_FDCWD, parent->keep, F_OK, 0) < 0)
		(void)poll(NULL, 0, 5);
	if (meta_begin(store, META_WRITE, &meta, err) < 0 ||
	    job_publish(meta, result, &parent->names, err) < 0)
		return -1;
	return meta_commit(steal_ptr(&meta), err);
}

/* As the queue does: a bake that is to be made has a record. */
static int parent_add_bake(struct parent *parent, struct err *err)
{
	AUTO(meta) struct meta *meta = NULL;

	if (parent->request.bake_id)
		return 0;
	(void)snprintf(parent->bake.slug, sizeof(parent->bake.slug), "agent");
	(void)snprintf(parent->bake.agent_id, sizeof(parent->bake.agent_id),
		       "agt_00000000000000000000000000");
	parent->bake.version = (int64_t)parent->names.version;
	parent->bake.rebake = parent->request.rebake;
	parent->bake.created_ms = clock_now_ms();
	if (meta_begin(parent->request.store, META_WRITE, &meta, err) < 0 ||
	    bakes_add(meta, &parent->bake, err) < 0)
		return -1;
	parent->request.bake_id = parent->bake.id;
	(void)printf("id %s\n", parent->bake.id);
	return meta_commit(steal_ptr(&meta), err);
}

static int parent_print_result(const struct parent *parent, const struct job_result *result,
			       struct err *err)
{
	char image[DIGEST_TEXT_MAX];
	char base[DIGEST_TEXT_MAX];

	(void)printf("result %s base=%s steps=%zu cached=%zu%s\n",
		     digest_format(&result->image, image), digest_format(&result->base, base),
		     result->steps, result->cached_steps, result->unchanged ? " unchanged" : "");
	if (parent_publish(parent, result, err) < 0)
		return -1;
	(void)printf("published %" PRId64 "\n", clock_monotonic_ms() - parent->started_ms);
	return 0;
}

static int parent_print_error(const struct job_error *error, struct err *err)
{
	(void)printf("error %s %s step=%zu exit=%d %s\n", err_name(error->why.kind),
		     error->terminal ? "terminal" : "passing", error->step, error->exit_code,
		     error->why.text);
	(void)printf("tail " STR_FMT "\n", STR_ARG(error->log_tail));
	*err = error->why;
	return -1;
}

/* 1 that was the last. */
static int parent_hear(const struct parent *parent, const struct job_event *event, struct err *err)
{
	switch (event->kind) {
	case JOB_PROGRESS:
		parent_print_progress(&event->progress);
		return 0;
	case JOB_LOG:
		(void)printf("log " STR_FMT "\n", STR_ARG(event->log));
		return 0;
	case JOB_RESULT:
		return parent_print_result(parent, event->result, err) < 0 ? -1 : 1;
	case JOB_ERROR:
		break;
	}
	return parent_print_error(event->error, err);
}

static int parent_listen(const struct parent *parent, struct job *job, struct err *err)
{
	struct pollfd fds[] = {{.fd = job_fd(job), .events = POLLIN},
			       {.fd = STDIN_FILENO, .events = POLLIN}};
	int last = 0;

	while (last == 0) {
		struct job_event event;

		while (last == 0 && job_read(job, &event) == 1)
			last = parent_hear(parent, &event, err);
		(void)fflush(stdout);
		if (last == 0 && poll(fds, 2, -1) > 0 && fds[1].revents) {
			job_cancel(job);
			fds[1].fd = -1;
		}
	}
	return last < 0 ? -1 : 0;
}

static int parent_run(struct parent *parent, struct err *err)
{
	AUTO(job) struct job *job = NULL;

	if (parent_add_bake(parent, err) < 0)
		return -1;
	(void)fflush(stdout);
	parent->started_ms = clock_monotonic_ms();
	if (job_start(&parent->request, &job, err) < 0)
		return -1;
	return parent_listen(parent, job, err);
}

static int parent_main(int argc, char **argv, struct parent *parent, struct err *err)
{
	auto_buf struct buf spec = BUF_INIT(PARENT_SPEC_MAX);
	AUTO(store) struct store *store = NULL;
	const struct store_options options = {.path = argv[2], .create = true};
	auto_close int fd = open(argv[3], O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fd_read_all(fd, &spec, err) < 0)
		return err_set(err, ERR_NOT_FOUND, "%s", argv[3]);
	for (int i = 4; i < argc; i++) {
		if (parent_set(parent, argv[i], err) < 0)
			return -1;
	}
	if (store_open(&options, &store, err) < 0)
		return -1;
	parent->request.program = argv[1];
	parent->request.store = store;
	parent->request.spec = buf_str(&spec);
	parent->request.secrets = &parent->secrets;
	return parent_run(parent, err);
}

int main(int argc, char **argv)
{
	struct parent parent = {.names = {.slug = STR("agent"), .version = 1, .latest = true}};
	struct err err = {0};
	int result;

	if (argc < 4)
		return 64;
	result = parent_main(argc, argv, &parent, &err);
	secrets_done(&parent.secrets);
	if (result < 0)
		(void)fprintf(stderr, "job_parent: %s\n", err.text);
	return result < 0 ? err_exit_code(err.kind) : 0;
}

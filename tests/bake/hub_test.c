/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/hub.h"
#include "tests/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOG_BYTES ((size_t)1024 * 1024)
#define LOG_MAX (4 * LOG_BYTES)

struct stage {
	int asker; /* our end of the connection that started the hub */
	int spoolfd;
	struct sockaddr_un address;
	socklen_t address_len;
	struct cancel cancel;
	struct hub *hub;
};

static void stage_open(struct stage *stage)
{
	struct err err = {0};
	int ends[2];
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*stage = (struct stage){.address = {.sun_family = AF_UNIX},
				.address_len = sizeof(stage->address)};
	/* An abstract name of the kernel's choice leaves no file. */
	assert_int_equal(bind(listener, (struct sockaddr *)&stage->address, sizeof(sa_family_t)),
			 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(
		getsockname(listener, (struct sockaddr *)&stage->address, &stage->address_len), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	stage->asker = ends[0];
	stage->spoolfd = memfd_create("spool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	check_ok(cancel_init(&stage->cancel, &err), &err);
	check_ok(hub_start(ends[1], listener, stage->spoolfd, LOG_MAX, &stage->cancel, &stage->hub,
			   &err),
		 &err);
}

static void stage_close(struct stage *stage)
{
	cancel_done(&stage->cancel);
	assert_int_equal(close(stage->spoolfd), 0);
	if (stage->asker >= 0)
		assert_int_equal(close(stage->asker), 0);
}

static int stage_join(const struct stage *stage)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (const struct sockaddr *)&stage->address, stage->address_len) == 0)
		return fd;
	assert_int_equal(close(fd), 0);
	return -1;
}

static void log_bytes(const struct stage *stage, size_t count)
{
	char piece[4096];

	memset(piece, 'x', sizeof(piece));
	for (size_t at = 0; at < count; at += sizeof(piece))
		assert_int_equal(write(hub_log_fd(stage->hub), piece, sizeof(piece)),
				 sizeof(piece));
}

/* All frames to the end: the log's bytes, and the answer's type. */
static size_t hear_all(int fd, enum wire_type *out_last)
{
	auto_buf struct buf payload = BUF_INIT(WIRE_PAYLOAD_MAX);
	struct err err = {0};
	enum wire_type type;
	size_t log = 0;

	*out_last = WIRE_LEAVE;
	while (wire_receive(fd, NULL, &type, &payload, &err) == 1) {
		if (type == WIRE_LOG)
			log += payload.len;
		*out_last = type;
	}
	return log;
}

struct listener {
	int fd;
	size_t log;
	enum wire_type last;
};

static void *listen_all(void *ctx)
{
	struct listener *listener = ctx;

	listener->log = hear_all(listener->fd, &listener->last);
	return NULL;
}

static void every_asker_hears_the_whole_log_and_the_answer(void **state)
{
	struct listener listeners[2] = {0};
	AUTO(json) json_t *answer = json_object();
	pthread_t threads[2];
	struct stage stage;
	struct err err = {0};
	const struct spool *spool;

	(void)state;
	stage_open(&stage);
	listeners[0].fd = stage.asker;
	assert_int_equal(pthread_create(&threads[0], NULL, listen_all, &listeners[0]), 0);
	log_bytes(&stage, LOG_BYTES);
	listeners[1].fd = stage_join(&stage); /* in the middle of it */
	assert_true(listeners[1].fd >= 0);
	assert_int_equal(pthread_create(&threads[1], NULL, listen_all, &listeners[1]), 0);
	log_bytes(&stage, LOG_BYTES);
	check_ok(hub_end_log(stage.hub, &spool, &err), &err);
	assert_int_equal(spool_kept(spool), 2 * LOG_BYTES);
	hub_finish(stage.hub, WIRE_RESULT, answer);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(listeners[i].log, 2 * LOG_BYTES);
		assert_int_equal(listeners[i].last, WIRE_RESULT);
	}
	assert_int_equal(close(listeners[1].fd), 0);
	assert_false(cancel_is_raised(&stage.cancel));
	stage_close(&stage);
}

static void wait_for_cancel(struct stage *stage)
{
	uint64_t count;

	/* eventfd reads do not block here, so ask the flag that it stands for */
	while (!cancel_is_raised(&stage->cancel))
		assert_true(read(stage->cancel.fd, &count, sizeof(count)) != 0);
}

static void the_last_one_to_leave_ends_the_step(void **state)
{
	AUTO(json) json_t *answer = json_object();
	enum wire_type last;
	struct stage stage;
	struct err err = {0};

	(void)state;
	stage_open(&stage);
	check_ok(wire_send(stage.asker, WIRE_LEAVE, STR(""), &err), &err);
	wait_for_cancel(&stage);
	assert_int_equal(stage_join(&stage), -1); /* nobody joins a dying step */
	hub_finish(stage.hub, WIRE_ERROR, answer);
	assert_int_equal(hear_all(stage.asker, &last), 0);
	assert_int_equal(last, WIRE_LEAVE); /* only the end of the stream */
	stage_close(&stage);
}

static void one_who_leaves_does_not_end_it_for_the_others(void **state)
{
	AUTO(json) json_t *answer = json_object();
	enum wire_type last;
	struct stage stage;
	char byte;
	int other;

	(void)state;
	stage_open(&stage);
	other = stage_join(&stage);
	log_bytes(&stage, 4096);
	assert_int_equal(recv(other, &byte, 1, MSG_PEEK), 1); /* it is one of the askers now */
	assert_int_equal(close(stage.asker), 0);
	stage.asker = -1;
	log_bytes(&stage, 4096);
	hub_finish(stage.hub, WIRE_RESULT, answer);
	assert_int_equal(hear_all(other, &last), 8192);
	assert_int_equal(last, WIRE_RESULT);
	assert_false(cancel_is_raised(&stage.cancel));
	assert_int_equal(close(other), 0);
	stage_close(&stage);
}

static void one_who_leaves_is_told_that_others_stay(void **state)
{
	AUTO(json) json_t *answer = json_object();
	enum wire_type last;
	struct stage stage;
	struct err err = {0};
	char byte;
	int other;

	(void)state;
	stage_open(&stage);
	other = stage_join(&stage);
	log_bytes(&stage, 4096);
	assert_int_equal(recv(other, &byte, 1, MSG_PEEK), 1); /* it is one of the askers now */
	check_ok(wire_send(other, WIRE_LEAVE, STR(""), &err), &err);
	assert_int_equal(hear_all(other, &last), 4096); /* to the end of its stream */
	assert_int_equal(last, WIRE_LEAVE);
	assert_false(cancel_is_raised(&stage.cancel));
	log_bytes(&stage, 4096);
	hub_finish(stage.hub, WIRE_RESULT, answer);
	assert_int_equal(hear_all(stage.asker, &last), 8192);
	assert_int_equal(last, WIRE_RESULT);
	assert_int_equal(close(other), 0);
	stage_close(&stage);
}

/* An asker that reads nothing meanwhile finds the beginning, the end, and how much it lost. */
static void a_log_above_its_ceiling_loses_its_middle(void **state)
{
	AUTO(json) json_t *answer = json_object();
	struct listener listener = {0};
	struct stage stage;
	struct err err = {0};
	const struct spool *spool;
	pthread_t thread;

	(void)state;
	stage_open(&stage);
	log_bytes(&stage, 2 * LOG_MAX);
	assert_false(cancel_is_raised(&stage.cancel));
	check_ok(hub_end_log(stage.hub, &spool, &err), &err);
	assert_int_equal(spool->written, 2 * LOG_MAX);
	assert_true(spool_kept(spool) > LOG_MAX && spool_kept(spool) <= LOG_MAX + SPOOL_NOTE_MAX);
	listener.fd = stage.asker;
	assert_int_equal(pthread_create(&thread, NULL, listen_all, &listener), 0);
	hub_finish(stage.hub, WIRE_RESULT, answer);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(listener.last, WIRE_RESULT);
	assert_int_equal(listener.log, LOG_MAX + strlen("\nhearth: 4194304 bytes of the log are "
							"left out here\n"));
	stage_close(&stage);
}

static void a_log_that_cannot_be_kept_ends_the_step_and_is_said(void **state)
{
	AUTO(json) json_t *answer = json_object();
	struct stage stage;
	struct err err = {0};
	const struct spool *spool;

	(void)state;
	stage_open(&stage);
	assert_int_equal(fcntl(stage.spoolfd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	log_bytes(&stage, 4096);
	check_err(hub_end_log(stage.hub, &spool, &err), &err, ERR_OS);
	assert_true(cancel_is_raised(&stage.cancel));
	hub_finish(stage.hub, WIRE_ERROR, answer);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_asker_hears_the_whole_log_and_the_answer),
		cmocka_unit_test(the_last_one_to_leave_ends_the_step),
		cmocka_unit_test(one_who_leaves_does_not_end_it_for_the_others),
		cmocka_unit_test(one_who_leaves_is_told_that_others_stay),
		cmocka_unit_test(a_log_above_its_ceiling_loses_its_middle),
		cmocka_unit_test(a_log_that_cannot_be_kept_ends_the_step_and_is_said),
	};

	return cmocka_run_group_tests_name("bake/hub", tests, NULL, NULL);
}

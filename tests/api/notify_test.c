/* SPDX-License-Identifier: Apache-2.0 */
#include "api/notify.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* A socket in the abstract namespace, as systemd may give one. */
static int bind_abstract(char name[static 64])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int n = snprintf(name, 64, "@hearth-notify-test-%d", (int)getpid());

	memcpy(address.sun_path, name, (size_t)n);
	address.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)),
			 0);
	return steal_fd(&fd);
}

static void the_service_manager_hears_one_datagram(void **state)
{
	char name[64];
	auto_close int fd = bind_abstract(name);
	char heard[64] = "";
	struct err err = {0};

	(void)state;
	check_ok(notify_send(name, "READY=1", &err), &err);
	assert_int_equal(recv(fd, heard, sizeof(heard), 0), 7);
	assert_string_equal(heard, "READY=1");
}

static void nobody_asked_is_no_failure(void **state)
{
	struct err err = {0};

	(void)state;
	check_ok(notify_send(NULL, "READY=1", &err), &err);
	check_ok(notify_send("", "READY=1", &err), &err);
	check_err(notify_send("relative", "READY=1", &err), &err, ERR_INVALID);
	check_err(notify_send("/nowhere/at/all", "READY=1", &err), &err, ERR_OS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_service_manager_hears_one_datagram),
		cmocka_unit_test(nobody_asked_is_no_failure),
	};

	return cmocka_run_group_tests_name("api/notify", tests, NULL, NULL);
}

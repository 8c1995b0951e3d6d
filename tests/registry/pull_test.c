/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls from Debian's docker-registry, into which skopeo pushed: see live_registry.h. */
#include "tests/registry/live.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

/* skopeo pushes the sample as acme/tool:1.0, compressed. */
static void push(struct live *live, const char *credentials)
{
	char from[128];
	char to[128];

	(void)snprintf(from, sizeof(from), "oci:%s:1.0", live->pulling->layout);
	(void)snprintf(to, sizeof(to), "docker://%s/acme/tool:1.0", live->registry.host);
	live_run("/usr/bin/skopeo", "copy", "-q", "--dest-tls-verify=false", "--dest-creds",
		 credentials, from, to);
	pulling_refer(live->pulling, "%s/acme/tool:1.0", live->registry.host);
}

static void an_image_arrives_whole_and_once(void **state)
{
	struct live *live = *state;
	struct err err = {0};

	live_registry_start(&live->registry, live->dir, "", "");
	push(live, "any:one");
	check_ok(pulling_run(live->pulling, &err), &err);
	assert_int_equal(live->pulling->fetched, SAMPLE_LAYERS);
	pulling_check_whole(live->pulling);

	check_ok(pulling_run(live->pulling, &err), &err);
	assert_int_equal(live->pulling->fetched, 0);
	assert_int_equal(live->pulling->held, SAMPLE_LAYERS);
}

static void an_image_is_had_by_its_digest(void **state)
{
	struct live *live = *state;
	char name[DIGEST_TEXT_MAX];
	struct digest digest;
	struct err err = {0};

	live_registry_start(&live->registry, live->dir, "", "");
	push(live, "any:one");
	check_ok(pulling_run(live->pulling, &err), &err);
	digest = live->pulling->tag.target;
	pulling_refer(live->pulling, "%s/acme/tool@%s", live->registry.host,
		      digest_format(&digest, name));
	check_ok(pulling_run(live->pulling, &err), &err);
	pulling_check_whole(live->pulling);
	digest.bytes[0] ^= 1;
	pulling_refer(live->pulling, "%s/acme/tool@%s", live->registry.host,
		      digest_format(&digest, name));
	check_err(pulling_run(live->pulling, &err), &err, ERR_NOT_FOUND);
}

static void what_is_not_there_is_told_by_name(void **state)
{
	struct live *live = *state;
	struct err err = {0};

	live_registry_start(&live->registry, live->dir, "", "");
	push(live, "any:one");
	pulling_refer(live->pulling, "%s/acme/tool:2.0", live->registry.host);
	check_err(pulling_run(live->pulling, &err), &err, ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "/acme/tool:2.0: 2.0 not found"));
	pulling_refer(live->pulling, "%s/acme/other", live->registry.host);
	check_err(pulling_run(live->pulling, &err), &err, ERR_NOT_FOUND);
	pulling_check_unnamed(live->pulling);
}

/* Damage the largest blob in the registry's own storage. */
static int damage(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)at;
	if (type == FTW_F && st->st_size > (off_t)SAMPLE_BIG / 2) {
		auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

		assert_int_equal(pwrite(fd, "damage", 6, (off_t)SAMPLE_BIG / 2), 6);
	}
	return 0;
}

static void bytes_that_rotted_in_the_registry_are_corrupt(void **state)
{
	struct live *live = *state;
	char storage[128];
	struct err err = {0};

	live_registry_start(&live->registry, live->dir, "", "");
	push(live, "any:one");
	(void)snprintf(storage, sizeof(storage), "%s/storage", live->dir);
	assert_int_equal(nftw(storage, damage, 16, FTW_PHYS), 0);
	check_err(pulling_run(live->pulling, &err), &err, ERR_CORRUPT);
	assert_non_null(strstr(err.text, "layer sha256:"));
	assert_int_equal(tree_find(live->pulling->store, &live->pulling->image.diff_ids[2], &err),
			 0);
	pulling_check_unnamed(live->pulling);
}

static void a_password_is_asked_for_and_judged(void **state)
{
	struct live *live = *state;
	auto_secret struct secret password = {0};
	struct err err = {0};

	live_start_with_password(live);
	push(live, "me:secret");
	check_err(pulling_run(live->pulling, &err), &err, ERR_UNAUTHORIZED);
	live->pulling->spec.user = STR("me");
	live->pulling->spec.password = &password;
	check_ok(secret_put(&password, STR("wrong"), &err), &err);
	check_err(pulling_run(live->pulling, &err), &err, ERR_UNAUTHORIZED);
	pulling_check_unnamed(live->pulling);
	check_ok(secret_put(&password, STR("secret"), &err), &err);
	check_ok(pulling_run(live->pulling, &err), &err);
	pulling_check_whole(live->pulling);
}

static void a_certificate_is_trusted_only_when_named(void **state)
{
	struct live *live = *state;
	struct err err = {0};

	live_start_with_tls(live);
	push(live, "any:one");
	check_err(pulling_run(live->pulling, &err), &err, ERR_REMOTE);
	assert_non_null(strstr(err.text, "certificate is not trusted"));
	pulling_check_unnamed(live->pulling);
	live->pulling->spec.ca_file = live->ca;
	check_ok(pulling_run(live->pulling, &err), &err);
	pulling_check_whole(live->pulling);
}

static void https_is_not_given_up_for_plain_http(void **state)
{
	struct live *live = *state;
	struct err err = {0};

	live_start_with_tls(live);
	push(live, "any:one");
	live_registry_stop(&live->registry);
	live_registry_start(&live->registry, live->dir, "", "");
	pulling_refer(live->pulling, "%s/acme/tool:1.0", live->registry.host);
	live->pulling->spec.ca_file = live->ca;
	check_err(pulling_run(live->pulling, &err), &err, ERR_REMOTE);
	assert_non_null(strstr(err.text, "does not speak HTTPS"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_image_arrives_whole_and_once),
		TEST(an_image_is_had_by_its_digest),
		TEST(what_is_not_there_is_told_by_name),
		TEST(bytes_that_rotted_in_the_registry_are_corrupt),
		TEST(a_password_is_asked_for_and_judged),
		TEST(a_certificate_is_trusted_only_when_named),
		TEST(https_is_not_given_up_for_plain_http),
	};

	if (geteuid() != 0 || !live_registry_can_run())
		return 125;
	return cmocka_run_group_tests_name("registry/pull", tests, NULL, NULL);
}

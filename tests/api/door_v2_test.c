/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/api/gate.h"

static void who_says_nothing_is_challenged_for_all(void **state)
{
	struct gate *gate = *state;

	assert_int_equal(gate_ask_from(gate, HTTP_GET, "/v2/", "", "UNAUTHORIZED"), 401);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/manifests/x"), 401);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/tags/list"), 401);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/_catalog"), 401);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/a/manifests/x"), 401);
	assert_int_equal(gate_ask(gate, HTTP_POST, "/v2/a/blobs/uploads/"), 401);
}

static void what_is_open_is_pulled_by_anybody_and_nothing_more(void **state)
{
	struct gate *gate = *state;

	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/tags/list"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/_catalog"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/closed/manifests/1"), 401);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/open/x/manifests/1"), 401);
	assert_int_equal(gate_ask(gate, HTTP_DELETE, "/v2/open/x/manifests/1"), 401);
	/* Another registry's open/x is another repository. */
	assert_int_equal(gate_ask_from(gate, HTTP_GET, "/v2/open/x/manifests/1", "docker.io", NULL),
			 401);
	/* A client without a password may say so by an empty one. */
	gate_use_basic(gate, "", "");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 0);
	/* A ping is how clients find out that they may have to log in. */
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 401);
}

static void a_scope_opens_its_repositories(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "pull:team/*", "push:team/app");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/_catalog"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/team/x/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/team/app/manifests/1"), 0);
	assert_int_equal(gate_ask_from(gate, HTTP_GET, "/v2/other/manifests/1", "", "DENIED"), 403);
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/team/x/manifests/1"), 403);
	assert_int_equal(gate_ask(gate, HTTP_DELETE, "/v2/team/app/manifests/1"), 403);
	assert_int_equal(gate_ask_from(gate, HTTP_GET, "/v2/team/x/manifests/1", "docker.io", NULL),
			 403);
}

/* As all clients do before they send a blob. */
static void who_pushes_may_ask_what_is_there(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "push:team/*", "read");
	assert_int_equal(gate_ask(gate, HTTP_PUT, "/v2/team/app/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_HEAD, "/v2/team/app/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/team/app/manifests/1"), 403);
	assert_int_equal(gate_ask(gate, HTTP_HEAD, "/v2/other/manifests/1"), 403);
}

static void levels_include_what_they_need(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "operate", "read");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/any/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_POST, "/v2/any/blobs/uploads/"), 0);
	assert_int_equal(gate_ask(gate, HTTP_DELETE, "/v2/any/manifests/1"), 403);
	gate_login(gate, "admin", "read");
	assert_int_equal(gate_ask(gate, HTTP_DELETE, "/v2/any/manifests/1"), 0);
	gate_login(gate, "read", "read");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/any/manifests/1"), 403);
}

static void a_token_is_the_password_of_any_user(void **state)
{
	struct gate *gate = *state;

	gate_login(gate, "pull", "read");
	gate_use_basic(gate, "whoever", gate->secret);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/manifests/1"), 0);
	gate_use_basic(gate, "", gate->secret);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 0);
}

static void wrong_credentials_are_challenged_even_where_none_are_needed(void **state)
{
	static const char *const fields[] = {
		"Basic !!!!",
		"Basic YQ==", /* no colon */
		"Basic",
		"Digest x",
		"Bearer hth_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	};
	struct gate *gate = *state;

	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		(void)snprintf(gate->field, sizeof(gate->field), "%s", fields[i]);
		assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/open/x/manifests/1"), 401);
	}
	gate_use_basic(gate, "user", "wrong");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 401);
	gate_use_basic(gate, "user", "");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/"), 401);
}

static void a_revoked_token_opens_nothing(void **state)
{
	struct gate *gate = *state;
	AUTO(meta) struct meta *meta = NULL;
	struct err err = {0};

	gate_login(gate, "pull", "read");
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/manifests/1"), 0);
	check_ok(meta_begin(gate->fixture->store, META_WRITE, &meta, &err), &err);
	check_ok(token_revoke(meta, (struct str){gate->id, strlen(gate->id)}, &err), &err);
	check_ok(meta_commit(steal_ptr(&meta), &err), &err);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/manifests/1"), 401);
}

static void the_challenge_names_the_scope_and_where_tokens_are(void **state)
{
	struct gate *gate = *state;
	struct gate_ask ping = {.method = HTTP_GET, .path = "/v2/"};
	struct gate_ask pull = {.method = HTTP_GET, .path = "/v2/a/b/manifests/1"};
	struct gate_ask push = {.method = HTTP_POST, .path = "/v2/a/blobs/uploads/"};
	struct gate_ask list = {.method = HTTP_GET, .path = "/v2/_catalog"};

	assert_int_equal(gate_try(gate, &ping), 401);
	assert_string_equal(ping.challenge, "Bearer realm=\"http://127.0.0.1:7460/v2/token\","
					    "service=\"hearth\"");
	assert_int_equal(gate_try(gate, &pull), 401);
	assert_non_null(strstr(pull.challenge, ",scope=\"repository:a/b:pull\""));
	assert_int_equal(gate_try(gate, &push), 401);
	assert_non_null(strstr(push.challenge, ",scope=\"repository:a:pull,push\""));
	assert_int_equal(gate_try(gate, &list), 401);
	assert_non_null(strstr(list.challenge, ",scope=\"registry:catalog:*\""));
}

static void the_realm_is_as_the_client_sees_us(void **state)
{
	struct gate *gate = *state;
	struct gate_ask behind = {.method = HTTP_GET, .path = "/v2/"};
	struct gate_ask strange = {.method = HTTP_GET, .path = "/v2/"};

	gate_host = "registry.example:443";
	gate_proto = "https"; /* which a proxy in front of us says */
	assert_int_equal(gate_try(gate, &behind), 401);
	assert_non_null(strstr(behind.challenge, "\"https://registry.example:443/v2/token\""));
	gate_host = "x\",error=\"";
	assert_int_equal(gate_try(gate, &strange), 401);
	assert_string_equal(strange.challenge, "Basic realm=\"hearth\", charset=\"UTF-8\"");
}

static struct mirror *stand_for_hub(struct gate *gate)
{
	static const struct mirror_upstream_spec hub = {.host = STR("docker.io"),
							.place = STR("127.0.0.1:9")};
	const struct mirror_options options = {.store = gate->fixture->store,
					       .upstreams = &hub,
					       .upstream_count = 1,
					       .default_host = STR("docker.io")};
	struct mirror *mirror = NULL;
	struct err err = {0};

	check_ok(mirror_open(&options, &mirror, &err), &err);
	return mirror;
}

/* What a name means decides, and not how it was written. */
static void a_mirrored_repository_is_open_by_its_whole_name(void **state)
{
	struct gate *gate = *state;
	AUTO(mirror) struct mirror *mirror = stand_for_hub(gate);

	gate->daemon.v2.mirror = mirror;
	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	gate->open[0] = "docker.io/library/*";
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/alpine/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/library/alpine/manifests/1"), 0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/docker.io/library/alpine/manifests/1"), 0);
	assert_int_equal(
		gate_ask_from(gate, HTTP_GET, "/v2/library/alpine/manifests/1", "docker.io", NULL),
		0);
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/team/app/manifests/1"), 401);
	gate->open[0] = "team/*"; /* which are ours, and not the hub's that are called so */
	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/team/app/manifests/1"), 401);
	assert_int_equal(gate_ask_from(gate, HTTP_GET, "/v2/x/manifests/1", "other.example", NULL),
			 401);
}

/* So it is to somebody with a token: containerd need not log in to hear that. */
static void an_ns_that_is_no_upstream_is_refused_alike_where_all_are_open(void **state)
{
	struct gate *gate = *state;
	AUTO(mirror) struct mirror *mirror = stand_for_hub(gate);
	struct config_upstream upstreams[] = {{.host = "docker.io"}, {.host = "quay.io"}};
	struct gate_ask ask = {.method = HTTP_GET,
			       .path = "/v2/x/manifests/1",
			       .ns = "other.example",
			       .code = "other.example is no upstream",
			       .answered = true};

	gate->daemon.v2.mirror = mirror;
	gate->cli.config.upstreams = upstreams;
	gate->cli.config.upstream_count = 1;
	assert_int_equal(gate_ask_from(gate, HTTP_GET, ask.path, ask.ns, NULL), 401);
	gate->cli.config.anonymous = (struct config_texts){gate->open, 1};
	gate->open[0] = "docker.io/library/*";
	assert_int_equal(gate_try(gate, &ask), 403);
	gate->cli.config.upstream_count = 2; /* the second one is nobody's business */
	assert_int_equal(gate_ask_from(gate, HTTP_GET, ask.path, ask.ns, NULL), 401);
	assert_int_equal(gate_ask_from(gate, HTTP_GET, ask.path, "quay.io", NULL), 401);
	gate_login(gate, "operate", "read");
	assert_int_equal(gate_try(gate, &ask), 403);
	gate->cli.config.upstream_count = 0;
}

/* The value of a sample on the page of metrics. */
static bool counts(const struct gate *gate, const char *line)
{
	auto_buf struct buf page = BUF_INIT(METRICS_PAGE_MAX);
	struct err err = {0};

	check_ok(metrics_page(gate->daemon.metrics, &page, &err), &err);
	return strstr(page.ptr, line);
}

static void requests_are_counted_by_what_they_ask_for(void **state)
{
	struct gate *gate = *state;

	assert_int_equal(gate_ask(gate, HTTP_GET, "/v2/a/manifests/1"), 401);
	assert_int_equal(gate_ask(gate, HTTP_HEAD, "/v2/a/manifests/2"), 401);
	assert_int_equal(gate_ask(gate, HTTP_POST, "/v2/a/blobs/uploads/"), 401);
	assert_true(counts(gate, "hearth_registry_requests_total{kind=\"manifest\"} 2\n"));
	assert_true(counts(gate, "hearth_registry_requests_total{kind=\"upload\"} 1\n"));
	assert_true(counts(gate, "hearth_registry_requests_total{kind=\"blob\"} 0\n"));
	assert_true(counts(gate, "hearth_unauthorized_total 3\n"));
	assert_false(counts(gate, "hearth_registry_sent_bytes_total 0\n"));
}

/* containerd sends the name that its hosts.toml has an address for. */
static void a_name_of_this_daemon_may_be_the_ns(void **state)
{
	struct gate *gate = *state;
	const char *path = "/v2/team/app/manifests/1";

	gate_login(gate, "pull:team/*", "read");
	gate->daemon.hosts[gate->daemon.host_count++] = "hearth.internal";
	assert_int_equal(gate_ask_from(gate, HTTP_GET, path, "hearth.internal", NULL), 0);
	assert_int_equal(gate_ask_from(gate, HTTP_GET, path, "Hearth.Internal:7460", NULL), 0);
	assert_int_equal(gate_ask_from(gate, HTTP_GET, path, "other.internal", NULL), 403);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		gate_test(who_says_nothing_is_challenged_for_all),
		gate_test(what_is_open_is_pulled_by_anybody_and_nothing_more),
		gate_test(a_scope_opens_its_repositories),
		gate_test(who_pushes_may_ask_what_is_there),
		gate_test(levels_include_what_they_need),
		gate_test(a_token_is_the_password_of_any_user),
		gate_test(wrong_credentials_are_challenged_even_where_none_are_needed),
		gate_test(a_revoked_token_opens_nothing),
		gate_test(the_challenge_names_the_scope_and_where_tokens_are),
		gate_test(the_realm_is_as_the_client_sees_us),
		gate_test(requests_are_counted_by_what_they_ask_for),
		gate_test(a_mirrored_repository_is_open_by_its_whole_name),
		gate_test(a_name_of_this_daemon_may_be_the_ns),
		gate_test(an_ns_that_is_no_upstream_is_refused_alike_where_all_are_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cors.h"
#include "tests/check.h"

#include <strings.h>

/* What a request says, and the configuration that it meets. */
struct scene {
	struct http_request request;
	struct http_field headers[2];
	struct config config;
	struct http_response response;
};

static const char *scene_find_header(const struct http_request *request, const char *name)
{
	const struct scene *scene = container_of(drop_const(request), struct scene, request);

	for (size_t i = 0; i < 2; i++) {
		if (scene->headers[i].value.ptr &&
		    strcasecmp(scene->headers[i].name.ptr, name) == 0)
			return scene->headers[i].value.ptr;
	}
	return NULL;
}

static const char *scene_said(const struct scene *scene, const char *name)
{
	for (size_t i = 0; i < scene->response.header_count; i++) {
		if (strcmp(scene->response.headers[i].name, name) == 0)
			return scene->response.headers[i].value;
	}
	return NULL;
}

static void scene_open(struct scene *scene, const char *document, const char *origin)
{
	struct err err = {0};

	*scene = (struct scene){
		.request = {.method = HTTP_OPTIONS, .find_header = scene_find_header},
		.headers = {{STR("Origin"), str_of(origin ? origin : "")},
			    {STR("Access-Control-Request-Method"), STR("GET")}},
		.config = CONFIG_INIT,
		.response = HTTP_RESPONSE_INIT,
	};
	if (!origin)
		scene->headers[0].value.ptr = NULL;
	check_ok(config_parse(str_of(document), &scene->config, &err), &err);
}

static void scene_close(struct scene *scene)
{
	http_response_clear(&scene->response);
	config_done(&scene->config);
}

#define LISTED "{\"origins\": [\"https://ui.example\"]}"

static void an_origin_is_a_scheme_a_host_and_a_port(void **state)
{
	static const char *const wrong[] = {
		"",          "*",          "null",         "ui.example",  "ftp://ui.example",
		"https://",  "https://:1", "https://a/",   "https://a b", "https://u@a",
		"https://A", "https://*",  "https://a?b=c"};

	(void)state;
	assert_true(cors_is_origin(STR("https://ui.example")));
	assert_true(cors_is_origin(STR("http://localhost:5173")));
	assert_true(cors_is_origin(STR("http://[::1]:80")));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(cors_is_origin(str_of(wrong[i])));
}

static void a_listed_page_may_send_a_token_and_read_the_answer(void **state)
{
	struct scene scene;
	struct err err = {0};

	(void)state;
	scene_open(&scene, LISTED, "https://ui.example");
	assert_true(cors_is_preflight(&scene.request));
	check_ok(cors_answer_preflight(&scene.config, &scene.request, &scene.response, &err), &err);
	cors_add(&scene.config, &scene.request, &scene.response);
	assert_int_equal(scene.response.status, 204);
	assert_string_equal(scene_said(&scene, "Access-Control-Allow-Origin"),
			    "https://ui.example");
	assert_string_equal(scene_said(&scene, "Vary"), "Origin");
	assert_non_null(
		strstr(scene_said(&scene, "Access-Control-Allow-Headers"), "Authorization"));
	assert_non_null(strstr(scene_said(&scene, "Access-Control-Expose-Headers"), "ETag"));
	scene_close(&scene);
}

static void others_and_everybody_by_default_may_not(void **state)
{
	static const struct {
		const char *document;
		const char *origin;
	} cases[] = {
		{"{}", "https://ui.example"},
		{LISTED, "https://evil.example"},
		{LISTED, "https://ui.example.evil.example"},
		{LISTED, "http://ui.example"},
		{LISTED, "null"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;
		struct err err = {0};

		scene_open(&scene, cases[i].document, cases[i].origin);
		check_err(
			cors_answer_preflight(&scene.config, &scene.request, &scene.response, &err),
			&err, ERR_DENIED);
		cors_add(&scene.config, &scene.request, &scene.response);
		assert_null(scene_said(&scene, "Access-Control-Allow-Origin"));
		scene_close(&scene);
	}
}

static void what_is_no_question_of_a_browser_is_no_preflight(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, LISTED, NULL);
	assert_false(cors_is_preflight(&scene.request));
	cors_add(&scene.config, &scene.request, &scene.response);
	assert_null(scene_said(&scene, "Access-Control-Allow-Origin"));
	assert_string_equal(scene_said(&scene, "Vary"), "Origin"); /* for caches on the way */
	scene_close(&scene);
	scene_open(&scene, LISTED, "https://ui.example");
	scene.request.method = HTTP_GET;
	assert_false(cors_is_preflight(&scene.request));
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_origin_is_a_scheme_a_host_and_a_port),
		cmocka_unit_test(a_listed_page_may_send_a_token_and_read_the_answer),
		cmocka_unit_test(others_and_everybody_by_default_may_not),
		cmocka_unit_test(what_is_no_question_of_a_browser_is_no_preflight),
	};

	return cmocka_run_group_tests_name("api/cors", tests, NULL, NULL);
}

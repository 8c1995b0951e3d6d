/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"
#include "tests/check.h"

#include <string.h>

static int add_queue(void *ctx, struct buf *page, struct err *err)
{
	const struct metric_sample sample = {"hearth_queue", "state=\"queued\"", "gauge",
					     "Bakes that wait.", *(uint64_t *)ctx};

	return metrics_value(page, &sample, err);
}

static void a_page_has_what_was_counted_and_what_others_know(void **state)
{
	struct metrics *metrics = metrics_new();
	auto_buf struct buf page = BUF_INIT(METRICS_PAGE_MAX);
	uint64_t queued = 7;
	struct err err = {0};

	(void)state;
	metrics_add_source(metrics, add_queue, &queued);
	metrics_count(metrics, METRIC_READS);
	metrics_count(metrics, METRIC_READS);
	metrics_count(metrics, METRIC_UNAUTHORIZED);
	check_ok(metrics_page(metrics, &page, &err), &err);
	assert_non_null(strstr(page.ptr, "\nhearth_requests_total{kind=\"read\"} 2\n"));
	assert_non_null(strstr(page.ptr, "\nhearth_requests_total{kind=\"write\"} 0\n"));
	assert_non_null(strstr(page.ptr, "\nhearth_unauthorized_total 1\n"));
	assert_non_null(strstr(page.ptr, "\n# TYPE hearth_queue gauge\n"
					 "hearth_queue{state=\"queued\"} 7\n"));
	metrics_free(metrics);
}

static void a_histogram_counts_upwards(void **state)
{
	struct metrics *metrics = metrics_new();
	auto_buf struct buf page = BUF_INIT(METRICS_PAGE_MAX);
	struct err err = {0};

	(void)state;
	metrics_time(metrics, METRIC_READ_TIME, 100);
	metrics_time(metrics, METRIC_READ_TIME, 101);
	metrics_time(metrics, METRIC_READ_TIME, 9000000);
	check_ok(metrics_page(metrics, &page, &err), &err);
	assert_non_null(strstr(page.ptr, "_bucket{kind=\"read\",le=\"0.0001\"} 1\n"));
	assert_non_null(strstr(page.ptr, "_bucket{kind=\"read\",le=\"0.0005\"} 2\n"));
	assert_non_null(strstr(page.ptr, "_bucket{kind=\"read\",le=\"5.0\"} 2\n"));
	assert_non_null(strstr(page.ptr, "_bucket{kind=\"read\",le=\"+Inf\"} 3\n"));
	assert_non_null(strstr(page.ptr, "_sum{kind=\"read\"} 9.000201\n"));
	assert_non_null(strstr(page.ptr, "_count{kind=\"read\"} 3\n"));
	metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_has_what_was_counted_and_what_others_know),
		cmocka_unit_test(a_histogram_counts_upwards),
	};

	return cmocka_run_group_tests_name("api/metrics", tests, NULL, NULL);
}

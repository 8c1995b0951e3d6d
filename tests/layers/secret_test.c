/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret_test.c - what is left of a secret that is gone: nothing.
 *
 * The test reads its own memory, as a core dump or another process would. The
 * secret is made at run time, so that the program's text does not hold it.
 */
#include "layers/base/secret.h"

#include "layers/base/json.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>

#define MAPS_MAX 512
#define SCAN_SIZE ((size_t)1 << 20)
#define SHADOW_SIZE \
	((uintptr_t)1 << 32) /* a sanitizer's own has more than this, and no bytes of ours */

/* The mark with a bit of each byte turned, which is all that the test itself keeps. */
static const char turned[] = "0123456789abcdefghijklm";

#define MARK_LEN (sizeof(turned) - 1)

/* A writable mapping of ours, and the one buffer in which others are looked at. */
struct scan {
	uintptr_t from[MAPS_MAX];
	uintptr_t to[MAPS_MAX];
	size_t count;
	int fd;
	char bytes[SCAN_SIZE];
};

static void mark_write(char *out)
{
	for (size_t i = 0; i < MARK_LEN; i++)
		out[i] = (char)(turned[i] ^ 1);
}

static size_t count_in(const char *bytes, size_t len)
{
	const char *end = bytes + len;
	size_t found = 0;

	while ((bytes = memchr(bytes, turned[0] ^ 1, (size_t)(end - bytes)))) {
		size_t most = (size_t)(end - bytes) < MARK_LEN ? (size_t)(end - bytes) : MARK_LEN;
		size_t same = 0;

		while (same < most && bytes[same] == (turned[same] ^ 1))
			same++;
		found += same == MARK_LEN;
		bytes++;
	}
	return found;
}

/* "55d0c8e00000", for hex_decode() knows whole bytes only. */
static uintptr_t take_address(const char **text)
{
	static const char digits[] = "0123456789abcdef";
	uintptr_t address = 0;
	const char *digit;

	while (**text && (digit = strchr(digits, **text))) {
		address = address << 4 | (uintptr_t)(digit - digits);
		++*text;
	}
	return address;
}

/* FROM-TO rwxp … */
static void scan_find_maps(struct scan *scan)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		const char *at = line;
		uintptr_t from = take_address(&at);
		uintptr_t to;

		assert_int_equal(*at++, '-');
		to = take_address(&at);
		if (strncmp(at, " rw", 3) != 0 || to - from >= SHADOW_SIZE)
			continue;
		assert_true(scan->count < MAPS_MAX);
		scan->from[scan->count] = from;
		scan->to[scan->count++] = to;
	}
	(void)fclose(maps);
}

/* Pieces overlap by what a mark may reach over the end of one. */
static size_t scan_map(struct scan *scan, size_t i)
{
	size_t found = 0;

	for (uintptr_t at = scan->from[i]; at < scan->to[i]; at += SCAN_SIZE - MARK_LEN + 1) {
		size_t want = scan->to[i] - at < SCAN_SIZE ? scan->to[i] - at : SCAN_SIZE;
		ssize_t n = pread(scan->fd, scan->bytes, want, (off_t)at);

		if (n > 0)
			found += count_in(scan->bytes, (size_t)n);
	}
	return found;
}

/* How often the mark is in this process's memory, the looking glass left out. */
static size_t count_marks(void)
{
	static struct scan scan;
	size_t found = 0;

	scan.count = 0;
	scan.fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	assert_true(scan.fd >= 0);
	scan_find_maps(&scan);
	for (size_t i = 0; i < scan.count; i++) {
		if (scan.to[i] > (uintptr_t)&scan && scan.from[i] < (uintptr_t)(&scan + 1))
			continue;
		found += scan_map(&scan, i);
	}
	explicit_bzero(scan.bytes, sizeof(scan.bytes));
	(void)close(scan.fd);
	return found;
}

static void put_mark(struct secret *secret)
{
	char mark[MARK_LEN];
	struct err err = {0};

	mark_write(mark);
	check_ok(secret_put(secret, (struct str){mark, MARK_LEN}, &err), &err);
	explicit_bzero(mark, sizeof(mark));
}

static void a_secret_that_is_done_is_in_no_memory(void **state)
{
	struct secret secret = {0};
	struct secret copy = {0};
	struct err err = {0};

	(void)state;
	put_mark(&secret);
	assert_int_equal(count_marks(), 1);
	check_ok(secret_copy(&copy, &secret, &err), &err);
	assert_int_equal(count_marks(), 2);
	secret_done(&secret);
	secret_done(&copy);
	assert_int_equal(count_marks(), 0);
}

static void a_secret_that_is_replaced_is_in_no_memory(void **state)
{
	struct secret secret = {0};
	struct err err = {0};

	(void)state;
	put_mark(&secret);
	check_ok(secret_put(&secret, STR("new"), &err), &err);
	assert_int_equal(count_marks(), 0);
	assert_string_equal(secret_reveal(&secret), "new");
	secret_done(&secret);
}

static void a_buf_that_is_wiped_leaves_nothing_where_it_grew(void **state)
{
	struct buf buf = BUF_WIPED(1 << 20);
	char mark[MARK_LEN];
	struct err err = {0};

	(void)state;
	mark_write(mark);
	check_ok(buf_add(&buf, (struct str){mark, MARK_LEN}, &err), &err);
	explicit_bzero(mark, sizeof(mark));
	while (buf.len < (1 << 19))
		check_ok(buf_add(&buf, STR("a line that makes it grow\n"), &err), &err);
	assert_int_equal(count_marks(), 1);
	buf_clear(&buf);
	assert_int_equal(count_marks(), 0);
	buf_done(&buf);
	assert_true(buf.wiped && buf.max == 1 << 20); /* and may be used again */
}

/* Last, since it is for the rest of the process. */
static void a_document_that_is_released_is_in_no_memory(void **state)
{
	struct buf text = BUF_WIPED(1024);
	char mark[MARK_LEN + 1] = "";
	json_t *document = NULL;
	struct err err = {0};

	(void)state;
	json_wipe_released();
	mark_write(mark);
	check_ok(buf_addf(&text, &err, "{\"auth\":[\"%s\"]}", mark), &err);
	explicit_bzero(mark, sizeof(mark));
	check_ok(json_parse(buf_str(&text), 1024, &document, &err), &err);
	buf_done(&text);
	assert_int_equal(count_marks(), 1);
	json_decref(document);
	assert_int_equal(count_marks(), 0);
}

static void an_empty_secret_reveals_nothing(void **state)
{
	struct secret secret = {0};
	struct err err = {0};

	(void)state;
	assert_true(secret_is_empty(NULL) && secret_is_empty(&secret));
	assert_string_equal(secret_reveal(NULL), "");
	assert_string_equal(secret_reveal(&secret), "");
	put_mark(&secret);
	assert_false(secret_is_empty(&secret));
	check_ok(secret_copy(&secret, NULL, &err), &err);
	assert_true(secret_is_empty(&secret));
	secret_done(&secret);
}

static void a_secret_that_is_taken_over_keeps_its_bytes(void **state)
{
	auto_secret struct secret secret = {0};
	struct buf bytes = BUF_WIPED(SECRET_FILE_MAX);
	struct err err = {0};

	(void)state;
	check_ok(secret_put(&secret, STR("before"), &err), &err);
	for (size_t i = 0; i < 2 * SECRET_MAX; i += 2)
		check_ok(buf_add(&bytes, STR("a\0"), &err), &err);
	secret_take(&secret, &bytes);
	assert_int_equal(bytes.len, 0);
	assert_int_equal(secret_bytes(&secret).len, 2 * SECRET_MAX);
	assert_memory_equal(secret_bytes(&secret).ptr, "a\0a", 3);
	secret_done(&secret);
	assert_int_equal(secret_bytes(&secret).len, 0);
	assert_int_equal(secret_bytes(NULL).len, 0);
}

static void a_secret_has_a_ceiling(void **state)
{
	auto_free char *large = calloc(1, SECRET_MAX + 1);
	struct secret secret = {0};
	struct err err = {0};

	(void)state;
	assert_non_null(large);
	put_mark(&secret);
	check_err(secret_put(&secret, (struct str){large, SECRET_MAX + 1}, &err), &err, ERR_LIMIT);
	assert_int_equal(count_marks(), 1); /* untouched on failure */
	secret_done(&secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_that_is_done_is_in_no_memory),
		cmocka_unit_test(a_secret_that_is_replaced_is_in_no_memory),
		cmocka_unit_test(a_buf_that_is_wiped_leaves_nothing_where_it_grew),
		cmocka_unit_test(an_empty_secret_reveals_nothing),
		cmocka_unit_test(a_secret_that_is_taken_over_keeps_its_bytes),
		cmocka_unit_test(a_secret_has_a_ceiling),
		cmocka_unit_test(a_document_that_is_released_is_in_no_memory),
	};

	return cmocka_run_group_tests_name("layers/secret", tests, NULL, NULL);
}

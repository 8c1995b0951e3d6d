/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/base/clock.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t clock_read_ms(clockid_t id)
{
	struct timespec now;

	(void)clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_now_ms(void)
{
	return clock_read_ms(CLOCK_REALTIME);
}

int64_t clock_monotonic_ms(void)
{
	return clock_read_ms(CLOCK_MONOTONIC);
}

int64_t clock_monotonic_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

const char *clock_format(int64_t ms, char text[static CLOCK_TEXT_MAX])
{
	int64_t rest = ms % 1000 < 0 ? ms % 1000 + 1000 : ms % 1000;
	time_t seconds = (ms - rest) / 1000;
	struct tm utc;
	size_t used;

	if (!gmtime_r(&seconds, &utc) || utc.tm_year > 9999 - 1900 || utc.tm_year < -1900) {
		seconds = 0;
		gmtime_r(&seconds, &utc);
	}
	used = strftime(text, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(text + used, CLOCK_TEXT_MAX - used, ".%03dZ", (int)rest);
	return text;
}

/* The fraction after the seconds, to milliseconds; moves *at behind it. */
static int clock_parse_fraction(const char **at)
{
	int ms = 0;
	int scale = 100;

	if (**at != '.')
		return 0;
	for ((*at)++; **at >= '0' && **at <= '9'; (*at)++) {
		ms += (**at - '0') * scale;
		scale /= 10;
	}
	return ms;
}

/* "Z" or "+hh:mm", as seconds east; false for anything else. */
static bool clock_parse_zone(const char *at, long *out)
{
	unsigned hours;
	unsigned minutes;
	int used = 0;

	if ((at[0] == 'Z' || at[0] == 'z') && at[1] == '\0') {
		*out = 0;
		return true;
	}
	if (at[0] != '+' && at[0] != '-')
		return false;
	/* NOLINTNEXTLINE(cert-err34-c): two digits cannot overflow */
	if (sscanf(at + 1, "%2u:%2u%n", &hours, &minutes, &used) != 2 || at[1 + used] != '\0')
		return false;
	*out = (at[0] == '-' ? -1L : 1L) * (long)(hours * 3600 + minutes * 60);
	return true;
}

int clock_parse(struct str text, int64_t *out_ms, struct err *err)
{
	char copy[64];
	struct tm utc = {0};
	const char *at;
	long zone;
	int ms;

	if (text.len >= sizeof(copy))
		return err_set(err, ERR_INVALID, "not an RFC 3339 instant");
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	at = strptime(copy, "%Y-%m-%dT%H:%M:%S", &utc);
	if (!at)
		return err_set(err, ERR_INVALID, "not an RFC 3339 instant: %s", copy);
	ms = clock_parse_fraction(&at);
	if (!clock_parse_zone(at, &zone))
		return err_set(err, ERR_INVALID, "not an RFC 3339 instant: %s", copy);
	*out_ms = ((int64_t)timegm(&utc) - zone) * 1000 + ms;
	return 0;
}

int clock_boot_id(char text[static BOOT_ID_MAX], struct err *err)
{
	auto_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_os(err, errno, "open the boot id");
	n = read(fd, text, BOOT_ID_MAX - 1);
	if (n != (ssize_t)BOOT_ID_MAX - 1)
		return err_os(err, n < 0 ? errno : EIO, "read the boot id");
	text[BOOT_ID_MAX - 1] = '\0';
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/cron.h"

#include <ctype.h>
#include <strings.h>
#include <time.h>

#define CRON_FIELDS 5
#define CRON_NAME_LEN ((size_t)3)
#define CRON_MINUTE_MS ((int64_t)60 * 1000)
#define CRON_DAY_MINUTES ((int64_t)24 * 60)
#define CRON_DAY_SECONDS ((int64_t)24 * 60 * 60)
#define CRON_MONTHS_MAX (401 * 12)              /* after 400 years dates and weekdays repeat */
#define CRON_LAST_MS ((int64_t)253402300799999) /* the year 9999 ends */

struct cron_field {
	const char *name;
	uint64_t least;
	uint64_t most;
	const char *const *names; /* of the numbers from the least one; NULL for none */
	size_t name_count;
};

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
				     "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const struct cron_field fields[CRON_FIELDS] = {
	{"minute", 0, 59, NULL, 0},
	{"hour", 0, 23, NULL, 0},
	{"day of the month", 1, 31, NULL, 0},
	{"month", 1, 12, months, 12},
	{"day of the week", 0, 7, weekdays, 7},
};

static int cron_refuse(const struct cron_field *field, struct err *err)
{
	return err_set(err, ERR_INVALID,
		       "the %s: expected numbers from %d to %d, ranges, lists, or * (each of the "
		       "last ones with /STEP), as in \"*/15\" or \"1-5,7\"",
		       field->name, (int)field->least, (int)field->most);
}

static bool cron_take_name(const struct cron_field *field, struct str *text, uint64_t *out)
{
	for (size_t i = 0; text->len >= CRON_NAME_LEN && i < field->name_count; i++) {
		if (strncasecmp(text->ptr, field->names[i], CRON_NAME_LEN) == 0) {
			*text = str_skip(*text, CRON_NAME_LEN);
			*out = field->least + i;
			return true;
		}
	}
	return false;
}

static bool cron_take_value(const struct cron_field *field, struct str *text, uint64_t *out)
{
	if (!str_take_number(text, out) && !cron_take_name(field, text, out))
		return false;
	return *out >= field->least && *out <= field->most;
}

/* Put one element of a list into the set. False: it is none. */
static bool cron_add_element(const struct cron_field *field, struct str text, uint64_t *set)
{
	uint64_t from = field->least;
	uint64_t to = field->most;
	uint64_t step = 1;
	bool range = str_take_char(&text, '*');

	if (!range) {
		if (!cron_take_value(field, &text, &from))
			return false;
		range = str_take_char(&text, '-');
		to = from;
		if (range && !cron_take_value(field, &text, &to))
			return false;
		if (to == 0 && from > 0 && field->names == weekdays)
			to = 7; /* fri-sun */
	}
	if (str_take_char(&text, '/') && (!range || !str_take_number(&text, &step) || step == 0))
		return false;
	if (text.len > 0 || from > to)
		return false;
	for (; from <= to; from += step < field->most ? step : field->most + 1)
		*set |= (uint64_t)1 << from;
	return true;
}

static int cron_read_field(const struct cron_field *field, struct str text, uint64_t *out,
			   struct err *err)
{
	uint64_t set = 0;
	struct str element;

	while (str_cut(&text, ',', &element)) {
		if (!cron_add_element(field, element, &set))
			return cron_refuse(field, err);
	}
	*out = set;
	return 0;
}

/* The words of the text. False: there are not as many as fields. */
static bool cron_split(struct str text, struct str words[static CRON_FIELDS])
{
	size_t count = 0;

	while (text.len > 0) {
		size_t len = 0;

		while (len < text.len && !isblank((unsigned char)text.ptr[len]))
			len++;
		if (len > 0 && count == CRON_FIELDS)
			return false;
		if (len > 0)
			words[count++] = (struct str){text.ptr, len};
		text = str_skip(text, len < text.len ? len + 1 : len);
	}
	return count == CRON_FIELDS;
}

static bool cron_has(uint64_t set, int64_t n)
{
	return (set >> n & 1) != 0;
}

static bool cron_matches_day(const struct cron *cron, const struct tm *day)
{
	bool month_day = cron_has(cron->days, day->tm_mday);
	bool weekday = cron_has(cron->weekdays, day->tm_wday);

	return cron->either_day ? month_day || weekday : month_day && weekday;
}

/* The first minute of a day from this one on, or -1. */
static int64_t cron_minute_from(const struct cron *cron, int64_t from)
{
	for (int64_t hour = from / 60; hour < 24; hour++) {
		for (int64_t minute = hour == from / 60 ? from % 60 : 0; minute < 60; minute++) {
			if (cron_has(cron->hours, hour) && cron_has(cron->minutes, minute))
				return hour * 60 + minute;
		}
	}
	return -1;
}

/* The first day that matches, from this one to the month's last. False: none. */
static bool cron_find_day(const struct cron *cron, struct tm *day)
{
	int month = day->tm_mon;

	if (!cron_has(cron->months, month + 1))
		return false;
	for (; day->tm_mon == month; day->tm_mday++, (void)timegm(day)) {
		if (cron_matches_day(cron, day))
			return true;
	}
	return false;
}

/* As cron_find_day(), of this month and all that follow. */
static bool cron_find_any_day(const struct cron *cron, struct tm *day)
{
	for (int i = 0; i < CRON_MONTHS_MAX; i++) {
		int month = day->tm_mon;

		if (cron_find_day(cron, day))
			return true;
		if (day->tm_mon != month)
			continue; /* the search went past the month's end */
		day->tm_mon++;
		day->tm_mday = 1;
		(void)timegm(day);
	}
	return false;
}

/* The first day from this one on, both counted since 1970, or -1. */
static int64_t cron_day_from(const struct cron *cron, int64_t from)
{
	time_t seconds = from * CRON_DAY_SECONDS;
	struct tm day;

	if (!gmtime_r(&seconds, &day) || !cron_find_any_day(cron, &day))
		return -1;
	return (int64_t)timegm(&day) / CRON_DAY_SECONDS;
}

int cron_parse(struct str text, struct cron *out, struct err *err)
{
	struct str words[CRON_FIELDS];
	uint64_t sets[CRON_FIELDS];
	struct cron cron;

	if (text.len > CRON_TEXT_MAX)
		return err_set(err, ERR_INVALID, "more than %zu bytes", CRON_TEXT_MAX);
	if (!cron_split(text, words))
		return err_set(err, ERR_INVALID,
			       "expected five fields: minute, hour, day of the month, month, day "
			       "of the week, as in \"30 4 * * mon-fri\"");
	for (size_t i = 0; i < CRON_FIELDS; i++) {
		if (cron_read_field(&fields[i], words[i], &sets[i], err) < 0)
			return -1;
	}
	cron = (struct cron){
		.minutes = sets[0],
		.hours = (uint32_t)sets[1],
		.days = (uint32_t)sets[2],
		.months = (uint32_t)sets[3],
		.weekdays = (uint32_t)(sets[4] | sets[4] >> 7),
		.either_day = words[2].ptr[0] != '*' && words[4].ptr[0] != '*',
	};
	if (cron_day_from(&cron, 0) < 0)
		return err_set(err, ERR_INVALID, "no day is ever like that");
	*out = cron;
	return 0;
}

int64_t cron_next(const struct cron *cron, int64_t after_ms)
{
	int64_t at = after_ms < 0 ? 0 : after_ms;
	int64_t minute = (at < CRON_LAST_MS ? at : CRON_LAST_MS) / CRON_MINUTE_MS + 1;
	int64_t today = minute / CRON_DAY_MINUTES;
	int64_t day = cron_day_from(cron, today);
	int64_t in_day = cron_minute_from(cron, day == today ? minute % CRON_DAY_MINUTES : 0);

	if (in_day < 0) { /* today's have all been */
		day = cron_day_from(cron, today + 1);
		in_day = cron_minute_from(cron, 0);
	}
	return (day * CRON_DAY_MINUTES + in_day) * CRON_MINUTE_MS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* human.h - sizes, durations and foreign text as people read them. */
#pragma once

#include "layers/base/json.h"

#include <stdint.h>
#include <stdio.h>

#define HUMAN_TEXT_MAX ((size_t)32)
#define HUMAN_LINKED_MAX ((size_t)128)

/* Decimal units, as registries show: "0 B", "999 B", "1.2 kB", "68.4 MB". */
const char *human_size(uint64_t bytes, char text[static HUMAN_TEXT_MAX]);

/* "1.0 MB copied because ...": of a layer, what a hard link to one below made of it. */
const char *human_linked(uint64_t bytes, char text[static HUMAN_LINKED_MAX]);

/* "0.3s", "12.0s", "3m05s". */
const char *human_duration(int64_t ms, char text[static HUMAN_TEXT_MAX]);

/* "5 minutes ago". */
const char *human_age(int64_t ms, char text[static HUMAN_TEXT_MAX]);

/*
 * Append one line of foreign text, fit to show on a terminal: control bytes
 * and escape sequences gone, cut to width columns, bytes outside UTF-8 as "?".
 */
int human_line(struct str text, size_t width, struct buf *out, struct err *err) MUST_CHECK;

/* The same, whole, as a string that the caller frees. */
char *human_text(struct str text) MUST_CHECK;

/* The column of a listing's names: begin with HUMAN_NAME_MIN, and widen it by each. */
#define HUMAN_NAME_MIN 44
#define HUMAN_NAME_MAX 120 /* longer ones stand out */
int human_widen(int width, const char *name);

/* One line of JSON, all of it ASCII: what it quotes does not steer a terminal. */
void human_json(const json_t *value, FILE *out);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tarball.h - tars made header by header, so that a test can lie in them, and
 * a source that lends them in pieces.
 */
#pragma once

#include "layers/base/sink.h"

#include <stdint.h>
#include <sys/types.h>

struct tarball {
	struct buf bytes;
	struct buf pax; /* records for the next entry */
};

/* What is not given is 0644 (0755 for directories), root, time 0, no data. */
struct tar_entry {
	const char *name;
	char type; /* typeflag; 0 is '0' */
	mode_t mode;
	unsigned uid;
	unsigned gid;
	long mtime;
	unsigned major;
	unsigned minor;
	const char *link;
	struct str data;
	const char *raw_size; /* 12 bytes instead of the octal size */
	const char *raw_uid;  /* 8 bytes instead of the octal uid */
};

void tarball_init(struct tarball *tar);
void tarball_done(struct tarball *tar);

void tarball_pax(struct tarball *tar, const char *key, struct str value);
void tarball_add(struct tarball *tar, const struct tar_entry *entry);
void tarball_end(struct tarball *tar);

/* tarball_entry(&tar, .name = "a", .type = '5') */
#define tarball_entry(tar, ...) tarball_add((tar), &(struct tar_entry){__VA_ARGS__})

struct memory_source {
	struct source source;
	struct str rest;
	size_t step; /* bytes lent at a time; 0 is all */
};

void memory_source_init(struct memory_source *source, struct str bytes, size_t step);

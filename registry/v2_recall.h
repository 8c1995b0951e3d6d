/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2_recall.h - which manifests were asked for lately: what many ask for at once
 * is found and parsed once, and again after any commit.
 *
 * Threads: any number at once. Memory: V2_RECALL_MAX entries of a KiB.
 */
#pragma once

#include "registry/repository.h"
#include "registry/v2_path.h"

#define V2_RECALL_MAX ((size_t)256) /* manifests; each has one place, by its name */

struct v2_recall;

struct v2_recall *v2_recall_new(void);
void v2_recall_free(struct v2_recall *recall);

/*
 * The record of the manifest that a path asks for, if it is known as of this
 * generation (meta.h).
 */
bool v2_recall_find(struct v2_recall *recall, const struct v2_path *path, uint64_t generation,
		    struct repository_item *out);

/* What was found in a snapshot that was taken after its generation was. */
void v2_recall_put(struct v2_recall *recall, const struct v2_path *path, uint64_t generation,
		   const struct repository_item *item);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differences.h - which components of two steps' keys differ (key.h), in the
 * order in which a reader wants to hear of them.
 *
 * A difference is {"what", "name"?, "was", "is"}; was or is is null where only
 * the other one has the component. `what` is base, parent, instruction,
 * environment (with the variable's name), workdir, user, shell, content,
 * platform, network, builder (its version or epoch), or the name of a component
 * that only a newer program knows. Two components are no part of a key: `text`,
 * an instruction as the spec has it, and `files`, its listing (listing.h).
 */
#pragma once

#include "layers/base/json.h"

/* An array, empty where nothing differs; the caller owns it. */
json_t *differences_of(const json_t *was, const json_t *is);

/* Append a difference; name, was and is may be NULL, and are borrowed. */
void differences_add(json_t *out, const char *what, const char *name, const json_t *was,
		     const json_t *is);

/* How much two steps have in common: the more, the nearer. */
size_t differences_likeness(const json_t *was, const json_t *is);

/* Of the spec's words how many bytes are the same from both ends; for what is as like. */
size_t differences_wording(const json_t *was, const json_t *is);

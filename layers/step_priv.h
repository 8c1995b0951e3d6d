/* SPDX-License-Identifier: Apache-2.0 */
/* step_priv.h - the parts of a step's record, for the drafts of them. */
#pragma once

#include "layers/step.h"

/* As members of a document, and back; the record's key is none of them. */
void step_write(const struct step_record *record, json_t *out);
void step_write_details(const struct step_record *record, json_t *out);
int step_read(const json_t *record, struct step_record *out, struct err *err) MUST_CHECK;
int step_read_details(const json_t *details, struct step_record *out, struct err *err) MUST_CHECK;

/* From a table's key. */
int step_parse_key(struct str hex, struct digest *out, struct err *err) MUST_CHECK;

/* The listing of what a step read (bake/listing.h); all zero where it has none. */
int step_find_listing(const json_t *components, struct digest *out, struct err *err) MUST_CHECK;

/*
 * Give the record the layer and time of an earlier equal one, if there is one.
 * 1 it is the first with its content on its parent, 0 it is not, -1.
 */
int step_settle(struct meta *meta, struct step_record *record, struct err *err) MUST_CHECK;

/* Put a settled record. */
int step_store(struct meta *meta, const struct step_record *record, bool first, struct err *err)
	MUST_CHECK;

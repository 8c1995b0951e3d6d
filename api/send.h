/* SPDX-License-Identifier: Apache-2.0 */
/* send.h - have hearth-puller push an image to a registry, and show its progress. */
#pragma once

#include "api/access.h"
#include "api/progress.h"

/* The canonical text of a reference that can be pushed to. ERR_INVALID for any other. */
int send_name(struct str text, struct buf *out, struct err *err) MUST_CHECK;

/*
 * One image (or index) as one canonical reference, and with further tags of its
 * repository. The command has ACCESS_OPTIONS_REGISTRY.
 */
struct send {
	const struct cli *cli;
	struct store *store;
	struct progress *progress;
	struct str reference;
	struct digest image;
	const struct str *tags; /* or NULL, as the next */
	size_t tag_count;
	const struct digest *referrers;
	size_t referrer_count;
	struct str from; /* a repository of the registry that has the blobs, or "" */
	const struct credentials *credentials;
};

int send_image(const struct send *send, struct err *err) MUST_CHECK;

/*
 * The same to several references (text), with the credentials that files and
 * helpers have for each. All are tried; the error says where the image went, and
 * what failed first. send's reference and credentials are not used.
 */
int send_image_to_all(const struct send *send, const struct str *texts, size_t count,
		      struct err *err) MUST_CHECK;

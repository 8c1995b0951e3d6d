/* SPDX-License-Identifier: Apache-2.0 */
/* v2_tags.h - the tags of a repository, in byte order. */
#pragma once

#include "registry/v2.h"

/* GET, HEAD of .../tags/list. */
void v2_tags_answer(struct v2_call *call);

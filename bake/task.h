/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.h - one step as it is handed to a worker: all that it needs and nothing
 * of the bake around it.
 *
 * Ownership: a task is built by the asker around borrowed parts; one that was
 * parsed owns its document, and its parts lie in it.
 */
#pragma once

#include "bake/copy.h"
#include "bake/instruction.h"
#include "layers/base/json.h"
#include "registry/manifest.h"
#include "sandbox/machine.h"

/* A layer below the step: enough to make its tree again. */
struct task_layer {
	struct digest blob;
	struct digest diff_id;
	uint64_t size; /* bytes of the blob */
};

/* A mount of a RUN. Its secret is sent to the worker on its own, and is in no document. */
struct task_mount {
	struct mount mount;          /* a parsed task's own, else borrowed */
	const struct secret *secret; /* NULL: nobody gave one */
	struct secret received;      /* of a parsed task: what secret points to */
};

/* An image that the step reads from (from.h). */
struct task_image {
	struct task_layer *layers; /* bottom first */
	size_t layer_count;
};

struct task {
	json_t *document; /* owned by a parsed task; else NULL */
	struct digest key;
	struct digest parent;      /* chain id */
	struct task_layer *layers; /* bottom first */
	size_t layer_count;
	struct task_image *images; /* COPY --from: one */
	size_t image_count;
	const char *image_name; /* as COPY has it, for errors; or NULL */
	enum instruction_kind kind;
	const char **argv; /* RUN: ends with NULL. COPY: sources, then the destination */
	size_t argc;
	const char **env; /* ends with NULL */
	size_t env_count;
	struct task_mount *mounts; /* RUN: parents first */
	size_t mount_count;
	char platform[PLATFORM_TEXT_MAX];
	const char *workdir; /* WORKDIR: the one to make */
	const char *user;
	const char *chown;     /* or NULL */
	const char *chmod;     /* or NULL */
	const char **excludes; /* COPY */
	size_t exclude_count;
	const struct digest *content;  /* COPY: what the key says is read; or NULL */
	struct digest content_storage; /* of a parsed task */
	const int64_t *clamp;          /* later times in the layer become this; or NULL */
	int64_t clamp_storage;         /* of a parsed task */
	enum network_mode network;
	enum layer_codec codec; /* of the layer that is made */
	struct network_host *hosts;
	size_t host_count;
	struct machine_limits limits;
	int64_t timeout_ms;
	const char *runtime; /* or NULL */
	const char *agent_path;
	const char *store_path;
	uint64_t store_map_bytes;
	bool parents;       /* COPY */
	bool fresh;         /* run although there is a record */
	const char *draft;  /* the rebake that its record is private to (layers/draft.h); or NULL */
	json_t *components; /* borrowed; stored with the step */
};

/*
 * The name under which its askers meet (rendezvous.h): its key; of a draft one
 * that no other bake has.
 */
void task_meeting(const struct task *task, struct digest *out);

json_t *task_format(const struct task *task);
int task_parse(struct str text, struct task *out, struct err *err) MUST_CHECK;
void task_done(struct task *task);

/* Send what follows the document: a frame for each secret that was given. */
int task_send_secrets(const struct task *task, int fd, struct err *err) MUST_CHECK;
int task_receive_secrets(struct task *task, int fd, struct err *err) MUST_CHECK;

static inline void auto_task_release(struct task *slot)
{
	task_done(slot);
}
#define auto_task AUTO(task)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bake.h - a spec becomes an image.
 *
 * bake_run() is the pipeline: read the steps, refuse what cannot run, resolve
 * the base, and then for each step find its record or have a worker make it;
 * at the end the config and manifest are stored. A fully cached bake starts no
 * process, writes nothing, and loads no library beyond the store's.
 *
 * A rebake resolves a registry's base again and runs every RUN again (from
 * from_step on). What its steps made is hidden from others (layers/draft.h)
 * until the caller publishes its image. Started again under the same id it goes
 * on where it was.
 *
 * Progress is reported through one callback, in the caller's thread.
 *
 * Durability: when it returns 0 the image, its layers and its records survive
 * a power cut.
 */
#pragma once

#include "bake/gc.h"
#include "bake/secrets.h"
#include "bake/spec.h"
#include "layers/base/cancel.h"
#include "layers/base/secret.h"
#include "layers/lease.h"
#include "layers/store.h"
#include "registry/places.h"
#include "sandbox/network.h"

enum bake_event_kind {
	BAKE_BASE,        /* base is being resolved: text is the reference */
	BAKE_PULL,        /* bytes of the base's layers: layer, done, size */
	BAKE_BASE_DONE,   /* digest is the base manifest's, NULL for scratch; cached: nothing was
			     pulled */
	BAKE_STEP,        /* a step begins; step, of, text */
	BAKE_STEP_MADE,   /* it has no record: a worker makes it now; text */
	BAKE_LOG,         /* bytes of the running step's log */
	BAKE_STEP_DONE,   /* cached, empty, cut_off, duration_ms, size (of its layer), linked */
	BAKE_STEP_FAILED, /* text says why; cancelled */
	BAKE_WARNING,     /* text is a sentence; of the base where step is 0 */
	BAKE_EXPORT_DONE,
	BAKE_EXPORT,       /* text says where to */
	BAKE_PUSH,         /* text is the reference */
	BAKE_PUSH_BLOB,    /* as BAKE_PULL, for what leaves */
	BAKE_PUSH_WARNING, /* text is the registry's */
	BAKE_PUSH_DONE,
	BAKE_DONE, /* digest is the image's, size its layers' bytes */
};

struct bake_event {
	enum bake_event_kind kind;
	size_t step; /* from 1 */
	size_t of;
	struct str text;
	const struct digest *digest;
	uint64_t done;
	uint64_t size;
	uint64_t linked; /* bytes copied into it for a hard link to a layer below; diff.h */
	int64_t duration_ms;
	bool cached;
	bool empty;
	bool cut_off;
	bool cancelled;
	bool shared; /* another bake runs this step, and this one waits for it */
};

typedef void bake_event_fn(void *ctx, const struct bake_event *event);

struct bake_options {
	struct store *store;
	struct lease *lease;     /* in use: what was found is kept until the caller has named it */
	const char *worker_path; /* of hearth-worker */
	const char *puller_path; /* of hearth-puller */
	const char *agent_path;  /* of hearth-agent */
	int contextfd;           /* -1 for none */
	bool no_cache;           /* run every step anew */
	size_t from_step;        /* run this step, from 1, and those after it anew; 0 for none */
	const char *rebake;      /* the id of this bake if it is a rebake; or NULL */
	const struct digest *base; /* the manifest that `base` stands for, unless it is asked
				      anew; or NULL */
	bool pull;                 /* ask upstream although a digest is held */
	bool held_only;            /* take the base that is held; do not pull */
	bool no_host_files;        /* neither base nor --from may be files of this host */
	bool unpublished;          /* the image's record is left to the caller; see bake_result */
	bool plain_http;
	const struct places *places; /* of all registries, or NULL */
	const char *ca_file;
	uint64_t max_layer_bytes; /* of a base's layer, inflated; 0 for UNPACK_BYTES_MAX */
	struct str registry_user; /* credentials for the base's registry, or empty */
	const struct secret *registry_password;
	const char *runtime;
	const struct gc_policy *gc; /* for collecting where space is short; or NULL */
	const struct network_host *hosts;
	size_t host_count;
	const struct secrets *secrets; /* or NULL */
	const struct proxies *proxies; /* or NULL */
	bake_event_fn *event;
	void *event_ctx;
	const struct cancel *cancel;
};

struct bake_result {
	struct digest image; /* of the manifest */
	uint64_t size;       /* bytes: layers, config and manifest */
	size_t layers;
	size_t steps;
	size_t cached_steps;
	uint64_t linked_bytes; /* of all steps; see bake_event */
	size_t failed_step;    /* from 1; set when a step failed or was refused */
	size_t failed_line;    /* of its text, from 1; 0 where it was not refused */
	int exit_code;         /* of that step's command */
	bool step_late;        /* its command took longer than the spec allows */
	struct digest base;    /* of the base's manifest; all zero for scratch */
	int64_t created_ms;    /* of the image */
	struct digest *keys;   /* of its steps, the caller's to free; NULL of a published one */
};

/*
 * ERR_REFUSED and ERR_INVALID before anything is pulled or run; ERR_STEP when a
 * command failed. out's failed_step is set on failure too.
 */
int bake_run(const struct spec *spec, const struct bake_options *options, struct bake_result *out,
	     struct err *err) MUST_CHECK;

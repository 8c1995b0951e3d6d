/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/resolver_priv.h"

#include "layers/base/array.h"
#include "layers/base/clock.h"

#include <arpa/inet.h>
#include <assert.h>
#include <search.h>

#define RESOLVER_NET 0xc6120000U /* 198.18.0.0/16; the first two addresses name no name */
#define RESOLVER_FIRST 2U

/* One name that is being looked up, and all who asked for it meanwhile. */
struct resolver_lookup {
	struct resolver_lookup *next;
	struct resolver_waiter *waiters;
	char name[NAME_TEXT_MAX];
};

struct resolver {
	struct loop *loop;
	struct upstream *upstream;
	struct watch watch;
	struct resolver_lookup *pending; /* at most UPSTREAM_PENDING_MAX */
	void *by_text;                   /* a tree of struct resolver_name, see tsearch(3) */
	struct resolver_name **names;    /* by address, from RESOLVER_FIRST */
	size_t count;
};

static int resolver_compare(const void *a, const void *b)
{
	return strcmp(((const struct resolver_name *)a)->text,
		      ((const struct resolver_name *)b)->text);
}

static struct resolver_name *resolver_get(const struct resolver *resolver, const char *text)
{
	char key_text[NAME_TEXT_MAX];
	struct resolver_name key = {.text = key_text};
	struct resolver_name *const *found;

	memcpy(key_text, text, strlen(text) + 1);
	found = tfind(&key, &resolver->by_text, resolver_compare);
	return found ? *found : NULL;
}

/* A new name with the next address; NULL when there is none left. */
static struct resolver_name *resolver_add(struct resolver *resolver, const char *text)
{
	struct resolver_name *name;

	if (resolver->count >= RESOLVER_NAMES_MAX)
		return NULL;
	resolver->names =
		array_grow(resolver->names, resolver->count, sizeof(struct resolver_name *));
	name = calloc(1, sizeof(*name));
	if (!name)
		abort();
	name->text = strdup(text);
	name->address.s_addr = htonl(RESOLVER_NET + RESOLVER_FIRST + (uint32_t)resolver->count);
	if (!name->text || !tsearch(name, &resolver->by_text, resolver_compare))
		abort();
	resolver->names[resolver->count++] = name;
	return name;
}

static void resolver_add_target(struct resolver_name *name, const union address *target)
{
	name->targets = array_grow(name->targets, name->target_count, sizeof(*target));
	name->targets[name->target_count++] = *target;
}

static int resolver_add_host(struct resolver *resolver, const struct network_host *host,
			     struct err *err)
{
	struct resolver_name *name = resolver_get(resolver, host->name);
	union address target;

	if (!name)
		name = resolver_add(resolver, host->name);
	if (!name || name->target_count >= UPSTREAM_ADDRESSES_MAX)
		return err_set(err, ERR_LIMIT, "host %s: more than %d addresses", host->name,
			       UPSTREAM_ADDRESSES_MAX);
	if (!address_from((const struct sockaddr *)&host->address, &target))
		return err_set(err, ERR_INVALID, "host %s: no internet address", host->name);
	name->trusted = true;
	name->fresh_until = INT64_MAX;
	resolver_add_target(name, &target);
	return 0;
}

/* Keep of an answer what may be dialled. */
static void resolver_refresh(struct resolver_name *name, const struct upstream_answer *answer)
{
	name->target_count = 0;
	for (size_t i = 0; i < answer->count; i++) {
		if (address_kind(&answer->addresses[i]) != ADDRESS_REFUSED)
			resolver_add_target(name, &answer->addresses[i]);
	}
	name->fresh_until = clock_monotonic_ms() + RESOLVER_FRESH_MS;
}

static bool resolver_is_reachable(const struct upstream_answer *answer)
{
	for (size_t i = 0; i < answer->count; i++) {
		if (address_kind(&answer->addresses[i]) != ADDRESS_REFUSED)
			return true;
	}
	return false;
}

/* Learn from an answer: the name, or NULL. */
static struct resolver_name *resolver_learn(struct resolver *resolver,
					    const struct upstream_answer *answer,
					    enum dns_rcode *rcode)
{
	struct resolver_name *name;

	*rcode = answer->rcode;
	if (answer->rcode != DNS_NOERROR || answer->count == 0)
		return NULL;
	*rcode = DNS_NXDOMAIN;
	if (!resolver_is_reachable(answer))
		return NULL;
	name = resolver_get(resolver, answer->name);
	if (!name)
		name = resolver_add(resolver, answer->name);
	*rcode = name ? DNS_NOERROR : DNS_SERVFAIL;
	if (name)
		resolver_refresh(name, answer);
	return name;
}

static struct resolver_lookup **resolver_find_pending(struct resolver *resolver, const char *name)
{
	struct resolver_lookup **at = &resolver->pending;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

static void resolver_tell(struct resolver *resolver, const struct upstream_answer *answer)
{
	struct resolver_lookup **link = resolver_find_pending(resolver, answer->name);
	auto_free struct resolver_lookup *lookup = *link;
	enum dns_rcode rcode;
	const struct resolver_name *name = resolver_learn(resolver, answer, &rcode);
	struct resolver_waiter *waiter;

	assert(lookup); /* nothing else is ever looked up */
	*link = lookup->next;
	waiter = lookup->waiters;
	while (waiter) {
		struct resolver_waiter *next = waiter->next; /* done() may free the waiter */

		waiter->done(waiter->ctx, name, rcode);
		waiter = next;
	}
}

static void resolver_on_answers(void *ctx, uint32_t events)
{
	struct resolver *resolver = ctx;
	struct upstream_answer *answer;

	(void)events;
	while ((answer = upstream_take(resolver->upstream))) {
		resolver_tell(resolver, answer);
		free(answer);
	}
}

int resolver_open(struct loop *loop, const struct network_host *hosts, size_t host_count,
		  struct resolver **out, struct err *err)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	int rc;

	if (!resolver)
		abort();
	resolver->loop = loop;
	rc = upstream_open(&resolver->upstream, err);
	if (rc == 0) {
		resolver->watch = (struct watch){.fd = upstream_fd(resolver->upstream),
						 .ready = resolver_on_answers,
						 .ctx = resolver};
		rc = loop_watch(loop, &resolver->watch, EPOLLIN, err);
	}
	for (size_t i = 0; i < host_count && rc == 0; i++)
		rc = resolver_add_host(resolver, &hosts[i], err);
	if (rc < 0) {
		resolver_close(resolver);
		return -1;
	}
	*out = resolver;
	return 0;
}

static void resolver_free_name(void *node)
{
	struct resolver_name *name = node;

	free(name->targets);
	free(name->text);
	free(name);
}

void resolver_close(struct resolver *resolver)
{
	if (!resolver)
		return;
	loop_unwatch(resolver->loop, &resolver->watch);
	upstream_close(resolver->upstream);
	while (resolver->pending) {
		struct resolver_lookup *lookup = resolver->pending;

		resolver->pending = lookup->next;
		free(lookup);
	}
	tdestroy(resolver->by_text, resolver_free_name);
	free(resolver->names);
	free(resolver);
}

void resolver_ask(struct resolver *resolver, const char *name, struct resolver_waiter *waiter)
{
	const struct resolver_name *known = resolver_get(resolver, name);
	struct resolver_lookup **link;
	struct err err;

	if (known && known->fresh_until > clock_monotonic_ms()) {
		waiter->done(waiter->ctx, known, DNS_NOERROR);
		return;
	}
	link = resolver_find_pending(resolver, name);
	if (!*link) {
		if (upstream_ask(resolver->upstream, name, &err) < 0) {
			waiter->done(waiter->ctx, NULL, DNS_SERVFAIL);
			return;
		}
		*link = calloc(1, sizeof(**link));
		if (!*link)
			abort();
		memcpy((*link)->name, name, strlen(name) + 1);
	}
	waiter->next = (*link)->waiters;
	(*link)->waiters = waiter;
}

const struct resolver_name *resolver_find(const struct resolver *resolver, struct in_addr address)
{
	uint32_t index = ntohl(address.s_addr) - RESOLVER_NET - RESOLVER_FIRST;

	return index < resolver->count ? resolver->names[index] : NULL;
}

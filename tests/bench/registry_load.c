/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_load.c - the clients that the bench of the registry stands on.
 *
 *	registry_load PORT TOKEN CLIENTS COUNT get PATH
 *	registry_load PORT TOKEN CLIENTS COUNT push REPOSITORY BYTES
 *
 * COUNT bodies are read, or images of one layer pushed, by so many clients at
 * once: each is a thread and a connection that it keeps. Prints the seconds of
 * all of it, the bytes, and the 99th percentile of one in milliseconds. What is
 * pushed is random, and is made and hashed before the clock starts.
 */
#include "layers/base/clock.h"
#include "layers/base/thread.h"
#include "layers/digest.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX ((size_t)4096)
#define BUFFER_SIZE ((size_t)256 * 1024)
#define CLIENTS_MAX 64
#define COUNT_MAX 65536

struct load {
	uint16_t port;
	const char *token;
	size_t clients;
	size_t count;
	const char *target; /* the path of a get, the repository of a push */
	size_t size;        /* of a layer; 0 for gets */
	char *layers;       /* all of them, one behind the other */
	struct digest *digests;
	int64_t *took_us;
	atomic_size_t next;
	atomic_uint_fast64_t bytes;
};

struct client { /* ends with the process */
	struct load *load;
	pthread_t thread;
	int fd;
	struct err err;
	char *buffer; /* BUFFER_SIZE */
};

struct reply {
	unsigned status;
	uint64_t length;
	char location[HEAD_MAX]; /* without scheme and host */
};

static int connect_to(uint16_t port, int *out, struct err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
	    connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_os(err, errno, "connect");
	*out = steal_fd(&fd);
	return 0;
}

static int send_all(int fd, struct str bytes, int flags, struct err *err)
{
	while (bytes.len > 0) {
		ssize_t n = send(fd, bytes.ptr, bytes.len, flags | MSG_NOSIGNAL);

		if (n < 0)
			return err_os(err, errno, "send");
		bytes = str_skip(bytes, (size_t)n);
	}
	return 0;
}

static int receive(struct client *client, size_t at, size_t *out, struct err *err)
{
	ssize_t n = recv(client->fd, client->buffer + at, BUFFER_SIZE - 1 - at, 0);

	if (n <= 0)
		return err_os(err, n < 0 ? errno : EPIPE, "receive");
	*out = (size_t)n;
	return 0;
}

/* The value of a header of buffer, which ends where its head does. */
static const char *find_field(const struct client *client, const char *name)
{
	const char *at = strcasestr(client->buffer, name);

	return at ? at + strlen(name) : NULL;
}

static void read_location(const struct client *client, struct reply *out)
{
	const char *value = find_field(client, "\r\nlocation: ");
	const char *host = value ? strstr(value, "://") : NULL;
	size_t len = value ? strcspn(value, "\r") : 0;

	if (host && host < value + len) {
		host += 3 + strcspn(host + 3, "/");
		len -= (size_t)(host - value);
		value = host;
	}
	(void)snprintf(out->location, sizeof(out->location), "%.*s", (int)len, value ? value : "");
}

static void read_fields(const struct client *client, struct reply *out)
{
	struct str status = str_of(client->buffer + strlen("HTTP/1.1 "));
	const char *length = find_field(client, "\r\ncontent-length: ");
	struct str digits = length ? str_of(length) : STR("0");
	uint64_t code = 0;

	if (!str_take_number(&status, &code) || !str_take_number(&digits, &out->length))
		out->length = 0;
	out->status = (unsigned)code;
	read_location(client, out);
}

/* The head of an answer, and its body, which nobody keeps. */
static int read_reply(struct client *client, struct reply *out, struct err *err)
{
	size_t have = 0, n = 0;
	char *end = NULL;

	while (!end) {
		if (receive(client, have, &n, err) < 0)
			return -1;
		have += n;
		client->buffer[have] = '\0';
		end = strstr(client->buffer, "\r\n\r\n");
	}
	end[2] = '\0';
	read_fields(client, out);
	for (uint64_t got = have - (size_t)(end + 4 - client->buffer); got < out->length;
	     got += n) {
		if (receive(client, 0, &n, err) < 0)
			return -1;
	}
	(void)atomic_fetch_add(&client->load->bytes, out->length);
	return 0;
}

static int ask(struct client *client, struct str head, struct str body, unsigned expected,
	       struct reply *out, struct err *err)
{
	auto_buf struct buf request = BUF_INIT(2 * HEAD_MAX);
	const char *token = client->load->token;

	if (buf_addf(&request, err, STR_FMT " HTTP/1.1\r\nHost: localhost:%u\r\n", STR_ARG(head),
		     client->load->port) < 0 ||
	    (*token && buf_addf(&request, err, "Authorization: Bearer %s\r\n", token) < 0) ||
	    (!str_starts(head, STR("GET")) &&
	     buf_addf(&request, err,
		      "Content-Length: %zu\r\n"
		      "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n",
		      body.len) < 0) ||
	    buf_add(&request, STR("\r\n"), err) < 0 ||
	    send_all(client->fd, buf_str(&request), body.len > 0 ? MSG_MORE : 0, err) < 0 ||
	    send_all(client->fd, body, 0, err) < 0 || read_reply(client, out, err) < 0)
		return -1;
	if (out->status != expected)
		return err_set(err, ERR_REMOTE, STR_FMT ": status %u", STR_ARG(head), out->status);
	return 0;
}

static int get_one(struct client *client, struct err *err)
{
	auto_buf struct buf head = BUF_INIT(HEAD_MAX);
	struct reply reply;

	if (buf_addf(&head, err, "GET %s", client->load->target) < 0)
		return -1;
	return ask(client, buf_str(&head), STR(""), 200, &reply, err);
}

static int push_blob(struct client *client, const char *digest, struct str body, struct err *err)
{
	auto_buf struct buf post = BUF_INIT(HEAD_MAX), put = BUF_INIT(2 * HEAD_MAX);
	struct reply reply;

	if (buf_addf(&post, err, "POST /v2/%s/blobs/uploads/", client->load->target) < 0 ||
	    ask(client, buf_str(&post), STR(""), 202, &reply, err) < 0 ||
	    buf_addf(&put, err, "PUT %s%cdigest=%s", reply.location,
		     strchr(reply.location, '?') ? '&' : '?', digest) < 0)
		return -1;
	return ask(client, buf_str(&put), body, 201, &reply, err);
}

/* As containerd does: layer, config, manifest. */
static int push_one(struct client *client, size_t n, struct err *err)
{
	const struct load *load = client->load;
	auto_buf struct buf config = BUF_INIT(HEAD_MAX), manifest = BUF_INIT(HEAD_MAX);
	auto_buf struct buf put = BUF_INIT(HEAD_MAX);
	char digests[2][DIGEST_TEXT_MAX];
	struct digest digest;
	struct reply reply;

	digest_format(&load->digests[n], digests[0]);
	if (push_blob(client, digests[0], (struct str){load->layers + n * load->size, load->size},
		      err) < 0 ||
	    buf_addf(&config, err,
		     "{\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{\"type\":"
		     "\"layers\",\"diff_ids\":[\"%s\"]}}",
		     digests[0]) < 0)
		return -1;
	digest_of(buf_str(&config), &digest);
	digest_format(&digest, digests[1]);
	if (push_blob(client, digests[1], buf_str(&config), err) < 0 ||
	    buf_addf(&manifest, err,
		     "{\"schemaVersion\":2,\"mediaType\":\"application/"
		     "vnd.oci.image.manifest.v1+json\",\"config\":{\"mediaType\":\"application/"
		     "vnd.oci.image.config.v1+json\",\"digest\":\"%s\",\"size\":%zu},\"layers\":[{"
		     "\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"%s\","
		     "\"size\":%zu}]}",
		     digests[1], config.len, digests[0], load->size) < 0 ||
	    buf_addf(&put, err, "PUT /v2/%s/manifests/%s", load->target, digests[0] + 7) < 0)
		return -1;
	put.len -= 4; /* a tag has 128 characters at most; this one is 60 hex digits */
	return ask(client, buf_str(&put), buf_str(&manifest), 201, &reply, err);
}

static void *client_run(void *ctx)
{
	struct client *client = ctx;
	struct load *load = client->load;
	size_t n;

	while ((n = atomic_fetch_add(&load->next, 1)) < load->count) {
		int64_t start = clock_monotonic_us();
		int rc = load->size ? push_one(client, n, &client->err)
				    : get_one(client, &client->err);

		if (rc < 0)
			break;
		load->took_us[n] = clock_monotonic_us() - start;
	}
	return NULL;
}

static int run(struct load *load, struct client *clients, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < load->clients; i++) {
		if (thread_start(&clients[i].thread, client_run, &clients[i], err) < 0)
			abort();
	}
	for (size_t i = 0; i < load->clients; i++) {
		(void)pthread_join(clients[i].thread, NULL);
		if (clients[i].err.kind != ERR_NONE) {
			*err = clients[i].err;
			rc = -1;
		}
	}
	return rc;
}

static int connect_all(struct load *load, struct client *clients, struct err *err)
{
	for (size_t i = 0; i < load->clients; i++) {
		clients[i] = (struct client){.load = load, .buffer = malloc(BUFFER_SIZE)};
		if (!clients[i].buffer)
			abort();
		if (connect_to(load->port, &clients[i].fd, err) < 0)
			return -1;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const int64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static int measure(struct load *load, struct err *err)
{
	struct client clients[CLIENTS_MAX];
	size_t p99 = (load->count - 1) * 99 / 100;
	int64_t start;

	if (connect_all(load, clients, err) < 0)
		return -1;
	start = clock_monotonic_us();
	if (run(load, clients, err) < 0)
		return -1;
	start = clock_monotonic_us() - start;
	qsort(load->took_us, load->count, sizeof(*load->took_us), by_time);
	(void)printf("%.6f %ju %.3f\n", (double)start / 1e6,
		     (uintmax_t)(atomic_load(&load->bytes) + load->size * load->count),
		     (double)load->took_us[p99] / 1e3);
	return 0;
}

static void fill(struct load *load)
{
	load->layers = malloc(load->size * load->count);
	load->digests = calloc(load->count, sizeof(*load->digests));
	if (!load->layers || !load->digests)
		abort();
	for (size_t n = 0; n < load->count; n++) {
		char *layer = load->layers + n * load->size;

		for (size_t at = 0, got; at < load->size; at += got) {
			ssize_t came = getrandom(layer + at, load->size - at, 0);

			got = came > 0 ? (size_t)came : 0;
		}
		digest_of((struct str){layer, load->size}, &load->digests[n]);
	}
}

static void auto_load_release(struct load *load)
{
	free(load->layers);
	free(load->digests);
	free(load->took_us);
}

int main(int argc, char **argv)
{
	AUTO(load) struct load load = {0};
	struct err err;

	if (argc < 7)
		return 2;
	load.port = (uint16_t)strtoumax(argv[1], NULL, 10);
	load.token = argv[2];
	load.clients = strtoumax(argv[3], NULL, 10);
	load.count = strtoumax(argv[4], NULL, 10);
	load.target = argv[6];
	load.size = argc > 7 ? strtoumax(argv[7], NULL, 10) : 0;
	if (load.clients < 1 || load.clients > CLIENTS_MAX || load.count < 1 ||
	    load.count > COUNT_MAX)
		return 2;
	load.took_us = calloc(load.count, sizeof(*load.took_us));
	if (!load.took_us)
		abort();
	if (load.size)
		fill(&load);
	if (measure(&load, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/mirror_priv.h"

struct mirror_pin {
	struct http_stream stream;
	struct http_stream *inner; /* owned */
	struct mirror *mirror;
	struct digest blob;
	struct mirror_pin *next;
	struct mirror_pin **at;
};

static ssize_t mirror_pin_read(struct http_stream *stream, uint64_t at, char *out, size_t max,
			       bool over, struct http_wait *wait)
{
	struct http_stream *inner = container_of(stream, struct mirror_pin, stream)->inner;

	return inner->read(inner, at, out, max, over, wait);
}

static ssize_t mirror_pin_read_near(struct http_stream *stream, uint64_t at, char *out, size_t max)
{
	struct http_stream *inner = container_of(stream, struct mirror_pin, stream)->inner;

	return inner->read_near(inner, at, out, max);
}

static void mirror_pin_close(struct http_stream *stream)
{
	struct mirror_pin *pin = container_of(stream, struct mirror_pin, stream);

	lock_take(&pin->mirror->lock);
	*pin->at = pin->next;
	if (pin->next)
		pin->next->at = pin->at;
	lock_drop(&pin->mirror->lock);
	pin->inner->close(pin->inner);
	free(pin);
}

void mirror_pin_stream(struct mirror *mirror, const struct digest *blob,
		       struct http_response *response)
{
	struct http_stream *inner = response->stream;
	struct mirror_pin *pin = malloc(sizeof(*pin));

	if (!pin)
		abort();
	*pin = (struct mirror_pin){
		.stream = {mirror_pin_read, mirror_pin_close,
			   inner->read_near ? mirror_pin_read_near : NULL},
		.inner = inner,
		.mirror = mirror,
		.blob = *blob,
	};
	lock_take(&mirror->lock);
	pin->next = mirror->pins;
	pin->at = &mirror->pins;
	if (pin->next)
		pin->next->at = &pin->next;
	mirror->pins = pin;
	lock_drop(&mirror->lock);
	response->stream = &pin->stream;
}

bool mirror_is_pinned(struct mirror *mirror, const struct digest *blob)
{
	bool found = false;

	lock_take(&mirror->lock);
	for (const struct mirror_pin *pin = mirror->pins; pin && !found; pin = pin->next)
		found = digest_equal(&pin->blob, blob);
	lock_drop(&mirror->lock);
	return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/transport.h"

#include "registry/grammar.h"

static const struct transport transports[] = {
	{REFERENCE_LAYOUT, STR("oci:")},
	{REFERENCE_OCI_ARCHIVE, STR("oci-archive:")},
	{REFERENCE_DOCKER_ARCHIVE, STR("docker-archive:")},
};
#define TRANSPORTS (sizeof(transports) / sizeof(transports[0]))

/* Places that other tools name by a prefix, and what leads from there to here. */
static const struct {
	struct str prefix;
	const char *instead;
} transports_foreign[] = {
	{STR("docker-daemon:"), "docker save IMAGE | hearth import -"},
	{STR("containers-storage:"), "podman save IMAGE | hearth import -"},
	{STR("dir:"), "skopeo copy dir:DIR oci:DIR"},
};

const struct transport *transport_find(struct str text)
{
	for (size_t i = 0; i < TRANSPORTS; i++) {
		if (str_starts(text, transports[i].prefix))
			return &transports[i];
	}
	return NULL;
}

const struct transport *transport_of(enum reference_kind kind)
{
	for (size_t i = 0; i < TRANSPORTS; i++) {
		if (transports[i].kind == kind)
			return &transports[i];
	}
	return NULL;
}

/* The colon between the place and the name in it, or NULL. */
static const char *transport_colon(const struct transport *transport, struct str text)
{
	const char *colon;

	if (text.len == 0)
		return NULL;
	if (transport->kind == REFERENCE_DOCKER_ARCHIVE)
		return memchr(text.ptr, ':', text.len);
	colon = memrchr(text.ptr, ':', text.len);
	if (colon && memchr(colon, '/', text.len - (size_t)(colon - text.ptr)))
		return NULL;
	return colon;
}

int transport_split(const struct transport *transport, struct str text, struct str *out_place,
		    struct str *out_name, struct err *err)
{
	size_t prefix = transport->prefix.len;
	struct str place = {text.ptr + prefix, text.len - prefix};
	const char *colon = transport_colon(transport, place);
	struct str name = {0};

	if (colon) {
		name.len = place.len - (size_t)(colon + 1 - place.ptr);
		name.ptr = colon + 1;
		place.len = (size_t)(colon - place.ptr);
		if (transport->kind != REFERENCE_DOCKER_ARCHIVE && !grammar_is_tag(name))
			return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is not a tag",
				       STR_ARG(name));
	}
	if (place.len == 0)
		return err_set(err, ERR_INVALID, STR_FMT " needs a %s", STR_ARG(transport->prefix),
			       transport->kind == REFERENCE_LAYOUT ? "directory" : "file");
	*out_place = place;
	*out_name = name;
	return 0;
}

int transport_check_known(struct str text, struct err *err)
{
	for (size_t i = 0; i < sizeof(transports_foreign) / sizeof(transports_foreign[0]); i++) {
		struct str prefix = transports_foreign[i].prefix;

		if (str_starts(text, prefix))
			return err_set(err, ERR_UNSUPPORTED, STR_FMT " cannot be read; %s can",
				       STR_ARG(prefix), transports_foreign[i].instead);
	}
	return 0;
}

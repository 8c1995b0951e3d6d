/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/mount_fields_priv.h"

#include "bake/csv_priv.h"
#include "bake/expand.h"
#include "layers/base/nearest.h"

#define OF(type) (1U << MOUNT_##type)
#define OF_ALL (OF(BIND) | OF(CACHE) | OF(SECRET) | OF(TMPFS))

static const struct {
	const char *key;
	enum mount_option option;
	unsigned types; /* mount types that have it */
} mount_keys[] = {
	{"type", MOUNT_OPTION_TYPE, OF_ALL},
	{"from", MOUNT_OPTION_FROM, OF(BIND) | OF(CACHE)},
	{"source", MOUNT_OPTION_SOURCE, OF(BIND) | OF(CACHE) | OF(SECRET)},
	{"src", MOUNT_OPTION_SOURCE, OF(BIND) | OF(CACHE) | OF(SECRET)},
	{"target", MOUNT_OPTION_TARGET, OF_ALL},
	{"dst", MOUNT_OPTION_TARGET, OF_ALL},
	{"destination", MOUNT_OPTION_TARGET, OF_ALL},
	{"ro", MOUNT_OPTION_READ_ONLY, OF_ALL},
	{"readonly", MOUNT_OPTION_READ_ONLY, OF_ALL},
	{"rw", MOUNT_OPTION_READ_WRITE, OF(BIND) | OF(CACHE) | OF(TMPFS)},
	{"readwrite", MOUNT_OPTION_READ_WRITE, OF(BIND) | OF(CACHE) | OF(TMPFS)},
	{"required", MOUNT_OPTION_REQUIRED, OF(SECRET)},
	{"size", MOUNT_OPTION_SIZE, OF(TMPFS)},
	{"id", MOUNT_OPTION_ID, OF(CACHE) | OF(SECRET)},
	{"sharing", MOUNT_OPTION_SHARING, OF(CACHE)},
	{"mode", MOUNT_OPTION_MODE, OF(CACHE) | OF(SECRET)},
	{"uid", MOUNT_OPTION_UID, OF(CACHE) | OF(SECRET)},
	{"gid", MOUNT_OPTION_GID, OF(CACHE) | OF(SECRET)},
	{"env", MOUNT_OPTION_ENV, OF(SECRET)},
	{"cache", MOUNT_OPTION_CACHE, OF(SECRET)},
};

#define MOUNT_KEYS (sizeof(mount_keys) / sizeof(mount_keys[0]))

static const char *const mount_types[] = {
	[MOUNT_BIND] = "bind",
	[MOUNT_CACHE] = "cache",
	[MOUNT_SECRET] = "secret",
	[MOUNT_TMPFS] = "tmpfs",
};

#define MOUNT_TYPES (sizeof(mount_types) / sizeof(mount_types[0]))

static int mount_refuse_key(struct str key, struct err *err)
{
	const char *known[MOUNT_KEYS];
	char hint[NEAREST_HINT_MAX];

	for (size_t i = 0; i < MOUNT_KEYS; i++)
		known[i] = mount_keys[i].key;
	return err_set(err, ERR_REFUSED, "unknown key " STR_FMT "%s", STR_ARG(key),
		       nearest_hint(key, known, MOUNT_KEYS, hint));
}

static bool mount_key_is(const char *known, struct str key)
{
	return strlen(known) == key.len && strncasecmp(known, key.ptr, key.len) == 0;
}

/* The place of a key in the table, or -1. */
static int mount_find_key(struct str key, struct err *err)
{
	for (size_t i = 0; i < MOUNT_KEYS; i++) {
		if (mount_key_is(mount_keys[i].key, key))
			return (int)i;
	}
	return mount_refuse_key(key, err);
}

static bool mount_may_be_bare(enum mount_option option)
{
	return option == MOUNT_OPTION_READ_ONLY || option == MOUNT_OPTION_READ_WRITE ||
	       option == MOUNT_OPTION_REQUIRED;
}

/* Variables expand everywhere but in `from`, an image's name. */
static int mount_expand(struct mount_fields *fields, enum mount_option option, struct str raw,
			struct err *err)
{
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);
	bool varies = memchr(raw.ptr, '$', raw.len);

	if (option == MOUNT_OPTION_FROM && varies)
		return err_set(err, ERR_REFUSED,
			       "from=" STR_FMT ": variables are not expanded in from",
			       STR_ARG(raw));
	if (option != MOUNT_OPTION_FROM && expand_word(raw, fields->state, &word, err) < 0)
		return -1;
	fields->unknown[option] = varies && !fields->state;
	fields->value[option] = str_dup(option == MOUNT_OPTION_FROM ? raw : buf_str(&word));
	return 0;
}

static int mount_take_field(struct mount_fields *fields, struct str field, struct err *err)
{
	const char *equals = memchr(field.ptr, '=', field.len);
	struct str key = {field.ptr, equals ? (size_t)(equals - field.ptr) : field.len};
	int found;
	enum mount_option option;

	if (field.len == 0)
		return err_set(err, ERR_REFUSED, "an empty field; expected key=value");
	found = mount_find_key(key, err);
	if (found < 0)
		return -1;
	option = mount_keys[found].option;
	if (fields->key[option])
		return err_set(err, ERR_REFUSED, "%s is given twice", mount_keys[found].key);
	fields->key[option] = mount_keys[found].key;
	if (equals)
		return mount_expand(
			fields, option,
			(struct str){equals + 1, field.len - (size_t)(equals + 1 - field.ptr)},
			err);
	if (!mount_may_be_bare(option))
		return err_set(err, ERR_REFUSED, "%s needs a value: %s=…", mount_keys[found].key,
			       mount_keys[found].key);
	return 0;
}

int mount_fields_read(struct mount_fields *fields, struct str text, struct err *err)
{
	auto_buf struct buf field = BUF_INIT(EXPAND_MAX);
	bool more = true;

	while (more) {
		if (csv_next(&text, &field, &more, err) < 0) {
			err->kind = ERR_REFUSED;
			return -1;
		}
		if (mount_take_field(fields, buf_str(&field), err) < 0)
			return -1;
	}
	return 0;
}

static int mount_refuse_ssh(struct err *err)
{
	return err_set(err, ERR_REFUSED,
		       "type=ssh is refused: a step never reaches an agent of the host; give the "
		       "key as a secret: RUN --mount=type=secret,id=key "
		       "GIT_SSH_COMMAND='ssh -i /run/secrets/key' git clone …, and bake with "
		       "--secret id=key,src=FILE");
}

static int mount_read_type(const struct mount_fields *fields, enum mount_type *out, struct err *err)
{
	const char *text = fields->value[MOUNT_OPTION_TYPE];
	char hint[NEAREST_HINT_MAX];

	*out = MOUNT_BIND;
	if (!text)
		return 0;
	for (size_t i = 0; i < MOUNT_TYPES; i++) {
		if (strcasecmp(mount_types[i], text) == 0) {
			*out = (enum mount_type)i;
			return 0;
		}
	}
	if (strcasecmp(text, "ssh") == 0)
		return mount_refuse_ssh(err);
	return err_set(err, ERR_REFUSED, "type=%s: expected bind, cache, secret or tmpfs%s", text,
		       nearest_hint(str_of(text), mount_types, MOUNT_TYPES, hint));
}

/* The options that other types have. */
static int mount_check_keys(const struct mount_fields *fields, enum mount_type type,
			    struct err *err)
{
	for (size_t i = 0; i < MOUNT_KEYS; i++) {
		enum mount_option option = mount_keys[i].option;

		if (fields->key[option] != mount_keys[i].key)
			continue;
		if (!(mount_keys[i].types & 1U << type))
			return err_set(err, ERR_REFUSED, "a %s mount has no %s", mount_types[type],
				       mount_keys[i].key);
		if (fields->value[option] && fields->value[option][0] == '\0' &&
		    !fields->unknown[option])
			return err_set(err, ERR_REFUSED, "%s= is empty", mount_keys[i].key);
	}
	return 0;
}

int mount_fields_type(const struct mount_fields *fields, enum mount_type *out, struct err *err)
{
	if (mount_read_type(fields, out, err) < 0)
		return -1;
	return mount_check_keys(fields, *out, err);
}

const char *mount_fields_value(const struct mount_fields *fields, enum mount_option option)
{
	return fields->unknown[option] ? NULL : fields->value[option];
}

const char *mount_type_name(enum mount_type type)
{
	return mount_types[type];
}

void mount_fields_done(struct mount_fields *fields)
{
	for (size_t i = 0; i < MOUNT_OPTIONS; i++)
		free(fields->value[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount.c - a --mount is read in two passes: its fields as they are, and then,
 * once the type is known, what each of them means.
 */
#include "bake/mount.h"

#include "bake/csv_priv.h"
#include "bake/expand.h"
#include "bake/state.h"
#include "layers/base/nearest.h"
#include "layers/base/path.h"
#include "registry/reference.h"

#include <ctype.h>

#define MOUNT_MODE_MAX 07777
#define MOUNT_OWNER_MAX 65535 /* a machine has no more ids */

enum mount_option {
	OPTION_TYPE,
	OPTION_FROM,
	OPTION_SOURCE,
	OPTION_TARGET,
	OPTION_READ_ONLY,
	OPTION_READ_WRITE,
	OPTION_REQUIRED,
	OPTION_SIZE,
	OPTION_ID,
	OPTION_SHARING,
	OPTION_MODE,
	OPTION_UID,
	OPTION_GID,
	OPTION_ENV,
	OPTIONS,
};

#define OF(type) (1U << MOUNT_##type)
#define OF_ALL (OF(BIND) | OF(CACHE) | OF(SECRET) | OF(TMPFS))

static const struct {
	const char *key;
	enum mount_option option;
	unsigned types; /* that have it */
} mount_keys[] = {
	{"type", OPTION_TYPE, OF_ALL},
	{"from", OPTION_FROM, OF(BIND) | OF(CACHE)},
	{"source", OPTION_SOURCE, OF(BIND) | OF(CACHE) | OF(SECRET)},
	{"src", OPTION_SOURCE, OF(BIND) | OF(CACHE) | OF(SECRET)},
	{"target", OPTION_TARGET, OF_ALL},
	{"dst", OPTION_TARGET, OF_ALL},
	{"destination", OPTION_TARGET, OF_ALL},
	{"ro", OPTION_READ_ONLY, OF_ALL},
	{"readonly", OPTION_READ_ONLY, OF_ALL},
	{"rw", OPTION_READ_WRITE, OF(BIND) | OF(CACHE) | OF(TMPFS)},
	{"readwrite", OPTION_READ_WRITE, OF(BIND) | OF(CACHE) | OF(TMPFS)},
	{"required", OPTION_REQUIRED, OF(SECRET)},
	{"size", OPTION_SIZE, OF(TMPFS)},
	{"id", OPTION_ID, OF(CACHE) | OF(SECRET)},
	{"sharing", OPTION_SHARING, OF(CACHE)},
	{"mode", OPTION_MODE, OF(CACHE) | OF(SECRET)},
	{"uid", OPTION_UID, OF(CACHE) | OF(SECRET)},
	{"gid", OPTION_GID, OF(CACHE) | OF(SECRET)},
	{"env", OPTION_ENV, OF(SECRET)},
};

#define MOUNT_KEYS (sizeof(mount_keys) / sizeof(mount_keys[0]))

static const char *const mount_types[] = {
	[MOUNT_BIND] = "bind",
	[MOUNT_CACHE] = "cache",
	[MOUNT_SECRET] = "secret",
	[MOUNT_TMPFS] = "tmpfs",
};

#define MOUNT_TYPES (sizeof(mount_types) / sizeof(mount_types[0]))

/* The fields of one mount. */
struct fields {
	const struct state *state;
	char *value[OPTIONS];     /* owned; NULL where the field is absent or bare */
	const char *key[OPTIONS]; /* as the user has it; NULL where it is absent */
	bool unknown[OPTIONS];    /* its variables have no values yet */
};

static inline void auto_fields_release(struct fields *fields)
{
	for (size_t i = 0; i < OPTIONS; i++)
		free(fields->value[i]);
}
#define auto_fields AUTO(fields)

static char *mount_copy(struct str text)
{
	char *copy = strndup(text.ptr, text.len);

	if (!copy)
		abort();
	return copy;
}

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
	return option == OPTION_READ_ONLY || option == OPTION_READ_WRITE ||
	       option == OPTION_REQUIRED;
}

/* Variables expand everywhere but in a name of what is mounted. */
static int mount_expand(struct fields *fields, enum mount_option option, struct str raw,
			struct err *err)
{
	auto_buf struct buf word = BUF_INIT(EXPAND_MAX);
	bool varies = memchr(raw.ptr, '$', raw.len);

	if (option == OPTION_FROM && varies)
		return err_set(err, ERR_REFUSED,
			       "from=" STR_FMT ": variables are not expanded in from",
			       STR_ARG(raw));
	if (option != OPTION_FROM && expand_word(raw, fields->state, &word, err) < 0)
		return -1;
	fields->unknown[option] = varies && !fields->state;
	fields->value[option] = mount_copy(option == OPTION_FROM ? raw : buf_str(&word));
	return 0;
}

static int mount_take_field(struct fields *fields, struct str field, struct err *err)
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

static int mount_read_fields(struct fields *fields, struct str text, struct err *err)
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

static int mount_read_type(const struct fields *fields, struct mount *mount, struct err *err)
{
	const char *text = fields->value[OPTION_TYPE];
	char hint[NEAREST_HINT_MAX];

	mount->type = MOUNT_BIND;
	if (!text)
		return 0;
	for (size_t i = 0; i < MOUNT_TYPES; i++) {
		if (strcasecmp(mount_types[i], text) == 0) {
			mount->type = (enum mount_type)i;
			return 0;
		}
	}
	if (strcasecmp(text, "ssh") == 0)
		return mount_refuse_ssh(err);
	return err_set(err, ERR_REFUSED, "type=%s: expected bind, cache, secret or tmpfs%s", text,
		       nearest_hint(str_of(text), mount_types, MOUNT_TYPES, hint));
}

/* The options that other types have. */
static int mount_check_keys(const struct fields *fields, const struct mount *mount, struct err *err)
{
	for (size_t i = 0; i < MOUNT_KEYS; i++) {
		enum mount_option option = mount_keys[i].option;

		if (fields->key[option] != mount_keys[i].key)
			continue;
		if (!(mount_keys[i].types & 1U << mount->type))
			return err_set(err, ERR_REFUSED, "a %s mount has no %s",
				       mount_types[mount->type], mount_keys[i].key);
		if (fields->value[option] && fields->value[option][0] == '\0' &&
		    !fields->unknown[option])
			return err_set(err, ERR_REFUSED, "%s= is empty", mount_keys[i].key);
	}
	return 0;
}

/* What can be judged now. */
static const char *mount_value(const struct fields *fields, enum mount_option option)
{
	return fields->unknown[option] ? NULL : fields->value[option];
}

static int mount_read_switch(const struct fields *fields, enum mount_option option, bool *out,
			     struct err *err)
{
	static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
	static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};
	const char *text = mount_value(fields, option);

	if (!fields->key[option] || fields->unknown[option])
		return 0;
	*out = true;
	for (size_t i = 0; text && i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (strcmp(text, yes[i]) == 0)
			return 0;
		if (strcmp(text, no[i]) == 0) {
			*out = false;
			return 0;
		}
	}
	return text ? err_set(err, ERR_REFUSED, "%s=%s: expected true or false",
			      fields->key[option], text)
		    : 0;
}

static int mount_read_access(const struct fields *fields, struct mount *mount, struct err *err)
{
	bool only = mount->type == MOUNT_BIND || mount->type == MOUNT_SECRET;
	bool write = false;

	if (fields->key[OPTION_READ_ONLY] && fields->key[OPTION_READ_WRITE])
		return err_set(err, ERR_REFUSED, "both %s and %s", fields->key[OPTION_READ_ONLY],
			       fields->key[OPTION_READ_WRITE]);
	mount->read_only = only;
	if (mount_read_switch(fields, OPTION_READ_ONLY, &mount->read_only, err) < 0 ||
	    mount_read_switch(fields, OPTION_READ_WRITE, &write, err) < 0)
		return -1;
	if (fields->key[OPTION_READ_WRITE])
		mount->read_only = !write;
	return mount_read_switch(fields, OPTION_REQUIRED, &mount->required, err);
}

static int mount_read_number(const struct fields *fields, enum mount_option option, unsigned base,
			     unsigned *value, struct err *err)
{
	const unsigned most = base == 8 ? MOUNT_MODE_MAX : MOUNT_OWNER_MAX;
	const char *text = mount_value(fields, option);
	unsigned made = 0;

	if (!text)
		return 0;
	for (size_t i = 0; text[i]; i++) {
		unsigned digit = (unsigned char)text[i] - (unsigned)'0';

		made = digit < base && made <= most ? made * base + digit : most + 1;
	}
	if (made > most)
		return err_set(err, ERR_REFUSED,
			       base == 8 ? "%s=%s: expected octal, 0 to %o"
					 : "%s=%s: expected 0 to %u",
			       fields->key[option], text, most);
	*value = made;
	return 0;
}

static int mount_read_owner(const struct fields *fields, struct mount *mount, struct err *err)
{
	mount->mode = mount->type == MOUNT_SECRET ? 0400 : 0755;
	if (mount_read_number(fields, OPTION_MODE, 8, &mount->mode, err) < 0 ||
	    mount_read_number(fields, OPTION_UID, 10, &mount->uid, err) < 0)
		return -1;
	return mount_read_number(fields, OPTION_GID, 10, &mount->gid, err);
}

/* "64m", "1GiB", "4096": powers of 1,024, and a b or ib behind the letter says nothing. */
static int mount_read_size(const struct fields *fields, struct mount *mount, struct err *err)
{
	static const char units[] = "bkmgtp";
	const char *text = mount_value(fields, OPTION_SIZE);
	struct str rest = str_of(text ? text : "1");
	uint64_t number = 0;
	const char *unit = units;

	if (!text)
		return 0;
	if (str_take_number(&rest, &number) && rest.len > 0)
		unit = strchr(units, tolower((unsigned char)rest.ptr[0]));
	if (unit && rest.len > 1 && strcasecmp(rest.ptr + 1, "b") != 0 &&
	    strcasecmp(rest.ptr + 1, "ib") != 0)
		unit = NULL;
	if (!unit || number == 0 || number > UINT64_MAX >> 10 * (unit - units) >> 1)
		return err_set(err, ERR_REFUSED, "size=%s: expected a size such as 64m or 1g",
			       text);
	mount->size = number << 10 * (unit - units);
	return 0;
}

static int mount_read_sharing(const struct fields *fields, struct mount *mount, struct err *err)
{
	static const char *const names[] = {
		[CACHE_SHARED] = "shared", [CACHE_PRIVATE] = "private", [CACHE_LOCKED] = "locked"};
	const char *text = mount_value(fields, OPTION_SHARING);

	for (size_t i = 0; text && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(text, names[i]) == 0) {
			mount->sharing = (enum cache_sharing)i;
			return 0;
		}
	}
	return text ? err_set(err, ERR_REFUSED, "sharing=%s: expected shared, private or locked",
			      text)
		    : 0;
}

static int mount_read_env(const struct fields *fields, struct mount *mount, struct err *err)
{
	const char *text = mount_value(fields, OPTION_ENV);

	if (!text)
		return 0;
	if (strchr(text, '='))
		return err_set(err, ERR_REFUSED, "env=%s: not the name of a variable", text);
	mount->env = mount_copy(str_of(text));
	return 0;
}

static int mount_set_target(const struct fields *fields, struct mount *mount, const char *text,
			    struct err *err)
{
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	struct str base = fields->state ? state_workdir(fields->state) : STR("/");

	if (path_join(base, str_of(text), &path, err) < 0)
		return err_ctx(err, "target");
	/* Where a relative one leads is known once there is a state. */
	if (path.len == 1 && !fields->unknown[OPTION_TARGET] && (fields->state || text[0] == '/'))
		return err_set(err, ERR_REFUSED, "target=%s: nothing is mounted on the root", text);
	mount->target = mount_copy(buf_str(&path));
	return 0;
}

static int mount_read_target(const struct fields *fields, struct mount *mount, struct err *err)
{
	const char *text = fields->value[OPTION_TARGET];

	if (!text && mount->type != MOUNT_SECRET)
		return err_set(err, ERR_REFUSED, "a %s mount needs a target",
			       mount_types[mount->type]);
	return text ? mount_set_target(fields, mount, text, err) : 0;
}

/* A secret's id: said, or its source, or the last name of its target. */
static int mount_read_id(const struct fields *fields, struct mount *mount, struct err *err)
{
	const char *text = fields->value[OPTION_ID];
	struct str name;

	if (mount->type == MOUNT_SECRET && fields->key[OPTION_ID] && fields->key[OPTION_SOURCE])
		return err_set(err, ERR_REFUSED, "both %s and id", fields->key[OPTION_SOURCE]);
	if (mount->type == MOUNT_SECRET && !text)
		text = fields->value[OPTION_SOURCE];
	if (!text && !mount->target)
		return err_set(err, ERR_REFUSED, "a secret mount needs an id or a target");
	name = text ? str_of(text) : str_of(mount->target);
	if (!text && mount->type == MOUNT_SECRET)
		name = path_base(name);
	if (name.len > (mount->type == MOUNT_CACHE ? CACHE_ID_MAX : MOUNT_ID_MAX))
		return err_set(err, ERR_REFUSED, "an id of %zu bytes", name.len);
	mount->id = mount_copy(name);
	return 0;
}

static int mount_read_cache(const struct fields *fields, struct mount *mount, struct err *err)
{
	if (fields->key[OPTION_FROM] || fields->key[OPTION_SOURCE])
		return err_set(err, ERR_REFUSED,
			       "a cache mount with from or source is not supported yet: fill it "
			       "in the command");
	if (mount_read_sharing(fields, mount, err) < 0)
		return -1;
	return mount_read_id(fields, mount, err);
}

static int mount_read_secret(const struct fields *fields, struct mount *mount, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	struct str base;

	if (mount_read_env(fields, mount, err) < 0 || mount_read_id(fields, mount, err) < 0)
		return -1;
	base = path_base(str_of(mount->id));
	if (mount->target || fields->key[OPTION_ENV] || fields->unknown[OPTION_ID] ||
	    fields->unknown[OPTION_SOURCE])
		return 0;
	if (base.len == 0 || str_equal(base, STR(".")) || str_equal(base, STR("..")))
		return err_set(err, ERR_REFUSED, "id=%s is no file's name: give a target",
			       mount->id);
	if (path_join(STR(MOUNT_SECRETS_DIR), base, &path, err) < 0)
		return -1;
	mount->target = mount_copy(buf_str(&path));
	return 0;
}

static int mount_check_from(const char *from, struct err *err)
{
	struct reference reference;
	struct err ignored;

	if (strspn(from, "0123456789") == strlen(from))
		return err_set(err, ERR_REFUSED, "from=%s: there are no stages; name an image",
			       from);
	if (reference_parse(str_of(from), &reference, &ignored) < 0)
		return err_set(err, ERR_REFUSED, "from=%s is no image's name", from);
	if (reference.kind == REFERENCE_SCRATCH)
		return err_set(err, ERR_REFUSED, "from=scratch: it holds no files");
	return 0;
}

static int mount_read_bind(const struct fields *fields, struct mount *mount, struct err *err)
{
	const char *source = fields->value[OPTION_SOURCE];
	const char *from = fields->value[OPTION_FROM];

	if (from && mount_check_from(from, err) < 0)
		return -1;
	mount->source = mount_copy(source ? str_of(source) : STR("/"));
	mount->from = from ? mount_copy(str_of(from)) : NULL;
	return 0;
}

static int mount_read(const struct fields *fields, struct mount *mount, struct err *err)
{
	if (fields->unknown[OPTION_TYPE])
		return 0;
	if (mount_read_type(fields, mount, err) < 0 || mount_check_keys(fields, mount, err) < 0 ||
	    mount_read_access(fields, mount, err) < 0 || mount_read_owner(fields, mount, err) < 0 ||
	    mount_read_size(fields, mount, err) < 0 || mount_read_target(fields, mount, err) < 0)
		return -1;
	switch (mount->type) {
	case MOUNT_BIND:
		return mount_read_bind(fields, mount, err);
	case MOUNT_CACHE:
		return mount_read_cache(fields, mount, err);
	case MOUNT_SECRET:
		return mount_read_secret(fields, mount, err);
	case MOUNT_TMPFS:
		break;
	}
	return 0;
}

int mount_parse(struct str text, const struct state *state, struct mount *out, struct err *err)
{
	auto_fields struct fields fields = {.state = state};
	auto_mount struct mount mount = {0};

	if (mount_read_fields(&fields, text, err) < 0 || mount_read(&fields, &mount, err) < 0)
		return err_ctx(err, "--mount");
	*out = mount;
	mount = (struct mount){0};
	return 0;
}

void mount_done(struct mount *mount)
{
	free(mount->target);
	free(mount->source);
	free(mount->from);
	free(mount->id);
	free(mount->env);
	*mount = (struct mount){0};
}

/* "[*]" is a star and nothing else. */
int mount_source_word(const struct mount *mount, struct buf *out, struct err *err)
{
	bool quote = strpbrk(mount->source, "*?[") != NULL;

	for (const char *at = mount->source; *at; at++) {
		bool wild = quote && strchr("*?[", *at);

		if (buf_addf(out, err, "%s%c%s",
			     wild                   ? "["
			     : quote && *at == '\\' ? "\\"
						    : "",
			     *at, wild ? "]" : "") < 0)
			return -1;
	}
	return 0;
}

const char *mount_type_name(enum mount_type type)
{
	return mount_types[type];
}

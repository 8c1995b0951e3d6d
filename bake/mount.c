/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount.c - a --mount is read in two passes: its fields as they are
 * (mount_fields.c), and then, once the type is known, what each of them means.
 */
#include "bake/mount.h"

#include "bake/mount_fields_priv.h"
#include "bake/state.h"
#include "layers/base/path.h"
#include "layers/base/size.h"
#include "registry/reference.h"

#define MOUNT_MODE_MAX 07777
#define MOUNT_OWNER_MAX 65535 /* a machine has no more ids */

static int mount_read_switch(const struct mount_fields *fields, enum mount_option option, bool *out,
			     struct err *err)
{
	static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
	static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};
	const char *text = mount_fields_value(fields, option);

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

static int mount_read_access(const struct mount_fields *fields, struct mount *mount,
			     struct err *err)
{
	bool only = mount->type == MOUNT_BIND || mount->type == MOUNT_SECRET;
	bool write = false;

	if (fields->key[MOUNT_OPTION_READ_ONLY] && fields->key[MOUNT_OPTION_READ_WRITE])
		return err_set(err, ERR_REFUSED, "both %s and %s",
			       fields->key[MOUNT_OPTION_READ_ONLY],
			       fields->key[MOUNT_OPTION_READ_WRITE]);
	mount->read_only = only;
	if (mount_read_switch(fields, MOUNT_OPTION_READ_ONLY, &mount->read_only, err) < 0 ||
	    mount_read_switch(fields, MOUNT_OPTION_READ_WRITE, &write, err) < 0)
		return -1;
	if (fields->key[MOUNT_OPTION_READ_WRITE])
		mount->read_only = !write;
	return mount_read_switch(fields, MOUNT_OPTION_REQUIRED, &mount->required, err);
}

static int mount_read_number(const struct mount_fields *fields, enum mount_option option,
			     unsigned base, unsigned *value, struct err *err)
{
	const unsigned most = base == 8 ? MOUNT_MODE_MAX : MOUNT_OWNER_MAX;
	const char *text = mount_fields_value(fields, option);
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

static int mount_read_owner(const struct mount_fields *fields, struct mount *mount, struct err *err)
{
	mount->mode = mount->type == MOUNT_SECRET ? 0400 : 0755;
	if (mount_read_number(fields, MOUNT_OPTION_MODE, 8, &mount->mode, err) < 0 ||
	    mount_read_number(fields, MOUNT_OPTION_UID, 10, &mount->uid, err) < 0)
		return -1;
	return mount_read_number(fields, MOUNT_OPTION_GID, 10, &mount->gid, err);
}

static int mount_read_size(const struct mount_fields *fields, struct mount *mount, struct err *err)
{
	const char *text = mount_fields_value(fields, MOUNT_OPTION_SIZE);
	uint64_t size;

	if (!text)
		return 0;
	if (size_parse(str_of(text), SIZE_MEMORY, &size, err) < 0 || size == 0 || size > INT64_MAX)
		return err_set(err, ERR_REFUSED, "size=%s: expected a size such as 64m or 1g",
			       text);
	mount->size = size;
	return 0;
}

static int mount_read_sharing(const struct mount_fields *fields, struct mount *mount,
			      struct err *err)
{
	static const char *const names[] = {
		[CACHE_SHARED] = "shared", [CACHE_PRIVATE] = "private", [CACHE_LOCKED] = "locked"};
	const char *text = mount_fields_value(fields, MOUNT_OPTION_SHARING);

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

static int mount_read_env(const struct mount_fields *fields, struct mount *mount, struct err *err)
{
	const char *text = mount_fields_value(fields, MOUNT_OPTION_ENV);

	if (!text)
		return 0;
	if (strchr(text, '='))
		return err_set(err, ERR_REFUSED, "env=%s: not the name of a variable", text);
	mount->env = str_dup(str_of(text));
	return 0;
}

static int mount_read_by_value(const struct mount_fields *fields, struct mount *mount,
			       struct err *err)
{
	const char *text = mount_fields_value(fields, MOUNT_OPTION_CACHE);

	mount->by_value = text != NULL;
	if (!text || strcasecmp(text, "value") == 0)
		return 0;
	return err_set(err, ERR_REFUSED, "cache=%s: expected value", text);
}

static int mount_set_target(const struct mount_fields *fields, struct mount *mount,
			    const char *text, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	struct str base = fields->state ? state_workdir(fields->state) : STR("/");

	if (path_join(base, str_of(text), &path, err) < 0)
		return err_ctx(err, "target");
	/* A relative target is known only with a state. */
	if (path.len == 1 && !fields->unknown[MOUNT_OPTION_TARGET] &&
	    (fields->state || text[0] == '/'))
		return err_set(err, ERR_REFUSED, "target=%s: nothing is mounted on the root", text);
	mount->target = str_dup(buf_str(&path));
	return 0;
}

static int mount_read_target(const struct mount_fields *fields, struct mount *mount,
			     struct err *err)
{
	const char *text = fields->value[MOUNT_OPTION_TARGET];

	if (!text && mount->type != MOUNT_SECRET)
		return err_set(err, ERR_REFUSED, "a %s mount needs a target",
			       mount_type_name(mount->type));
	return text ? mount_set_target(fields, mount, text, err) : 0;
}

/* A secret's id: `id`, or its source, or the last name of its target. */
static int mount_read_id(const struct mount_fields *fields, struct mount *mount, struct err *err)
{
	const char *text = fields->value[MOUNT_OPTION_ID];
	struct str name;

	if (mount->type == MOUNT_SECRET && fields->key[MOUNT_OPTION_ID] &&
	    fields->key[MOUNT_OPTION_SOURCE])
		return err_set(err, ERR_REFUSED, "both %s and id",
			       fields->key[MOUNT_OPTION_SOURCE]);
	if (mount->type == MOUNT_SECRET && !text)
		text = fields->value[MOUNT_OPTION_SOURCE];
	if (!text && !mount->target)
		return err_set(err, ERR_REFUSED, "a secret mount needs an id or a target");
	name = text ? str_of(text) : str_of(mount->target);
	if (!text && mount->type == MOUNT_SECRET)
		name = path_base(name);
	if (name.len > (mount->type == MOUNT_CACHE ? CACHE_ID_MAX : MOUNT_ID_MAX))
		return err_set(err, ERR_REFUSED, "an id of %zu bytes", name.len);
	mount->id = str_dup(name);
	return 0;
}

static int mount_read_secret(const struct mount_fields *fields, struct mount *mount,
			     struct err *err)
{
	auto_buf struct buf path = BUF_INIT(PATH_TEXT_MAX);
	struct str base;

	if (mount_read_env(fields, mount, err) < 0 || mount_read_by_value(fields, mount, err) < 0 ||
	    mount_read_id(fields, mount, err) < 0)
		return -1;
	base = path_base(str_of(mount->id));
	if (mount->target || fields->key[MOUNT_OPTION_ENV] || fields->unknown[MOUNT_OPTION_ID] ||
	    fields->unknown[MOUNT_OPTION_SOURCE])
		return 0;
	if (base.len == 0 || str_equal(base, STR(".")) || str_equal(base, STR("..")))
		return err_set(err, ERR_REFUSED, "id=%s is no file's name: give a target",
			       mount->id);
	if (path_join(STR(MOUNT_SECRETS_DIR), base, &path, err) < 0)
		return -1;
	mount->target = str_dup(buf_str(&path));
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

static int mount_read_bind(const struct mount_fields *fields, struct mount *mount, struct err *err)
{
	const char *source = fields->value[MOUNT_OPTION_SOURCE];
	const char *from = fields->value[MOUNT_OPTION_FROM];

	if (from && mount_check_from(from, err) < 0)
		return -1;
	mount->source = str_dup(source ? str_of(source) : STR("/"));
	mount->from = from ? str_dup(str_of(from)) : NULL;
	return 0;
}

/* A new cache is filled from an image (from, source), or made empty with a mode and an owner. */
static int mount_read_seed(const struct mount_fields *fields, struct mount *mount, struct err *err)
{
	static const enum mount_option own[] = {MOUNT_OPTION_MODE, MOUNT_OPTION_UID,
						MOUNT_OPTION_GID};
	const char *from = fields->value[MOUNT_OPTION_FROM];

	if (!from && fields->key[MOUNT_OPTION_SOURCE])
		return err_set(err, ERR_REFUSED, "%s without from: a cache is filled from an image",
			       fields->key[MOUNT_OPTION_SOURCE]);
	for (size_t i = 0; from && i < sizeof(own) / sizeof(own[0]); i++) {
		if (fields->key[own[i]])
			return err_set(err, ERR_REFUSED,
				       "both from and %s: what an image fills has the mode and "
				       "owner that it has there",
				       fields->key[own[i]]);
	}
	return from ? mount_read_bind(fields, mount, err) : 0;
}

static int mount_read_cache(const struct mount_fields *fields, struct mount *mount, struct err *err)
{
	if (mount_read_sharing(fields, mount, err) < 0 || mount_read_seed(fields, mount, err) < 0)
		return -1;
	return mount_read_id(fields, mount, err);
}

static int mount_read(const struct mount_fields *fields, struct mount *mount, struct err *err)
{
	if (fields->unknown[MOUNT_OPTION_TYPE])
		return 0;
	if (mount_fields_type(fields, &mount->type, err) < 0 ||
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
	auto_mount_fields struct mount_fields fields = {.state = state};
	auto_mount struct mount mount = {0};

	if (mount_fields_read(&fields, text, err) < 0 || mount_read(&fields, &mount, err) < 0)
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/user.h"

#include "layers/base/fd.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#define USER_IDS 65536
#define USER_FIELDS 7

/* One line of passwd or group: name, password, id, … */
struct user_line {
	struct str fields[USER_FIELDS];
	size_t count;
};

static bool user_next_line(struct str *rest, struct user_line *out)
{
	struct str line;

	if (!str_cut(rest, '\n', &line))
		return false;
	out->count = 0;
	while (out->count < USER_FIELDS && str_cut(&line, ':', &out->fields[out->count]))
		out->count++;
	return true;
}

/* Whether text is a decimal number; of more digits than any id it is UINT32_MAX. */
static bool user_number(struct str text, uint32_t *out)
{
	uint64_t value;

	if (!str_parse_number(text, &value))
		return false;
	*out = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
	return true;
}

/* The first line whose name is text, or, for a number, whose id is. */
static bool user_find_line(struct str file, struct str text, struct user_line *out)
{
	uint32_t wanted = 0;
	uint32_t id;
	bool numeric = user_number(text, &wanted);

	while (user_next_line(&file, out)) {
		if (out->count < 3)
			continue;
		if (str_equal(out->fields[0], text))
			return true;
		if (numeric && user_number(out->fields[2], &id) && id == wanted)
			return true;
	}
	return false;
}

static int user_check_id(uint32_t id, struct str text, struct err *err)
{
	if (id >= USER_IDS)
		return err_set(err, ERR_LIMIT, "id of " STR_FMT " is not below %d", STR_ARG(text),
			       USER_IDS);
	return 0;
}

static int user_find_group(struct str group, struct str text, gid_t *out, struct err *err)
{
	struct user_line line;
	uint32_t id;

	if (!user_number(text, &id)) {
		if (!user_find_line(group, text, &line) || !user_number(line.fields[2], &id))
			return err_set(err, ERR_NOT_FOUND, "no group " STR_FMT " in the image",
				       STR_ARG(text));
	}
	if (user_check_id(id, text, err) < 0)
		return -1;
	*out = id;
	return 0;
}

static bool user_lists(struct str members, struct str name)
{
	struct str member;

	while (str_cut(&members, ',', &member)) {
		if (str_equal(member, name))
			return true;
	}
	return false;
}

static void user_add_groups(struct str group, struct str name, struct user *user)
{
	struct user_line line;
	uint32_t id;

	while (user_next_line(&group, &line) && user->group_count < USER_GROUPS_MAX) {
		if (line.count >= 4 && user_lists(line.fields[3], name) &&
		    user_number(line.fields[2], &id) && id < USER_IDS && id != user->gid)
			user->groups[user->group_count++] = id;
	}
}

static void user_set_home(const struct user_line *line, struct user *user)
{
	struct str home = line->count > 5 ? line->fields[5] : STR("");

	if (home.len == 0 || home.len >= sizeof(user->home) || home.ptr[0] != '/' ||
	    memchr(home.ptr, '\0', home.len))
		return;
	memcpy(user->home, home.ptr, home.len);
	user->home[home.len] = '\0';
}

int user_find(struct str passwd, struct str group, struct str text, struct user *out,
	      struct err *err)
{
	struct user user = {.home = "/"};
	struct str group_text = {NULL, 0};
	struct user_line line;
	struct str name;
	uint32_t id = 0;
	uint32_t gid = 0;
	bool known;

	if (text.len == 0)
		text = STR("0");
	(void)str_cut(&text, ':', &name);
	group_text = text;
	known = user_find_line(passwd, name, &line);
	if (!user_number(name, &id) && (!known || !user_number(line.fields[2], &id)))
		return err_set(err, ERR_NOT_FOUND, "no user \"" STR_FMT "\" in the image",
			       STR_ARG(name));
	if (user_check_id(id, name, err) < 0)
		return -1;
	user.uid = id;
	if (known && line.count > 3 && user_number(line.fields[3], &gid) && gid < USER_IDS)
		user.gid = gid;
	if (known)
		user_set_home(&line, &user);
	if (group_text.len > 0 && user_find_group(group, group_text, &user.gid, err) < 0)
		return -1;
	if (known && group_text.len == 0)
		user_add_groups(group, line.fields[0], &user);
	*out = user;
	return 0;
}

/* What the image has at path; nothing when there is no such file. */
static int user_read_file(int rootfd, const char *path, struct buf *out, struct err *err)
{
	auto_close int fd = fd_open_in_root(rootfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
	struct stat st;

	if (fd < 0)
		return err->kind == ERR_OS && (err->os == ENOENT || err->os == ENOTDIR) ? 0 : -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s of the image is not a file", path);
	if (fd_read_all(fd, out, err) < 0)
		return err_ctx(err, "%s of the image", path);
	return 0;
}

int user_find_in_root(int rootfd, struct str text, struct user *out, struct err *err)
{
	auto_buf struct buf passwd = BUF_INIT(USER_FILE_MAX);
	auto_buf struct buf group = BUF_INIT(USER_FILE_MAX);

	if (user_read_file(rootfd, "/etc/passwd", &passwd, err) < 0 ||
	    user_read_file(rootfd, "/etc/group", &group, err) < 0)
		return -1;
	return user_find(buf_str(&passwd), buf_str(&group), text, out, err);
}

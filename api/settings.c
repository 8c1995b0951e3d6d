/* SPDX-License-Identifier: Apache-2.0 */
#include "api/settings.h"

#include "layers/base/log.h"

#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define SETTINGS_MAP_MIN ((uint64_t)1024 * 1024)
#define SETTINGS_MAP_MAX ((uint64_t)64 << 40) /* half of what x86-64 addresses */
#define SETTINGS_COLUMNS 100                  /* of a terminal that does not say */
#define SETTINGS_CONFIG "/etc/hearth/hearth.json"

static char *settings_join(const char *a, const char *b)
{
	char *text;

	if (asprintf(&text, "%s%s", a, b) < 0)
		abort();
	return text;
}

static int settings_relative(const char *path, char **out, struct err *err)
{
	char cwd[PATH_MAX];
	auto_free char *slashed = settings_join("/", path);

	if (!getcwd(cwd, sizeof(cwd)))
		return err_os(err, errno, "find the working directory");
	*out = settings_join(cwd, slashed);
	return 0;
}

/* A variable of ours. 1 and its text, 0 unset, -1. */
static int settings_variable(const char *name, const char **out, struct err *err)
{
	const char *text = getenv(name);

	if (!text)
		return 0;
	if (*text == '\0')
		return err_set(err, ERR_INVALID, "%s is set, but empty: unset it or give a value",
			       name);
	*out = text;
	return 1;
}

/* The file of this user, or the host's; NULL where there is none. The caller frees it. */
static char *settings_default_config(void)
{
	const char *base = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	auto_free char *own = NULL;
	struct stat st;

	if (geteuid() != 0 && base && *base == '/')
		own = settings_join(base, "/hearth/hearth.json");
	else if (geteuid() != 0 && home && *home == '/')
		own = settings_join(home, "/.config/hearth/hearth.json");
	if (own && stat(own, &st) == 0)
		return steal_ptr(&own);
	return stat(SETTINGS_CONFIG, &st) == 0 ? settings_join(SETTINGS_CONFIG, "") : NULL;
}

static int settings_config(struct cli *cli, struct err *err)
{
	const char *given = cli_text(cli, "config");
	auto_free char *found = NULL;

	cli->config = CONFIG_INIT;
	if (!given && settings_variable("HEARTH_CONFIG", &given, err) < 0)
		return -1;
	if (!given) {
		found = settings_default_config();
		given = found;
	}
	return given ? config_read(given, cli->cancel, &cli->config, err) : 0;
}

static int settings_data_path(struct cli *cli, struct err *err)
{
	const char *given = cli_text(cli, "data");
	const char *base = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME");

	if (!given && settings_variable("HEARTH_DATA", &given, err) < 0)
		return -1;
	if (!given)
		given = cli->config.data;
	if (given && *given != '/')
		return settings_relative(given, &cli->data_path, err);
	if (given)
		cli->data_path = settings_join(given, "");
	else if (geteuid() == 0)
		cli->data_path = settings_join("/var/lib/hearth", "");
	else if (base && *base == '/')
		cli->data_path = settings_join(base, "/hearth");
	else if (home && *home == '/')
		cli->data_path = settings_join(home, "/.local/share/hearth");
	else
		return err_set(err, ERR_INVALID,
			       "no data directory: give --data DIR, or set HEARTH_DATA");
	return 0;
}

/*
 * A program of ours: beside this one, so that a build tree runs in place, else
 * in the libexec of the prefix that this one was installed under.
 */
static char *settings_program(const char *self_dir, const char *name)
{
	char *beside = settings_join(self_dir, name);
	auto_free char *libexec = NULL;
	struct stat st;

	if (stat(beside, &st) == 0)
		return beside;
	free(beside);
	libexec = settings_join(self_dir, "../libexec/hearth/");
	return settings_join(libexec, name);
}

/* The command line, for the daemon: beside it, or in the bin of their prefix. */
static char *settings_hearth(const char *self_dir)
{
	char *beside = settings_join(self_dir, "hearth");
	struct stat st;

	if (stat(beside, &st) == 0 && S_ISREG(st.st_mode))
		return beside;
	free(beside);
	return settings_join(self_dir, "../../bin/hearth");
}

static int settings_programs(struct cli *cli, struct err *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return err_os(err, errno, "find this program");
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		slash[1] = '\0';
	cli->worker_path = settings_program(self, "hearth-worker");
	cli->puller_path = settings_program(self, "hearth-puller");
	cli->daemon_path = settings_program(self, "hearth-daemon");
	cli->hearth_path = settings_hearth(self);
	cli->agent_path = settings_program(self, "hearth-agent");
	return 0;
}

static int settings_map_bytes(struct cli *cli, struct err *err)
{
	const char *text = NULL;
	int set = settings_variable("HEARTH_MAP_BYTES", &text, err);

	if (set <= 0)
		return set;
	if (!str_parse_number(str_of(text), &cli->map_bytes) || cli->map_bytes < SETTINGS_MAP_MIN ||
	    cli->map_bytes > SETTINGS_MAP_MAX)
		return err_set(
			err, ERR_INVALID,
			"HEARTH_MAP_BYTES: expected 1048576 to 70368744177664 bytes, found %s",
			text);
	return 0;
}

bool settings_terminal(int *out_columns)
{
	const char *term = getenv("TERM");
	struct winsize size;

	*out_columns = SETTINGS_COLUMNS;
	if (!isatty(STDERR_FILENO) || !term || strcmp(term, "dumb") == 0)
		return false;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		*out_columns = size.ws_col;
	return true;
}

const char *settings_source_date_epoch(void)
{
	const char *text = getenv("SOURCE_DATE_EPOCH");

	return text && *text ? text : NULL;
}

char *settings_docker_config(void)
{
	const char *dir = getenv("DOCKER_CONFIG");
	const char *home = getenv("HOME");

	if (dir && *dir)
		return settings_join(dir, "/config.json");
	if (home && *home)
		return settings_join(home, "/.docker/config.json");
	return NULL;
}

char *settings_auth_file(void)
{
	const char *file = getenv("REGISTRY_AUTH_FILE");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	auto_free char *own = NULL;

	if (file && *file)
		return settings_join(file, "");
	if (runtime && *runtime == '/')
		return settings_join(runtime, "/containers/auth.json");
	if (asprintf(&own, "/run/containers/%u/auth.json", (unsigned)geteuid()) < 0)
		abort();
	return steal_ptr(&own);
}

int settings_daemon(const char **out_url, const char **out_token, struct err *err)
{
	*out_url = *out_token = NULL;
	if (settings_variable("HEARTH_URL", out_url, err) < 0)
		return -1;
	return settings_variable("HEARTH_TOKEN", out_token, err) < 0 ? -1 : 0;
}

const char *settings_notify_socket(void)
{
	return getenv("NOTIFY_SOCKET");
}

const char *settings_search(void)
{
	const char *search = getenv("PATH");

	return search ? search : "";
}

int settings_log(struct err *err)
{
	const char *modules = getenv("HEARTH_LOG");

	if (!modules || !*modules || log_set_debug(modules))
		return 0;
	return err_set(err, ERR_INVALID,
		       "HEARTH_LOG: expected all, or some of layers, registry, sandbox, bake and "
		       "api with commas, found %s",
		       modules);
}

int settings_load(struct cli *cli, struct err *err)
{
	if (settings_log(err) < 0 || settings_config(cli, err) < 0 ||
	    settings_data_path(cli, err) < 0 || settings_programs(cli, err) < 0)
		return -1;
	return settings_map_bytes(cli, err);
}

int settings_role(struct cli *cli, struct err *err)
{
	if (settings_log(err) < 0 || settings_config(cli, err) < 0)
		return -1;
	return settings_programs(cli, err);
}

const char *settings_named(const char *name)
{
	return getenv(name);
}

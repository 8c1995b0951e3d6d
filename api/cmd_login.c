/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_login.c - `hearth login` and `hearth logout`: credentials for a registry. */
#include "api/human.h"
#include "api/inquiry.h"
#include "api/login_file.h"
#include "api/prompt.h"
#include "api/settings.h"
#include "registry/helper.h"
#include "registry/hub.h"

#include <string.h>

struct login {
	const struct cli *cli;
	struct str host;
	struct credentials credentials;
	json_t *kept; /* files and helpers that have them, or had */
};

/* HOST[:PORT], or any name of Docker Hub's. */
static int login_host(const struct cli *cli, struct reference *room, struct str *out,
		      struct err *err)
{
	const char *text = cli->arg_count > 0 ? cli->args[0] : HUB_HOST;
	auto_buf struct buf name = BUF_INIT(REFERENCE_TEXT_MAX);
	struct str host = str_of(text);
	struct err ignored;

	if (str_equal(host, STR(HUB_LOGIN)) || str_equal(host, STR("index.docker.io")))
		host = STR(HUB_HOST);
	if (buf_addf(&name, err, STR_FMT "/a", STR_ARG(host)) < 0)
		return -1;
	if (reference_parse(buf_str(&name), room, &ignored) < 0 ||
	    room->kind != REFERENCE_REGISTRY || !str_equal(room->host, host))
		return err_set(err, ERR_INVALID, "%s is no registry's: expected HOST[:PORT]", text);
	*out = room->host;
	return 0;
}

static int login_ask_user(struct login *login, struct err *err)
{
	auto_secret struct secret user = {0};

	if (login->credentials.user[0])
		return 0;
	if (prompt_line("Username", false, login->cli->cancel, &user, err) < 0)
		return -1;
	if (secret_bytes(&user).len >= sizeof(login->credentials.user))
		return err_set(err, ERR_INVALID, "Username: too long");
	(void)snprintf(login->credentials.user, sizeof(login->credentials.user), "%s",
		       secret_reveal(&user));
	return 0;
}

/* By the options, or from the person who is there. */
static int login_read(struct login *login, struct err *err)
{
	const struct cli *cli = login->cli;
	const char *user = cli_text(cli, "username");

	if (user && cli_has(cli, "password-stdin"))
		return access_login(cli, STR(""), &login->credentials, err);
	if (cli_has(cli, "password-stdin"))
		return err_set(err, ERR_INVALID, "--password-stdin needs --username NAME");
	if (!prompt_is_possible())
		return err_set(err, ERR_INVALID,
			       "there is no terminal to ask for a password on: give --username "
			       "NAME and --password-stdin");
	if (user && strlen(user) >= sizeof(login->credentials.user))
		return err_set(err, ERR_INVALID, "--username: too long");
	if (user)
		(void)snprintf(login->credentials.user, sizeof(login->credentials.user), "%s",
			       user);
	if (login_ask_user(login, err) < 0)
		return -1;
	return prompt_line("Password", true, cli->cancel, &login->credentials.password, err);
}

/* A wrong password is kept nowhere. */
static int login_try(const struct login *login, struct err *err)
{
	const struct inquiry inquiry = {
		.cli = login->cli, .host = login->host, .credentials = &login->credentials};
	int asked = inquiry_login(&inquiry, err);

	if (asked < 0 && err->kind == ERR_UNAUTHORIZED) {
		const struct err why = *err;

		return err_set(err, ERR_DENIED, "%s: check the user's name and the password",
			       why.text);
	}
	if (asked < 0)
		return -1;
	if (asked == 0)
		(void)fprintf(stderr, STR_FMT " asks for no credentials; they are kept unchecked\n",
			      STR_ARG(login->host));
	return 0;
}

static struct helper_spec login_helper(const struct login *login)
{
	return (struct helper_spec){
		.search = settings_search(), .host = login->host, .cancel = login->cli->cancel};
}

static void login_note(struct login *login, const struct login_file *file, const char *helper)
{
	(void)json_array_append_new(login->kept,
				    helper ? json_sprintf("docker-credential-%s", helper)
					   : json_string(file->path));
}

/* One file: what its helper keeps, docker marks there by an empty entry. */
static int login_keep(struct login *login, const char *path, struct err *err)
{
	auto_login_file struct login_file file = LOGIN_FILE_INIT;
	auto_buf struct buf text = BUF_WIPED(LOGIN_FILE_MAX);
	struct credentials *credentials = &login->credentials;
	const struct helper_spec helper = login_helper(login);
	int found;

	if (login_file_open(&file, path, true, err) < 0)
		return -1;
	found = credentials_keeper(buf_str(&file.text), login->host, credentials->helper, err);
	if (found < 0)
		return err_ctx(err, "%s", file.path);
	if (found == 1 && helper_store(&helper, credentials, err) < 0)
		return err_ctx(err, "%s", file.path);
	if (credentials_put(buf_str(&file.text), login->host, str_of(credentials->user),
			    found == 1 ? NULL : &credentials->password, &text, err) < 0)
		return err_ctx(err, "%s", file.path);
	login_note(login, &file, found == 1 ? credentials->helper : NULL);
	return login_file_replace(&file, buf_str(&text), err);
}

static int login_forget(struct login *login, const char *path, struct err *err)
{
	auto_login_file struct login_file file = LOGIN_FILE_INIT;
	auto_buf struct buf text = BUF_WIPED(LOGIN_FILE_MAX);
	const struct helper_spec helper = login_helper(login);
	char name[CREDENTIALS_HELPER_MAX];
	int found;

	if (login_file_open(&file, path, false, err) < 0)
		return -1;
	found = credentials_keeper(buf_str(&file.text), login->host, name, err);
	if (found == 1)
		found = helper_erase(&helper, name, err);
	if (found == 1)
		login_note(login, &file, name);
	if (found >= 0)
		found = credentials_del(buf_str(&file.text), login->host, &text, err);
	if (found < 0)
		return err_ctx(err, "%s", file.path);
	if (found == 0)
		return 0;
	login_note(login, &file, NULL);
	return login_file_replace(&file, buf_str(&text), err);
}

/* Every file that is meant; podman's own is only changed where somebody names it, or to forget. */
static int login_each(struct login *login, bool forget, struct err *err)
{
	int (*const one)(struct login *, const char *, struct err *) =
		forget ? login_forget : login_keep;
	const char *authfile = cli_text(login->cli, "authfile");
	auto_free char *docker = settings_docker_config();
	auto_free char *podman = settings_auth_file();
	const char *named = settings_named("REGISTRY_AUTH_FILE");

	if (authfile)
		return one(login, authfile, err);
	if (!docker && !forget && !(named && *named))
		return err_set(err, ERR_INVALID,
			       "no place for credentials: set HOME or "
			       "DOCKER_CONFIG, or give --authfile FILE");
	if (docker && one(login, docker, err) < 0)
		return -1;
	return forget || (named && *named) ? one(login, podman, err) : 0;
}

static void login_print(const struct login *login, const char *said, const char *nowhere)
{
	const json_t *name;
	size_t i;

	if (cli_has(login->cli, "json")) {
		AUTO(json) json_t *value = json_object();

		json_set(value, "registry", json_from_str(login->host));
		json_set_text(value, "user",
			      login->credentials.user[0] ? login->credentials.user : NULL);
		(void)json_object_set(value, "files", login->kept);
		human_json(value, stdout);
		return;
	}
	if (json_array_size(login->kept) == 0)
		(void)fprintf(stderr, "%s " STR_FMT "\n", nowhere, STR_ARG(login->host));
	json_array_foreach(login->kept, i, name)(void)
		fprintf(stderr, "%s " STR_FMT ": %s\n", said, STR_ARG(login->host),
			json_string_value(name));
}

static int login_run(struct cli *cli, struct err *err)
{
	struct reference room;
	AUTO(json) json_t *kept = json_array();
	struct login login = {.cli = cli, .kept = kept};
	int result;

	if (login_host(cli, &room, &login.host, err) < 0)
		return err_ctx(err, "login");
	result = login_read(&login, err);
	if (result == 0)
		result = login_try(&login, err);
	if (result == 0)
		result = login_each(&login, false, err);
	if (result == 0)
		login_print(&login, "logged in to", "");
	secret_done(&login.credentials.password);
	return result < 0 ? err_ctx(err, "login " STR_FMT, STR_ARG(login.host)) : 0;
}

static int logout_run(struct cli *cli, struct err *err)
{
	struct reference room;
	AUTO(json) json_t *kept = json_array();
	struct login login = {.cli = cli, .kept = kept};

	if (login_host(cli, &room, &login.host, err) < 0)
		return err_ctx(err, "logout");
	if (login_each(&login, true, err) < 0)
		return err_ctx(err, "logout " STR_FMT, STR_ARG(login.host));
	login_print(&login, "logged out of", "not logged in to");
	return 0;
}

#define LOGIN_OPTION_FILE                                                                    \
	{                                                                                    \
		"authfile", "FILE",                                                          \
			"this file alone, as podman has it; else Docker's config.json, and " \
			"REGISTRY_AUTH_FILE where that is set",                              \
			false                                                                \
	}

static const struct cli_option login_options[] = {
	{"username", "NAME", "who logs in; else the terminal is asked", false},
	{"password-stdin", NULL, "read the password from standard input", false},
	LOGIN_OPTION_FILE,
	ACCESS_OPTIONS_REGISTRY,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_login = {
	.name = "login",
	.arguments = "[REGISTRY]",
	.summary = "keep credentials for a registry, once it takes them",
	.detail =
		"REGISTRY is HOST[:PORT], docker.io by default. What is kept is found by hearth,\n"
		"docker, podman, buildah and skopeo. A helper that config.json names for the\n"
		"registry (credHelpers, credsStore) keeps it instead of the file. For a hearth\n"
		"daemon the password is a token (hearth token create), with any name.\n",
	.options = login_options,
	.option_count = sizeof(login_options) / sizeof(login_options[0]),
	.args_min = 0,
	.args_max = 1,
	.run = login_run,
};

static const struct cli_option logout_options[] = {
	LOGIN_OPTION_FILE,
	CLI_OPTION_JSON,
	CLI_OPTION_DATA,
	CLI_OPTION_HELP,
};

const struct cli_command cli_logout = {
	.name = "logout",
	.arguments = "[REGISTRY]",
	.summary = "forget the credentials for a registry",
	.detail = "They are removed from Docker's config.json, from podman's file and from the\n"
		  "helpers that these name.\n",
	.options = logout_options,
	.option_count = sizeof(logout_options) / sizeof(logout_options[0]),
	.args_min = 0,
	.args_max = 1,
	.run = logout_run,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/registries.h"

#include "api/access.h"

static void *registries_room(size_t count, size_t size)
{
	void *room = calloc(count + 1, size);

	if (!room)
		abort();
	return room;
}

static int registries_log_in(const struct cli *cli, const struct place_mirror *mirror,
			     const struct reference *reference, struct credentials *out,
			     struct err *err)
{
	auto_buf struct buf text = BUF_INIT(REFERENCE_TEXT_MAX);

	if (reference->kind != REFERENCE_REGISTRY || !str_equal(reference->host, mirror->host))
		return 0;
	if (places_format(mirror, reference, &text, err) < 0)
		return -1;
	return access_for(buf_str(&text), cli->cancel, out, err);
}

static int registries_add_mirror(const struct cli *cli, const struct config_mirror *config,
				 const struct reference *reference, struct registries *out,
				 struct err *err)
{
	struct credentials *login = &out->logins[out->login_count];
	struct place_mirror *mirror = &out->mirrors[out->login_count++];

	*mirror = (struct place_mirror){.host = str_of(config->host),
					.place = config->place,
					.plain_http = config->plain_http};
	if (registries_log_in(cli, mirror, reference, login, err) < 0)
		return err_ctx(err, "mirror " STR_FMT, STR_ARG(mirror->place));
	mirror->user = str_of(login->user);
	mirror->password = &login->password;
	return 0;
}

int registries_open(const struct cli *cli, struct str text, struct registries *out, struct err *err)
{
	const struct config *config = &cli->config;
	struct reference reference;

	if (reference_parse(text, &reference, err) < 0)
		return -1;
	out->insecure = registries_room(config->insecure.count, sizeof(*out->insecure));
	out->mirrors = registries_room(config->mirror_count, sizeof(*out->mirrors));
	out->logins = registries_room(config->mirror_count, sizeof(*out->logins));
	for (size_t i = 0; i < config->insecure.count; i++)
		out->insecure[i] = str_of(config->insecure.at[i]);
	for (size_t i = 0; i < config->mirror_count; i++) {
		if (registries_add_mirror(cli, &config->mirrors[i], &reference, out, err) < 0)
			return -1;
	}
	out->places = (struct places){out->mirrors, config->mirror_count, out->insecure,
				      config->insecure.count};
	return 0;
}

void registries_done(struct registries *registries)
{
	for (size_t i = 0; i < registries->login_count; i++)
		secret_done(&registries->logins[i].password);
	free(registries->insecure);
	free(registries->mirrors);
	free(registries->logins);
	*registries = (struct registries){0};
}

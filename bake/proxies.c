/* SPDX-License-Identifier: Apache-2.0 */
#include "bake/proxies.h"

#include "layers/base/json.h"

#include <stdio.h>

#define PROXIES_FILE_MAX ((size_t)1024 * 1024) /* what credentials are read from, too */
#define PROXIES_VALUE_MAX ((size_t)8192)

static const struct {
	const char *key;
	const char *names[2];
} proxies_known[] = {
	{"httpProxy", {"HTTP_PROXY", "http_proxy"}}, {"httpsProxy", {"HTTPS_PROXY", "https_proxy"}},
	{"ftpProxy", {"FTP_PROXY", "ftp_proxy"}},    {"noProxy", {"NO_PROXY", "no_proxy"}},
	{"allProxy", {"ALL_PROXY", "all_proxy"}},
};

static int proxies_add(struct proxies *proxies, const char *name, struct str value, struct err *err)
{
	if (value.len > PROXIES_VALUE_MAX)
		return err_set(err, ERR_LIMIT, "%s of more than %zu bytes", name,
			       PROXIES_VALUE_MAX);
	if (asprintf(&proxies->at[proxies->count], "%s=" STR_FMT, name, STR_ARG(value)) < 0)
		abort();
	proxies->count++;
	return 0;
}

static int proxies_read_default(const json_t *object, struct proxies *out, struct err *err)
{
	for (size_t i = 0; i < sizeof(proxies_known) / sizeof(proxies_known[0]); i++) {
		struct str value;
		int found = json_get_string(object, "proxies.default", proxies_known[i].key, &value,
					    err);

		if (found < 0)
			return -1;
		for (size_t j = 0; j < 2 && found == 1 && value.len > 0; j++) {
			if (proxies_add(out, proxies_known[i].names[j], value, err) < 0)
				return -1;
		}
	}
	return 0;
}

int proxies_read(struct str config, struct proxies *out, struct err *err)
{
	auto_proxies struct proxies made = {.count = 0};
	AUTO(json) json_t *document = NULL;
	json_t *proxies = NULL;
	json_t *usual = NULL;
	int found;

	if (json_parse(config, PROXIES_FILE_MAX, &document, err) < 0)
		return -1;
	found = json_get_object(document, "", "proxies", &proxies, err);
	if (found == 1)
		found = json_get_object(proxies, "proxies", "default", &usual, err);
	if (found < 0 || (found == 1 && proxies_read_default(usual, &made, err) < 0))
		return -1;
	*out = made;
	made = (struct proxies){.count = 0};
	return 0;
}

void proxies_done(struct proxies *proxies)
{
	for (size_t i = 0; i < proxies->count; i++)
		free(proxies->at[i]);
	proxies->count = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/url_priv.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <strings.h>

DEFINE_AUTO(curlu, CURLU *, curl_url_cleanup);
DEFINE_AUTO(curl_text, char *, curl_free);

static CURLU *url_handle(void)
{
	CURLU *handle = curl_url();

	if (!handle)
		abort();
	return handle;
}

int url_parse(const char *text, struct url *out, struct err *err)
{
	AUTO(curlu) CURLU *handle = url_handle();
	AUTO(curl_text) char *scheme = NULL;
	AUTO(curl_text) char *host = NULL;
	AUTO(curl_text) char *port = NULL;
	unsigned number = 0;
	struct url url;

	if (curl_url_set(handle, CURLUPART_URL, text, 0) != CURLUE_OK ||
	    curl_url_get(handle, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(handle, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(handle, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
	    strlen(host) >= sizeof(url.host))
		return err_set(err, ERR_REMOTE, "not a URL: %s", text);
	url.secure = strcmp(scheme, "https") == 0;
	if (!url.secure && strcmp(scheme, "http") != 0)
		return err_set(err, ERR_REMOTE, "not an HTTP URL: %s", text);
	for (size_t i = 0; i <= strlen(host); i++)
		url.host[i] = (char)(host[i] >= 'A' && host[i] <= 'Z' ? host[i] + 32 : host[i]);
	for (const char *p = port; *p; p++)
		number = number * 10 + (unsigned)(*p - '0'); /* libcurl saw that it fits */
	url.port = number;
	*out = url;
	return 0;
}

bool url_same_origin(const struct url *a, const struct url *b)
{
	return a->secure == b->secure && a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* The address in network order, four or sixteen bytes; 0 for a name. */
static size_t url_host_bytes(const char *host, unsigned char out[static 16])
{
	char bare[URL_HOST_MAX];
	size_t len = strlen(host);

	if (inet_pton(AF_INET, host, out) == 1)
		return 4;
	if (len < 2 || len >= sizeof(bare) || host[0] != '[' || host[len - 1] != ']')
		return 0;
	memcpy(bare, host + 1, len - 2);
	bare[len - 2] = '\0';
	if (inet_pton(AF_INET6, bare, out) != 1)
		return 0;
	/* ::ffff:a.b.c.d is a.b.c.d */
	if (memcmp(out, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0) {
		memmove(out, out + 12, 4);
		return 4;
	}
	return 16;
}

bool url_host_is_address(const char *host)
{
	unsigned char address[16];

	return url_host_bytes(host, address) > 0;
}

bool url_host_is_loopback(const char *host)
{
	static const unsigned char one[16] = {[15] = 1};
	unsigned char address[16];
	size_t len = url_host_bytes(host, address);

	if (len == 0)
		return strcasecmp(host, "localhost") == 0;
	return len == 4 ? address[0] == 127 : memcmp(address, one, sizeof(one)) == 0;
}

static bool v4_is_private(const unsigned char *a)
{
	return a[0] == 0 || a[0] == 10 || (a[0] == 172 && (a[1] & 0xf0) == 16) ||
	       (a[0] == 192 && a[1] == 168) || (a[0] == 169 && a[1] == 254) ||
	       (a[0] == 100 && (a[1] & 0xc0) == 64);
}

bool url_host_is_link_local(const char *host)
{
	unsigned char address[16];
	size_t len = url_host_bytes(host, address);

	if (len == 4)
		return address[0] == 169 && address[1] == 254;
	return len == 16 && address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

bool url_host_is_private(const char *host)
{
	unsigned char address[16];
	size_t len = url_host_bytes(host, address);

	if (url_host_is_loopback(host))
		return true;
	if (len == 4)
		return v4_is_private(address);
	/* unique local fc00::/7, unspecified :: */
	return len == 16 && ((address[0] & 0xfe) == 0xfc || url_host_is_link_local(host) ||
			     memcmp(address, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16) == 0);
}

/* 0.0.0.0 and :: are this machine, too, and so is every name of localhost's. */
static bool url_host_leads_home(const char *host)
{
	static const unsigned char none[16];
	static const char *const ends[] = {"localhost.", ".localhost", ".localhost."};
	unsigned char address[16];
	size_t len = url_host_bytes(host, address);
	size_t host_len = strlen(host);

	if (url_host_is_loopback(host))
		return true;
	if (len > 0)
		return len == 4 ? address[0] == 0 : memcmp(address, none, sizeof(none)) == 0;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end_len = strlen(ends[i]);

		if (host_len >= end_len && strcasecmp(host + host_len - end_len, ends[i]) == 0)
			return true;
	}
	return false;
}

enum url_nearness url_host_nearness(const char *host)
{
	if (url_host_leads_home(host))
		return URL_HOME;
	return url_host_is_private(host) ? URL_PRIVATE : URL_PUBLIC;
}

int url_join(const char *base, struct str text, struct buf *out, struct err *err)
{
	AUTO(curlu) CURLU *handle = url_handle();
	AUTO(curl_text) char *whole = NULL;
	auto_buf struct buf copy = BUF_INIT(out->max);

	if (buf_add(&copy, text, err) < 0)
		return -1;
	if (memchr(copy.ptr, '\0', copy.len) ||
	    curl_url_set(handle, CURLUPART_URL, base, 0) != CURLUE_OK ||
	    curl_url_set(handle, CURLUPART_URL, copy.ptr, 0) != CURLUE_OK ||
	    curl_url_get(handle, CURLUPART_URL, &whole, 0) != CURLUE_OK)
		return err_set(err, ERR_REMOTE, "not a URL: " STR_FMT, STR_ARG(text));
	return buf_add(out, str_of(whole), err);
}

int url_add_query(struct buf *url, const char *name, struct str value, struct err *err)
{
	AUTO(curlu) CURLU *handle = url_handle();
	AUTO(curl_text) char *whole = NULL;
	auto_buf struct buf pair = BUF_INIT(url->max);

	if (buf_addf(&pair, err, "%s=" STR_FMT, name, STR_ARG(value)) < 0)
		return -1;
	if (curl_url_set(handle, CURLUPART_URL, url->ptr, 0) != CURLUE_OK ||
	    curl_url_set(handle, CURLUPART_QUERY, pair.ptr, CURLU_APPENDQUERY | CURLU_URLENCODE) !=
		    CURLUE_OK ||
	    curl_url_get(handle, CURLUPART_URL, &whole, 0) != CURLUE_OK)
		return err_set(err, ERR_REMOTE, "not a URL: %s", url->ptr);
	buf_clear(url);
	return buf_add(url, str_of(whole), err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/network_rules_priv.h"

#include "sandbox/resolver_priv.h"

#include <nftables/libnftables.h>

DEFINE_AUTO(nft, struct nft_ctx *, nft_ctx_free);

#define TEXT_OF(value) TEXT_OF_(value)
#define TEXT_OF_(value) #value
#define SELF RESOLVER_SELF
#define LISTENER NETWORK_RULES_LISTENER
#define PORT TEXT_OF(NETWORK_RULES_PORT)

/*
 * Replies are not redirected: they go to the machine's own address or, where a
 * client bound another one, belong to a socket that is not transparent, and
 * tproxy lets those be.
 *
 * Loading takes about a millisecond, of which libnftables spends most.
 */
static const char network_rules[] =
	"table ip hearth {\n"
	"	chain arriving {\n"
	"		type filter hook prerouting priority mangle\n"
	"		ip daddr 127.0.0.0/8 accept\n"
	"		ip daddr " SELF " accept\n"
	"		meta l4proto tcp tproxy to " LISTENER ":" PORT " accept\n"
	"	}\n"
	"	chain leaving {\n"
	"		type filter hook output priority filter\n"
	"		ip daddr " LISTENER " reject with tcp reset\n"
	"		ip daddr 127.0.0.0/8 accept\n"
	"		ip daddr " SELF " accept\n"
	"		meta l4proto != tcp reject with icmp admin-prohibited\n"
	"		ip daddr 0.0.0.0/8 reject with tcp reset\n"
	"		ip daddr 169.254.0.0/16 reject with tcp reset\n"
	"		ip daddr 224.0.0.0/3 reject with tcp reset\n"
	"	}\n"
	"}\n";

int network_rules_load(struct err *err)
{
	AUTO(nft) struct nft_ctx *nft = nft_ctx_new(NFT_CTX_DEFAULT);
	const char *why;

	if (!nft)
		return err_set(err, ERR_UNSUPPORTED, "nftables is not available");
	(void)nft_ctx_buffer_error(nft); /* instead of our standard error */
	if (nft_run_cmd_from_buffer(nft, network_rules) == 0)
		return 0;
	why = nft_ctx_get_error_buffer(nft);
	return err_set(err, ERR_UNSUPPORTED,
		       "nftables (is nft_tproxy among the kernel's modules?): %.*s",
		       (int)strcspn(why, "\n"), why);
}

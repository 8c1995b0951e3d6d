#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# snippets.sh - examples/repo-bot.mjs as it is, against a daemon: a registry of ours stands in for ghcr.io, and a git
# server for github.com. The units of examples/systemd are judged by systemd.
. "$(dirname "$0")/lib.sh"

bot() # runs the example
{
	HEARTH_URL=$url HEARTH_TOKEN=$token node "$root/examples/repo-bot.mjs"
}

debian_base
start_registry
start_git
git clone -q --bare "$work/git/handbook.git" "$work/git/acme/handbook.git"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=github.com -addext subjectAltName=DNS:github.com \
	-keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
serve "$root/examples/serve-git.py" "$work/git" "$work/git/tls" "$work/cert.pem" "$work/key.pem"
wait_for 60 test -e "$work/git/tls"

# The base trusts that server.
mkdir "$work/context"
cp "$work/cert.pem" "$work/context/"
spec "$work/base.json" "oci:$debian:bookworm-slim" "COPY cert.pem /etc/ssl/" "ENV GIT_SSL_CAINFO=/etc/ssl/cert.pem"
bake "$work/base.json" --context "$work/context" --output "oci:$work/base:1.4" >/dev/null
push "$work/base:1.4" acme/agent-base:1.4

jq -n --arg registry "$registry" --arg git "127.0.0.1:$(cat "$work/git/tls")" '{
	registry: {mirrors: {"ghcr.io": ["http://\($registry)"]}, insecure: [$registry]},
	egress: {hosts: {"github.com": $git}}}' >"$work/hearth.json"
export HEARTH_CONFIG=$work/hearth.json
start_daemon
bot >"$work/said" 2>"$work/warned" || cat "$work/said" "$work/warned" "$work/daemon.log"
holds "the spec becomes a version" "$(cat "$work/said")" '^repo-bot version 1 is new$'
holds "which is waited for until it has an image" "$(cat "$work/said")" '^its image is ready: sha256:[0-9a-f]{64}$'
holds "and opens a session" "$(cat "$work/said")" '^session ses_[0-9a-z]* is open on version 1$'
holds "a provider that this host cannot run is warned of" "$(cat "$work/warned")" '^warning: .*modal'
hearth export repo-bot:1 "oci:$work/image:1" >/dev/null 2>&1
unpack "$work/image:1" "$work/bundle"
same "the clone is in the image" "$(cat "$work/bundle/rootfs/workspace/README.md")" "# Handbook"

# What the clone reads moves, and the spec does not.
git -C "$work/git/checkout" -c user.name=t -c user.email=t@example.test commit -q --allow-empty -m 'handbook: go on'
git -C "$work/git/checkout" push -q "$work/git/acme/handbook.git" HEAD:main
holds "the same spec again appends none" "$(bot 2>/dev/null)" '^repo-bot version 1 was there already$'
before=$(hearth status repo-bot --json | jq -r .digest)
moved=$(hearth rebake repo-bot --from-step 2 --wait 2>/dev/null)
holds "a rebake takes in what moved" "$moved" '^sha256:'
check "which makes another image" test "$moved" != "$before"

for unit in "$root"/examples/systemd/*; do
	sed "s|/usr/bin/hearth|$HEARTH|" "$unit" >"$work/$(basename "$unit")"
done
cp "$work/hearth-rebake@.service" "$work/hearth-rebake@repo-bot.service"
cp "$work/hearth-rebake@.timer" "$work/hearth-rebake@repo-bot.timer"
same "systemd has nothing to say about the units" "$(cd "$work" && SYSTEMD_UNIT_PATH="$work:" systemd-analyze verify --man=no \
	./hearth.service ./hearth-rebake@repo-bot.service ./hearth-rebake@repo-bot.timer 2>&1)" ""
stop_daemon
nothing_left "nothing is left over"
finish

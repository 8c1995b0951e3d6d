#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# browser.sh - the client in a page of another origin, which Chromium has open: browser.html says what it does there.
. "$(dirname "$0")/lib.sh"

command -v chromium >/dev/null || skip "needs chromium"

open_page() # PATH
{
	serve chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--user-data-dir="$work/profile" "http://127.0.0.1:$port/$1#$url,$token"
	browser=${servers[-1]}
}

seen() # what the page has said, once it is done
{
	ask "/v1/agents.get?id=seen" | head -n 1 | jq -er .spec.system
}

hearth import "$(tiny_base)" --tag base:1 >/dev/null 2>&1
serve_files "$root"
jq -n --arg origin "http://127.0.0.1:$port" '{origins: [$origin]}' >"$work/hearth.json"
start_daemon --config "$work/hearth.json"
open_page tests/e2e/browser.html
wait_for 120 seen || tail -n 20 "$work/servers.log"
said=$(seen)
holds "an answer of 401 is an Unauthorized" "$said" '^stranger: true$'
holds "an agent is synced from a page" "$said" '^synced: page 1 baking$'
holds "the page waits for the image by its ETag" "$said" '^waited: ready$'
holds "and opens a session" "$said" '^opened: on 1$'
holds "one that comes early is told AgentNotReady" "$said" '^early: baking$'
holds "a bake is cancelled" "$said" '^cancelled: failed$'
holds "after which there is nothing to come" "$said" '^too late: failed$'
holds "events are iterated from the first" "$said" '^events: agent.created version.appended image.baking image.ready$'
holds "a context is sent as a blob" "$said" '^blob: sha256:$'
holds "and as a stream" "$said" '^stream: sha256:$'
holds "which a directory is not, there" "$said" '^directory: NotSupported: '
kill "$browser"
stop_daemon
nothing_left "nothing is left over"
finish

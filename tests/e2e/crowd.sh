#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A thousand clients at once, who wait, stall or read on: others are served, and nothing stays of them.
. "$(dirname "$0")/lib.sh"

start_daemon
ask /v1/agents.sync -d '{"slug": "none", "model": {}, "system": ""}' >/dev/null
private() # KiB of memory that are the daemon's own
{
	awk '/^Anonymous:/ {print $2}' "/proc/$daemon/smaps_rollup"
}
open_files()
{
	find "/proc/$daemon/fd" -mindepth 1 | wc -l
}
is_small() # FILES KIB
{
	[ "$(open_files)" -le "$1" ] && [ "$(private)" -le "$2" ]
}
check "clients that say nothing hold up nobody" "$here/crowd.py" "$url" "$token" idle
files=$(($(open_files) + 8)) memory=$(($(private) + 8192))
if ! prlimit --as=2000000000 "$HEARTH" --version >/dev/null 2>&1; then # a sanitizer keeps what is freed
	memory=$((memory * 1024))
fi
check "nor such as never end their headers" "$here/crowd.py" "$url" "$token" slow
check "nor such as wait for a change" "$here/crowd.py" "$url" "$token" poll
check "nor such as follow events from the first one" "$here/crowd.py" "$url" "$token" stream
check "nor such as look for events that there are none of" "$here/crowd.py" "$url" "$token" search
check "nor such as stall a context" "$here/crowd.py" "$url" "$token" upload
check "nor such as stall a spec" "$here/crowd.py" "$url" "$token" body
check "no descriptor and no memory of them stays" wait_for 60 is_small "$files" "$memory"
check "their files are gone, too" test -z "$(ls "$HEARTH_DATA/tmp")"
"$here/crowd.py" "$url" "$token" poll 2>/dev/null &
crowd=$!
wait_for 60 sh -c "curl -fsS -H 'Authorization: Bearer $token' '$url/metrics' | grep -qE '^hearth_requests_waiting [1-9][0-9][0-9]'" || true
stop_daemon
same "a crowd does not hold up its end" "$status" 0
wait "$crowd" || true
nothing_left "nothing is left over"
finish

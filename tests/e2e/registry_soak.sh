#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Push, pull, mount and delete, all at once, beside collections: what was answered is never unknown, and the space
# comes back.
#
# SEED repeats what is asked, SOAK_SECONDS is for how long.
. "$(dirname "$0")/lib.sh"

lasts=${SOAK_SECONDS:-15}
[ "${HEARTH_LONG:-0}" = 0 ] || lasts=${SOAK_SECONDS:-600}
export SEED=${SEED:-$(($(date +%s) % 32768))} TOKEN
echo "SEED=$SEED SOAK_SECONDS=$lasts"

clients=$here/registry_clients.py
upstream=$(free_port)
serve "$clients" upstream "$upstream"
wait_for 60 curl -fsS "http://127.0.0.1:$upstream/v2/"
echo "{\"mirror\": {\"upstreams\": {\"mirrored.test\": {\"url\": \"http://127.0.0.1:$upstream\"}}}}" >"$work/hearth.json"
start_daemon --config "$work/hearth.json"
TOKEN=$token

count() # WHAT: lines of the log that say so
{
	grep -c "\"what\": \"$1\"" "$work/log" || true
}

: >"$work/log"
MIRRORED=mirrored.test/acme/one "$clients" soak "$url" "$work/log" >"$work/wrong" 2>&1 &
soak=$!
servers+=("$soak")
end=$((SECONDS + lasts)) collections=0 failed=0
while { [ "$SECONDS" -lt "$end" ] || [ "$(count deleted)" = 0 ]; } && kill -0 "$soak" 2>/dev/null; do
	hearth gc --all >"$work/gc.log" 2>&1 || failed=$((failed + 1))
	collections=$((collections + 1))
done
touch "$work/log.stop"
wait "$soak" || echo "the clients end with $?" >>"$work/wrong"
echo "$collections collections; $(count put) images pushed, $(count deleted) deleted, $(count blob) blobs"
same "no answer was wrong" "$(head -n 20 "$work/wrong")" ""
same "every collection came to its end" "$failed" 0
check "images were pushed" test "$(count put)" -gt 0
check "and deleted" test "$(count deleted)" -gt 0
same "what is left can be pulled whole, and what was deleted is gone" "$("$clients" check "$url" "$work/log" 2>&1)" ""
check "the store is whole" hearth fsck

# All of it goes, and so does its space.
same "everything can be deleted" "$("$clients" empty "$url" "$work/log" 2>&1)" ""
hearth gc --all >"$work/gc.log"
same "then what is mirrored is all that takes space" \
	"$(hearth du --json | jq .chunks.bytes)" "$("$clients" mirrored "$url" "$work/log")"
stop_daemon
same "the daemon stops as it should" "$status" 0
check "the store is whole" hearth fsck
nothing_left "nothing is left over"
finish

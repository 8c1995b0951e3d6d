#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 of the daemon while it is pushed to, fills its mirror and is collected: nothing that was answered is lost.
#
# SEED repeats the moments, ROUNDS is how many there are.
. "$(dirname "$0")/lib.sh"

rounds=${ROUNDS:-6}
[ "${HEARTH_LONG:-0}" = 0 ] || rounds=${ROUNDS:-100}
RANDOM=${SEED:=$(($(date +%s) % 32768))}
export SEED TOKEN
echo "SEED=$SEED ROUNDS=$rounds"

clients=$here/registry_clients.py
upstream=$(free_port)
serve "$clients" upstream "$upstream"
wait_for 60 curl -fsS "http://127.0.0.1:$upstream/v2/"
echo "{\"mirror\": {\"upstreams\": {\"mirrored.test\": {\"url\": \"http://127.0.0.1:$upstream\"}}}}" >"$work/hearth.json"
listen=127.0.0.1:$(free_port)
begin()
{
	start_daemon --config "$work/hearth.json" --grace 1
	TOKEN=$token
}

count() # WHAT: lines of the log that say so
{
	grep -c "\"what\": \"$1\"" "$work/log" || true
}

begin
touch "$work/log" "$work/lost"
KILLED=1 MIRRORED=mirrored.test/acme/one "$clients" soak "$url" "$work/log" >"$work/wrong" 2>&1 &
soak=$!
servers+=("$soak")
collect() # until the clients end; a collection is killed now and then, too
{
	while kill -0 "$soak" 2>/dev/null; do
		timeout -s KILL "0.$((RANDOM % 9 + 1))" "$HEARTH" gc --all >/dev/null 2>&1 || true
	done
}
collect 2>/dev/null &
collector=$!
servers+=("$collector")

# On a slow machine until something was pushed.
for ((round = 1; round <= rounds || (round <= 10 * rounds && $(count put) == 0); round++)); do
	picked=$((RANDOM % 2000))
	sleep "$((picked / 1000)).$(printf '%03d' $((picked % 1000)))"
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null || true
	begin
	NEWEST=20 KILLED=1 "$clients" check "$url" "$work/log" >>"$work/lost" 2>&1
	((round % 10)) || echo "$round kills: $(count put) images"
done
touch "$work/log.stop"
wait "$soak" || echo "the clients end with $?" >>"$work/wrong"
wait "$collector" || true
same "the newest images are whole after each of $((round - 1)) kills" "$(head -n 20 "$work/lost")" ""
same "no answer was wrong" "$(head -n 20 "$work/wrong")" ""
echo "$(count put) images pushed, $(count deleted) deleted"
check "images were pushed" test "$(count put)" -gt 0
same "all that was answered is still so" "$("$clients" check "$url" "$work/log" 2>&1)" ""
check "the store is whole" hearth fsck
stop_daemon
same "the daemon stops as it should" "$status" 0
check "the store is whole without it, too" hearth fsck
nothing_left "nothing is left over"
finish

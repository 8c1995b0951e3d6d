#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 at random moments of a daemon that is asked from all sides: what it said stays true.
#
# SEED repeats the moments, ROUNDS is how many there are.
. "$(dirname "$0")/lib.sh"

rounds=${ROUNDS:-8}
[ "${HEARTH_LONG:-0}" = 0 ] || rounds=${ROUNDS:-100}
RANDOM=${SEED:=$(($(date +%s) % 32768))}
echo "SEED=$SEED ROUNDS=$rounds"

agent() # SLUG N: its spec; every step but the first notes that it begins, in a cache that outlives it
{
	jq -nc --arg slug "$1" --arg n "$1-$2" --arg mount "--mount=type=cache,id=begun,target=/begun" '{$slug,
		model: {provider: "gateway", model: "m"}, system: "s", sandbox: {image: {base: "base:1", steps: ["ENV N=\($n)",
		"RUN \($mount) echo 1 $N >>/begun/log; echo $N >/n", "RUN \($mount) echo 2 $N >>/begun/log; sleep 0.1",
		"RUN \($mount) echo 3 $N >>/begun/log; cat /n"]}}}'
}

answer() # PATH [CURL OPTION...]: the body, if the daemon that is there now said yes
{
	local said url
	url=$(cat "$work/url")
	said=$(ask "$@" 2>/dev/null) && [ "$(tail -n 1 <<<"$said")" = 200 ] && head -n -1 <<<"$said"
}

get() # PATH [CURL OPTION...]: of a daemon that nobody kills
{
	ask "$@" | head -n -1
}

# The clients. Each goes on until it is told to stop, and writes down what it was answered.
until_stopped() # COMMAND...
{
	until [ -e "$work/stop" ]; do
		"$@" || sleep 0.05
	done
}

sync_one() # SLUG: another version, then wait for its image
{
	local said
	n=$((${n:-0} + 1))
	said=$(answer /v1/agents.sync -d "$(agent "$1" "$n")") || return
	jq -c --arg n "$1-$n" '{slug, id, version, bakeId, n: $n}' <<<"$said" >>"$work/synced.$1"
	answer "/v1/agents.imageStatus?id=$1&wait=2" >/dev/null
}

rebake_one()
{
	answer /v1/agents.rebake -d '{"id":"again"}' | jq -er .bakeId >>"$work/rebaked" && sleep 0.3
}

create_one()
{
	answer /v1/sessions.create -d '{"agent":"plain"}' | jq -er .id >>"$work/sessions" && sleep 0.1
}

poll_one()
{
	local etag
	etag=$(answer '/v1/agents.imageStatus?id=again' -i | tr -d '\r' | sed -n 's/^ETag: //p')
	[ -n "$etag" ] && answer '/v1/agents.imageStatus?id=again&wait=5' -H "If-None-Match: $etag" >/dev/null
}

whole_events() # of a stream that may have been cut: their data
{
	awk '/^id: /{id = 1} /^data: /{data = substr($0, 7)} /^$/{if (id) print data; id = 0}'
}

follow_events() # from behind the last that was seen
{
	curl -sSN -m 10 -H "Authorization: Bearer $token" \
		"$(cat "$work/url")/v1/events.stream?after=$(tail -n 1 "$work/seen" | jq -r '.id // 0')" 2>/dev/null >"$work/stream" || true
	[ ! -s "$work/stream" ] || whole_events <"$work/stream" >>"$work/seen"
	sleep 0.05
}

begin()
{
	start_daemon --grace 1
	echo "$url" >"$work/url.new"
	mv "$work/url.new" "$work/url"
}

has_version() # LINE of synced.*: the daemon has it as it was sent
{
	local id version n
	read -r id version n < <(jq -r '"\(.id) \(.version) \(.n)"' <<<"$1")
	[ "$(get "/v1/agents.get?id=$id&version=$version" | jq -r '.spec.sandbox.image.steps[0]')" = "ENV N=$n" ]
}

is_settled() # SLUG VERSION
{
	get "/v1/agents.imageStatus?id=$1&version=$2" | jq -e '.status != "baking" and .rebake.status != "baking"'
}

hearth import "$(tiny_base)" --tag base:1 >/dev/null 2>&1
slugs=(a b c)
echo '{}' >"$work/seen"
touch "$work/rebaked" "$work/sessions"
begin
get /v1/agents.sync -d '{"slug":"plain"}' >/dev/null
get /v1/agents.sync -d "$(agent again 0 | jq -c '.sandbox.image.steps = ["RUN cat /proc/sys/kernel/random/uuid >/id", "RUN sleep 0.1"]')" >/dev/null
clients=()
for slug in "${slugs[@]}"; do
	touch "$work/synced.$slug"
	until_stopped sync_one "$slug" &
	clients+=($!)
done
for one in rebake_one create_one poll_one poll_one follow_events; do
	until_stopped "$one" &
	clients+=($!)
done
servers+=("${clients[@]}")

lost=0
for ((round = 1; round <= rounds; round++)); do
	picked=$((RANDOM % 2000))
	((RANDOM % 4)) || picked=$((picked / 20)) # while it still takes up what was there
	sleep "$((picked / 1000)).$(printf '%03d' $((picked % 1000)))"
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null || true
	for slug in "${slugs[@]}"; do
		tail -n 1 "$work/synced.$slug"
	done >"$work/last"
	begin
	while read -r line; do
		has_version "$line" || { lost=$((lost + 1)); echo "round $round: $line is lost"; }
	done <"$work/last"
	((round % 10)) || echo "$round kills: $(cat "$work"/synced.* | wc -l) versions"
done
touch "$work/stop"
wait "${clients[@]}" || true
same "what was synced last is there after each of $rounds kills" "$lost" 0

cat "$work"/synced.* >"$work/synced"
check "versions were synced meanwhile" test -s "$work/synced"
check "and rebakes asked for" test -s "$work/rebaked"
check "and sessions created" test -s "$work/sessions"
echo "$(wc -l <"$work/synced") syncs, $(sort -u "$work/rebaked" | wc -l) rebakes, $(wc -l <"$work/sessions") sessions were acknowledged"
lost=0
while read -r line; do
	has_version "$line" || lost=$((lost + 1))
done <"$work/synced"
same "every version that was acknowledged is there as it was sent" "$lost" 0

# All of it comes to an end, and to the right one.
wait_for 60 is_settled again 1 || not_ok "rebakes end" "$(get '/v1/agents.imageStatus?id=again')"
for slug in "${slugs[@]}"; do
	latest=$(get "/v1/agents.get?id=$slug" | jq -r .version)
	for ((version = 1; version <= latest; version++)); do
		wait_for 60 is_settled "$slug" "$version" || true
		get "/v1/agents.imageStatus?id=$slug&version=$version"
		echo
	done
	n=$(get "/v1/agents.get?id=$slug" | jq -r '.spec.sandbox.image.steps[0] | ltrimstr("ENV N=")')
	spec "$work/look.json" "localhost/$slug:$latest" 'RUN cat /n'
	hearth bake "$work/look.json" >"$work/look" 2>&1 || true
	holds "the image of $slug is that of its latest version" "$(cat "$work/look")" "(^|[^0-9a-z-])$n\$"
done >"$work/statuses"
grep -E '^(ok|FAILED): ' "$work/statuses"
same "every version has its image" "$(grep '^{' "$work/statuses" | jq -c 'select(.status != "ready")')" ""
# An agent's older bakes are forgotten once they have ended; the journal below knows of all.
unended=$(sort -u "$work/rebaked" | tail -n 10 | while read -r id; do get "/v1/bakes.get?id=$id" | jq -c 'select(.state != "ready" and .state != "unchanged")'; done)
same "the last rebakes that were acknowledged have come to an end" "$unended" ""

# The journal has all of it, once.
get '/v1/events.stream?after=0&follow=false' | whole_events >"$work/events"
events() # FILTER: of all events
{
	jq -sr "$1" "$work/events"
}
same "events are numbered without holes" "$(events '[.[].id | tonumber] == [range(1; length + 1)]')" true
sed 1d "$work/seen" >"$work/seen.events"
check "a stream has shown events meanwhile" test -s "$work/seen.events"
same "each that a stream has shown is there, once, in its place" \
	"$(cat "$work/seen.events")" "$(head -n "$(wc -l <"$work/seen.events")" "$work/events")"
same "every version has one event" \
	"$(jq -r '"\(.id) \(.version)"' "$work/synced" | sort | comm -23 - <(events '.[] | select(.type == "version.appended") | "\(.agentId) \(.version)"' | sort))" ""
same "and none has two" "$(events '.[] | select(.type == "version.appended") | "\(.agentId) \(.version)"' | sort | uniq -d)" ""
same "every session has one event" \
	"$(sort "$work/sessions" | comm -23 - <(events '.[] | select(.type == "session.created") | .sessionId' | sort))" ""
same "and none has two" "$(events '.[] | select(.type == "session.created") | .sessionId' | sort | uniq -d)" ""
same "no bake begins or ends twice" "$(events '.[] | select(.bakeId) | "\(.bakeId) \(.type)"' | sort | uniq -d)" ""
begun=$(events '.[] | select(.type | test("baking$")) | .bakeId' | sort)
same "every rebake that was acknowledged has begun" "$(sort -u "$work/rebaked" | comm -23 - <(echo "$begun"))" ""
same "and every bake that begun has ended" \
	"$(comm -23 <(echo "$begun") <(events '.[] | select(.type | test("^image.(ready|rebaked|unchanged|failed)$")) | .bakeId' | sort -u))" ""

# A step is kept before the next one begins, so it never begins again after that.
spec "$work/look.json" base:1 "RUN --mount=type=cache,id=begun,target=/begun cat /begun/log >/log"
hearth bake "$work/look.json" --output "oci:$work/look.oci:x" >/dev/null 2>&1
unpack "$work/look.oci:x" "$work/unpacked"
begun=$work/unpacked/rootfs/log
check "steps have noted that they began" test "$(wc -l <"$begun")" -ge "$(wc -l <"$work/synced")"
same "no step that was done is done twice" "$(awk '$1 < at[$2] {print} {at[$2] = $1}' "$begun")" ""
echo "$(wc -l <"$begun") steps begun, $(sort "$begun" | uniq -d | wc -l) taken up again"

stop_daemon
same "the daemon stops as it should" "$status" 0
check "the store is whole" hearth fsck
nothing_left "nothing is left over"
finish

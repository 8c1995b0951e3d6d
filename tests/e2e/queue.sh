#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# queue.sh - agents are synced and baked behind their back, by processes; the plane is killed meanwhile.
. "$(dirname "$0")/lib.sh"
: "${PLANE:?is the daemon without its front end}"
ROUNDS=${ROUNDS:-12} SEED=${SEED:-$RANDOM}
RANDOM=$SEED
echo "seed $SEED, $ROUNDS kills"

begin() # [PARALLEL]: starts a plane; sets plane to its process
{
	coproc PLANE_IO { exec "$PLANE" "$HEARTH" "$HEARTH_DATA" "${1:-2}" 2>>"$work/plane.log"; }
	plane=$PLANE_IO_PID
	exec {in}>&"${PLANE_IO[1]}" {out}<&"${PLANE_IO[0]}"
	servers+=("$plane")
}

call() # CALL ARGUMENT...: prints the answer
{
	local line
	echo "$*" >&"$in"
	IFS= read -r line <&"$out"
	printf '%s\n' "$line"
}

tell() # CALL ARGUMENT...: whoever is killed gives no answer
{
	echo "$*" >&"$in"
}

end() # SIGNAL
{
	kill "-$1" "$plane" 2>/dev/null || true
	wait "$plane" 2>/dev/null || true
	exec {in}>&- {out}<&-
}

agent() # FILE SLUG BASE STEP...: an agent's spec
{
	local file=$1 slug=$2
	shift 2
	spec "$file.image" "$@"
	jq --arg slug "$slug" '{$slug, model: {provider: "gateway", model: "m"}, system: "s", sandbox: {image: .}}' "$file.image" >"$file"
}

said() # FILTER JSON
{
	jq -r "$1" <<<"$2"
}

is_ready() # AGENT VERSION
{
	[ "$(said .status "$(call status "$1" "$2")")" = ready ]
}

base=$(tiny_base)
hearth import "$base" --tag base:1 >/dev/null 2>&1
begin

agent "$work/a.json" bot base:1 'ENV A=1' 'RUN echo $A >/a' 'RUN echo noise; cat /a'
holds "a sync answers with the version" "$(call sync "$work/a.json")" '^agt_[0-9a-z]{26} 1 appended$'
status=$(call wait bot)
same "a version that was synced gets its image" "$(said .status "$status")" ready
same "its image has its name" "$(hearth inspect bot:1 --json | jq -r .digest)" "$(said .digest "$status")"
holds "the same spec again appends nothing" "$(call sync "$work/a.json")" ' 1 same$'
bake=$(said '.[0].id' "$(call bakes bot)")
holds "a bake has a log" "$(said . "$(call log "$bake")")" '^noise$'
holds "a log says which step it is at" "$(said . "$(call log "$bake")")" '^\[3/3\] RUN echo noise'

agent "$work/a.json" bot base:1 'ENV A=1' 'RUN echo $A >/a' 'RUN echo more; cat /a'
holds "an edited step is another version" "$(call sync "$work/a.json")" ' 2 appended$'
status=$(call wait bot)
same "the edited version is ready" "$(said '"\(.status) \(.version)"' "$status")" 'ready 2'
same "steps that were not edited do not run" "$(said '.[0].cachedSteps' "$(call bakes bot)")" 2

agent "$work/f.json" fails base:1 'RUN echo before; exit 7'
call sync "$work/f.json" >/dev/null
status=$(call wait fails)
same "a step that fails fails the version, for good" \
	"$(said '"\(.status) \(.error.code) \(.error.step) \(.error.exitCode) \(.error.terminal)"' "$status")" 'failed StepFailed 1 7 true'
holds "the failure has the end of its log" "$(said .error.logTail "$status")" '^before$'
agent "$work/r.json" refused base:1 'EXPOSE 80'
call sync "$work/r.json" >/dev/null
status=$(call wait refused)
same "a refused step fails the version, for good" "$(said '"\(.status) \(.error.code) \(.error.terminal)"' "$status")" 'failed StepRefused true'
agent "$work/g.json" gone 127.0.0.1:1/none
call sync "$work/g.json" >/dev/null
bake=$(said '.[0].id' "$(call bakes gone)")
status=$(call status gone 0)
same "what its registry does not answer for is baked later" "$(said .status "$status")" baking
holds "a bake that waits is cancelled" "$(call cancel "$bake")" '^ok$'
same "a cancelled bake leaves no image" "$(said '"\(.status) \(.error.code)"' "$(call wait gone)")" 'failed Cancelled'

agent "$work/c.json" clock base:1 'RUN cat /proc/sys/kernel/random/uuid >/id'
call sync "$work/c.json" >/dev/null
first=$(said .digest "$(call wait clock)")
holds "a rebake is another bake" "$(call rebake clock)" '^bak_[0-9a-z]{26} new$'
status=$(call wait clock)
same "a rebake is ready" "$(said '"\(.status) \(.rebake.status)"' "$status")" 'ready ready'
same "a rebake runs its steps anew" "$([ "$(said .digest "$status")" = "$first" ] && echo equal || echo other)" other
same "the image before is known" "$(said .previous.digest "$status")" "$first"
same "a rollback puts it back" "$(call rollback clock)" "$first"
same "what was rolled back to has the name" "$(hearth inspect clock:1 --json | jq -r .digest)" "$first"
holds "there is one way back" "$(call rollback clock)" '^error Conflict'
call rebake bot >/dev/null
same "a rebake in which nothing moved is unchanged" "$(said '"\(.status) \(.rebake.status)"' "$(call wait bot)")" 'ready unchanged'

# Equal steps of two agents, at one time or not, run once.
for name in p q; do
	agent "$work/$name.json" "$name" base:1 'RUN echo equal; cat /proc/sys/kernel/random/uuid >/id'
	call sync "$work/$name.json" >/dev/null
done
same "equal steps of two agents run once" "$(said .digest "$(call wait p)")" "$(said .digest "$(call wait q)")"

# An image is pushed to where its spec says, which holds up nobody.
port=$(free_port)
agent "$work/p.json" pushed base:1 'RUN echo pushed >/pushed'
jq --arg to "127.0.0.1:$port/pushed:1" '.sandbox.image.push = [$to]' "$work/p.json" >"$work/p2.json"
call sync "$work/p2.json" >/dev/null
status=$(call wait pushed)
same "an image is ready though its registry does not answer" "$(said .status "$status")" ready
free_port() { echo "$port"; }
start_registry
there() { curl -fsS -o /dev/null -H 'Accept: application/vnd.oci.image.manifest.v1+json' "http://$registry/v2/pushed/manifests/$(said .digest "$status")"; }
check "it is pushed once the registry answers" wait_for 60 there

# A job that dies takes nobody with it, and is tried again.
agent "$work/d.json" dies base:1 'RUN --mount=type=cache,target=/d [ -e /d/x ] || { touch /d/x; echo begun; sleep 1000; }'
call sync "$work/d.json" >/dev/null
bake=$(said '.[0].id' "$(call bakes dies)")
wait_for 60 grep -q '^begun' "$HEARTH_DATA/logs/$bake"
kill -9 "$(pgrep -P "$plane" -x hearth)"
agent "$work/o.json" other base:1 'RUN echo other >/o'
call sync "$work/o.json" >/dev/null
same "a job that dies harms no other" "$(said .status "$(call wait other)")" ready
same "a job that dies is tried again" "$(said '"\(.status) \(.attempt)"' "$(call wait dies)")" 'ready 2'

# What runs when the plane is killed goes on where it was.
agent "$work/k.json" killed base:1 'RUN echo one >/one' \
	'RUN --mount=type=cache,target=/c [ -e /c/x ] || { touch /c/x; echo begun; sleep 1000; }'
call sync "$work/k.json" >/dev/null
bake=$(said '.[0].id' "$(call bakes killed)")
wait_for 60 grep -q '^begun' "$HEARTH_DATA/logs/$bake"
end KILL
begin
status=$(call wait killed)
same "a bake that was killed is taken up again" "$(said .status "$status")" ready
same "it is the same bake, at its first attempt" "$(said '"\(.[0].id) \(.[0].attempt)"' "$(call bakes killed)")" "$bake 1"
holds "its finished step is not done twice" "$(said . "$(call log "$bake")")" '^\[1/2\] CACHED$'
call stop 0 >/dev/null
end TERM

# At any moment: all that was promised is there, and all of it ends.
for ((round = 1; round <= ROUNDS; round++)); do
	begin 2
	for name in x y z; do
		agent "$work/$name.json" "$name" base:1 "ENV ROUND=$((round / 2))" "RUN echo $name \$ROUND >/r" 'RUN cat /r'
		tell sync "$work/$name.json"
		[ $((RANDOM % 4)) != 0 ] || tell rebake "$name"
	done
	sleep "0.$((RANDOM % 900 + 100))"
	end KILL
done
begin 2
for name in x y z; do call sync "$work/$name.json" >/dev/null; done
for name in x y z; do
	same "after $ROUNDS kills $name has its image" "$(said .status "$(call wait $name)")" ready
	latest=$(said .version "$(call status $name 0)")
	for ((version = 1; version <= latest; version++)); do
		wait_for 60 is_ready "$name" "$version" || not_ok "version $version of $name has its image" "$(call status "$name" "$version")"
	done
done
events=$(call events)
same "no bake has two beginnings or two ends" \
	"$(said '[.[] | select(.bakeId and (.data.rolledBack | not)) | "\(.bakeId) \(if .type | test("baking$") then "begins" elif .type == "image.ready" then "is ready" else .type end)"] | group_by(.) | map(select(length > 1)) | length' "$events")" 0
same "each version was baked once" \
	"$(said '[.[] | select(.type == "image.baking") | "\(.agentId) \(.version)"] | length - (unique | length)' "$events")" 0
same "no event is lost, and none is there twice" "$(said '[.[].id | tonumber] == [range(1; length + 1)]' "$events")" true
holds "a plane that is told to stop stops" "$(call stop 1000)" '^ok$'
end TERM
check "the store is whole" hearth fsck
nothing_left "a plane leaves nothing"
finish

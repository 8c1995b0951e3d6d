#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# agents.sh - agents through the daemon: from sync to ready, and what follows. curl is the judge.
. "$(dirname "$0")/lib.sh"

agent() # SLUG STEP...: its spec, on a base of ours
{
	local slug=$1
	shift
	jq -nc --arg slug "$slug" '{slug: $slug, model: {provider: "gateway", model: "m"}, system: "s",
		sandbox: {image: {base: "base:1", steps: $ARGS.positional}}}' --args "$@"
}

call() # METHOD JSON: the answer's body
{
	ask "/v1/$1" -d "$2" | head -n -1
}

status_of() # SLUG [QUERY]
{
	ask "/v1/agents.imageStatus?id=$1${2:-}" | head -n -1
}

settled() # SLUG [VERSION]: nothing is under way there any more
{
	status_of "$1" "${2:+&version=$2}" | jq -e '.status != "baking" and .rebake.status != "baking"'
}

hearth import "$(tiny_base)" --tag base:1 >/dev/null 2>&1
start_daemon

# From sync to ready.
agent bot 'ENV A=1' 'RUN echo $A; echo made >/made' 'WORKDIR /srv' >"$work/bot.json"
said=$(call agents.sync "$(cat "$work/bot.json")")
holds "a sync appends a version" "$said" '"appended":true.*"slug":"bot".*"version":1'
same "and returns before the image is there" "$(jq -r .status <<<"$said")" baking
id=$(jq -r .id <<<"$said")
same "an id is a ULID with a prefix" "$(grep -cE '^agt_[0-9a-hjkmnp-tv-z]{26}$' <<<"$id")" 1
wait_for 60 settled bot
said=$(status_of bot)
holds "the image becomes ready" "$said" '"status":"ready","digest":"sha256:[0-9a-f]{64}","sizeBytes":[0-9]+'
digest=$(jq -r .digest <<<"$said")
same "an agent answers to its id, too" "$(status_of "$id")" "$said"
same "a version's image has a name" "$(hearth inspect bot:1 --json | jq -r .digest)" "$digest"
said=$(call agents.sync "$(jq '{agent: .} | .agent.system = "s"' "$work/bot.json")")
holds "the same spec in other clothes appends nothing" "$said" '"appended":false.*"status":"ready".*"version":1'
said=$(call agents.sync "$(jq '.system = "t"' "$work/bot.json")")
holds "any change appends a version" "$said" '"appended":true.*"version":2'
wait_for 60 settled bot
same "a step that was not edited does not run again" "$(status_of bot | jq -r .digest)" "$digest"
same "any version is there to be read" "$(ask "/v1/agents.get?id=bot&version=1" | head -n 1 | jq -r .spec.system)" s
same "the latest by default" "$(ask "/v1/agents.get?id=bot" | head -n 1 | jq -r .spec.system)" t
same "agents are listed" "$(ask /v1/agents.list | head -n 1 | jq -c '[.items[].slug, .next]')" '["bot",null]'
same "with the state of their images, if that is asked for" \
	"$(ask "/v1/agents.list?imageStatus=true" | head -n 1 | jq -cS '.items[0].imageStatus')" "$(ask "/v1/agents.imageStatus?id=bot" | head -n 1 | jq -cS .)"
same "an agent without an image is none" "$(call agents.sync '{"slug":"plain"}' | jq -r .status)" none

# Polling.
etag=$(ask "/v1/agents.imageStatus?id=bot" -i | tr -d '\r' | sed -n 's/^ETag: //p')
holds "who has a status is told that it is the same" "$(ask "/v1/agents.imageStatus?id=bot" -H "If-None-Match: $etag")" '^304$'
began=$EPOCHREALTIME
holds "and waits for another one as long as he says" \
	"$(ask "/v1/agents.imageStatus?id=bot&wait=1" -H "If-None-Match: $etag")" '^304$'
check "no shorter" test $((${EPOCHREALTIME/./} - ${began/./})) -ge 1000000
ask "/v1/agents.imageStatus?id=bot&wait=60" -H "If-None-Match: $etag" >"$work/polled" &
poller=$!
call agents.rebake '{"id":"bot"}' >"$work/rebake"
wait "$poller"
holds "and is answered when it is another" "$(cat "$work/polled")" '"rebake":\{"bakeId":"bak_'

# A rebake, and back.
wait_for 60 settled bot
same "a rebake in which nothing moved says so" "$(status_of bot | jq -r .rebake.status)" unchanged
same "by the bake that was named" "$(status_of bot | jq -r .rebake.bakeId)" "$(jq -r .bakeId "$work/rebake")"
holds "there is nothing to go back to" "$(ask /v1/agents.rollback -d '{"id":"bot"}')" '"Conflict".*no image from before a rebake'
call agents.sync "$(agent clock 'RUN cat /proc/sys/kernel/random/uuid >/id')" >/dev/null
wait_for 60 settled clock
first=$(status_of clock | jq -r .digest)
call agents.rebake '{"id":"clock"}' >/dev/null
wait_for 60 settled clock
second=$(status_of clock | jq -r .digest)
check "a rebake runs its steps anew" test "$first" != "$second"
same "what it replaced is kept" "$(status_of clock | jq -r .previous.digest)" "$first"
hearth gc >/dev/null 2>&1
same "and put back by a rollback" "$(call agents.rollback '{"id":"clock"}' | jq -r .digest)" "$first"
same "under the version's name, too" "$(hearth inspect clock:1 --json | jq -r .digest)" "$first"
call agents.sync "$(agent clock 'RUN cat /proc/sys/kernel/random/uuid >/id' | jq '.system = "t"')" >/dev/null
wait_for 60 settled clock
same "it is what the next version stands on" "$(status_of clock | jq -r .digest)" "$first"

# What goes wrong.
call agents.sync "$(agent bad 'RUN echo hello; exit 7')" >/dev/null
wait_for 60 settled bad
said=$(status_of bad | jq -c '[.status, .error.code, .error.step, .error.exitCode, .error.terminal, .error.logTail]')
same "a step that fails fails the version" "$said" '["failed","StepFailed",1,7,true,"hello\n"]'
call agents.sync "$(agent binary 'RUN printf "a\000\377"; exit 7')" >/dev/null
wait_for 60 settled binary
same "whatever bytes it wrote" "$(status_of binary | jq -c '[.status, .error.code, .error.logTail]')" '["failed","StepFailed","a��"]'
call agents.sync "$(agent refused 'RUN true' 'ENTRYPOINT sh')" >/dev/null
wait_for 60 settled refused
same "an instruction that is none is refused, with its step" \
	"$(status_of refused | jq -c '[.status, .error.code, .error.step, .error.line, .error.terminal]')" '["failed","StepRefused",2,1,true]'

# What the daemon counts.
said=$(ask /metrics)
holds "bakes are counted by how they ended" "$said" '^hearth_bakes_total\{state="failed"\} 3$'
holds "and steps by kind, and whether they were found" "$said" '^hearth_steps_total\{kind="RUN",cache="hit"\} [1-9]'
holds "or made" "$said" '^hearth_steps_total\{kind="RUN",cache="miss"\} [1-9]'
holds "a queue that is done is empty" "$said" '^hearth_queue_bakes\{state="running"\} 0$'

# What a spec wants pushed is on its way once the image is ready.
start_registry
call agents.sync "$(agent pushed 'RUN echo pushed >/pushed' | jq -c --arg to "$registry/pushed:1" '.sandbox.image.push = [$to]')" >/dev/null
wait_for 60 settled pushed
check "an image is pushed to where its spec says" wait_for 60 skopeo --insecure-policy inspect --tls-verify=false "docker://$registry/pushed:1"
pushed() # SLUG STATE: all of its pushes are there
{
	status_of "$1" | jq -e --arg state "$2" '[.pushes[].status == $state] | all'
}
check "its status says so" wait_for 60 pushed pushed pushed
bake=$(status_of pushed | jq -r '.pushes[0].bakeId')
same "so does its bake" "$(ask "/v1/bakes.get?id=$bake" | head -n 1 | jq -c '[.pushes[] | [.reference, .status]]')" \
	"[[\"$registry/pushed:1\",\"pushed\"]]"
call agents.sync "$(agent lost 'RUN echo lost >/lost' | jq -c --arg to "$registry" '.sandbox.image.push = ["127.0.0.1:1/lost:1", "\($to)/lost:1"]')" >/dev/null
failing() { status_of lost | jq -e '.pushes | .[0].error and .[1].status == "pushed"'; }
check "a registry that is not there holds up no other" wait_for 60 failing
said=$(status_of lost)
same "nor the image, and is tried again" "$(jq -c '[.status, (.pushes[0] | .status, .error.code, .error.terminal, (.retryAt | type))]' <<<"$said")" \
	'["ready","pushing","UpstreamFailed",false,"string"]'
holds "what a person asks says it" "$(hearth status lost)" '^  push +pushing to 127.0.0.1:1/lost:1$'
holds "events tell it, too" "$(hearth events --json 2>/dev/null)" '"image.pushFailed"'

# An agent takes no name from a registry's image.
push "$work/tiny:latest" hub/library/bot:1

# What the configuration says reaches the bakes: mirrors, hosts, secrets, time.
stop_daemon
push "$work/tiny:latest" mirrored/base:1
printf 'secret word' >"$work/word"
jq -n --arg registry "$registry" --arg word "$work/word" '{
	registry: {mirrors: {"registry.example": ["http://\($registry)/mirrored"], "docker.io": ["http://\($registry)/hub"]}},
	egress: {hosts: {"files.example": "\($registry)"}}, secrets: {word: {src: $word}}, bakes: {parallel: 2, timeoutMs: 30000}}' >"$work/hearth.json"
start_daemon --grace 1 --config "$work/hearth.json"
call agents.sync "$(agent private 'RUN --mount=type=secret,id=word wc -c </run/secrets/word; wget -q -O - http://files.example/v2/ && echo reached' |
	jq '.sandbox.image.base = "registry.example/base:1"')" >/dev/null
wait_for 60 settled private
same "a base comes from its mirror" "$(status_of private | jq -r .status)" ready
bake=$(ask "/v1/bakes.list?agentId=private" | head -n 1 | jq -r '.items[0].id')
said=$(ask "/v1/bakes.logs?id=$bake")
holds "a secret from where the configuration says" "$said" '^11$'
holds "and a host, too" "$said" 'reached$'

call agents.sync "$(agent above 'RUN test ! -e /made' | jq '.sandbox.image.base = "bot:1"')" >/dev/null
call agents.sync "$(agent on-top 'RUN test -e /made' | jq '.sandbox.image.base = "localhost/bot:1"')" >/dev/null
wait_for 60 settled above
wait_for 60 settled on-top
same "a base is what the registry calls so, whatever agents are called" "$(status_of above | jq -r .status)" ready
same "and an agent's image is one by its own name" "$(status_of on-top | jq -r .status)" ready
same "of what is here, a command takes the registry's, too" "$(hearth history bot:1 --json | grep -c made)" 0
holds "beside which the agent's stays" "$(hearth history localhost/bot:1 --json)" made

# Bad input.
holds "a wrong key says where, and what is near" "$(ask /v1/agents.sync -d '{"slug":"x","sandbox":{"imgae":{}}}')" \
	'"InvalidArgument".*imgae.*image'
holds "a spec must have a slug" "$(ask /v1/agents.sync -d '{}')" '^400$'
holds "nothing in a spec names the host's files" "$(ask /v1/agents.sync -d '{"slug":"x","sandbox":{"image":{"base":"oci:/tmp/x"}}}')" \
	'^400$'
holds "an unknown agent is not found" "$(ask '/v1/agents.imageStatus?id=nobody')" '"NotFound".*nobody'
holds "nor is a version that is not there" "$(ask '/v1/agents.imageStatus?id=bot&version=9')" '^404$'
holds "no version is 0" "$(ask '/v1/agents.imageStatus?id=bot&version=0')" '"path":"version"'
holds "nobody waits longer than a minute" "$(ask '/v1/agents.imageStatus?id=bot&wait=61')" '"path":"wait"'
holds "nor by a word" "$(ask '/v1/agents.imageStatus?id=bot&wait=long')" '"path":"wait"'
holds "an agent without an image is not baked" "$(ask /v1/agents.rebake -d '{"id":"plain"}')" '"Conflict"'
for step in 0 4; do
	holds "no step of three is $step" "$(ask /v1/agents.rebake -d "{\"id\":\"bot\",\"fromStep\":$step}")" '"path":"fromStep"'
done
head -c 3000000 /dev/zero | tr '\0' ' ' >"$work/large"
holds "a spec that is too large is refused" "$(ask /v1/agents.sync --data-binary "@$work/large")" '^413$'
reader=$(hearth token create --scope read 2>/dev/null)
holds "a reader reads" "$(as=$reader ask '/v1/agents.imageStatus?id=bot')" '^200$'
holds "and does not sync" "$(as=$reader ask /v1/agents.sync -d '{"slug":"x"}')" '^403$'

# Killed in the middle of a bake, it goes on.
call agents.sync "$(agent long 'RUN echo one >/one' 'RUN while [ ! -e /no ]; do sleep 1; done')" >/dev/null
long() { status_of long | jq -e '.step.n == 2'; }
wait_for 60 long
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
start_daemon --grace 1
wait_for 60 long
same "a killed daemon takes its bakes up again" "$(status_of long | jq -c '[.status, .attempt]')" '["baking",1]'
stop_daemon
same "a daemon that is told to stop puts back what runs" "$status" 0
nothing_left "nothing is left over"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sessions.sh - bakes, their logs, sessions, events and contexts through the daemon. curl is the judge.
. "$(dirname "$0")/lib.sh"

agent() # SLUG STEP...: its spec, on a base of ours
{
	local slug=$1
	shift
	jq -nc --arg slug "$slug" '{slug: $slug, model: {provider: "gateway", model: "m"}, system: "s",
		sandbox: {image: {base: "base:1", steps: $ARGS.positional}},
		subagents: [{kind: "derived", name: "review", extends: "parent"}]}' --args "$@"
}

call() # METHOD JSON: the answer's body
{
	ask "/v1/$1" -d "$2" | head -n -1
}

get() # METHOD [QUERY]
{
	ask "/v1/$1${2:+?$2}" | head -n -1
}

status_is() # SLUG STATUS [STEP]
{
	get agents.imageStatus "id=$1" | jq -e --arg status "$2" --argjson step "${3:-null}" \
		'.status == $status and ($step == null or .step.n == $step)'
}

bake_of() # SLUG: its last bake
{
	get bakes.list "agentId=$1&limit=1" | jq -r '.items[0].id'
}

stream() # FILE QUERY [CURL OPTION...]: events.stream into a file, behind our back
{
	local file=$1 query=$2
	shift 2
	setpriv --pdeathsig TERM curl -sSN -m 250 -H "Authorization: Bearer $token" "$@" "$url/v1/events.stream?$query" >"$file" 2>/dev/null &
	servers+=($!)
}

hearth import "$(tiny_base)" --tag base:1 >/dev/null 2>&1
start_daemon --grace 1
stream "$work/all" after=0
stream "$work/later" ''
wait_for 60 test -s "$work/later"

# A bake that can be looked at while it runs, since one of its steps never ends.
call agents.sync "$(agent bot 'ENV A=1' 'RUN echo first' 'RUN echo second; while :; do sleep 0.1; done' 'RUN echo third')" >/dev/null
wait_for 60 status_is bot baking 3
bake=$(bake_of bot)
said=$(get bakes.get "id=$bake")
same "a bake says what it is at" "$(jq -c '[.slug, .version, .state, .rebake, .attempt]' <<<"$said")" '["bot",1,"running",false,1]'
holds "its log is there while it runs" "$(get bakes.logs "id=$bake")" '^second$'
setpriv --pdeathsig TERM curl -sSN -m 250 -H "Authorization: Bearer $token" "$url/v1/bakes.logs?id=$bake&follow=true" >"$work/followed" &
follower=$!
wait_for 60 grep -q second "$work/followed"
holds "no session starts before the image is there" "$(ask /v1/sessions.create -d '{"agent":"bot"}')" '"AgentNotReady".*"status":"baking"'
holds "which is a conflict" "$(ask /v1/sessions.create -d '{"agent":"bot"}')" '^409$'
same "a bake is cancelled" "$(call bakes.cancel "{\"id\":\"$bake\"}" | jq -r .id)" "$bake"
status=0
wait "$follower" || status=$?
same "and who follows its log is done then" "$status" 0
wait_for 60 status_is bot failed
same "its version has failed" "$(get agents.imageStatus id=bot | jq -r .error.code)" Cancelled
same "and so has it" "$(get bakes.get "id=$bake" | jq -r .state)" cancelled
holds "what has ended is not cancelled" "$(ask /v1/bakes.cancel -d "{\"id\":\"$bake\"}")" '"Conflict".*has ended'
holds "a version that failed has no sessions" "$(ask /v1/sessions.create -d '{"agent":"bot"}')" '"AgentNotReady".*"status":"failed"'

# Logs.
call agents.sync "$(agent bot 'ENV A=1' 'RUN echo first' 'RUN echo second; printf "no end"' 'RUN echo third')" >/dev/null
wait_for 60 status_is bot ready
bake=$(bake_of bot)
same "a log has all steps" "$(get bakes.logs "id=$bake" | grep -cE '^(first|second|third)$')" 2 # the first was found
holds "and says what was found" "$(get bakes.logs "id=$bake")" '^\[2/4\] CACHED$'
holds "of one step it has that one" "$(get bakes.logs "id=$bake&step=4")" '^third$'
same "and no other" "$(get bakes.logs "id=$bake&step=4" | grep -c second || true)" 0
same "what has ended is followed to its end" "$(get bakes.logs "id=$bake&follow=true")" "$(get bakes.logs "id=$bake")"
same "bakes are listed, newest first" "$(get bakes.list agentId=bot | jq -c '[.items[].state]')" '["ready","cancelled"]'
next=$(get bakes.list limit=1 | jq -r .next)
same "a page at a time" "$(get bakes.list "limit=1&cursor=$next" | jq -c '[.items[].state, .next]')" '["cancelled",null]'

# Sessions.
first=$(call sessions.create '{"agent":"bot"}')
same "a session is of the latest version" "$(jq -c '[.version, .state, .parentId]' <<<"$first")" '[2,"open",null]'
first=$(jq -r .id <<<"$first")
child=$(call sessions.create "{\"agent\":\"bot\",\"parent\":\"$first\",\"subagent\":\"review\"}")
same "a child is in its parent's tree" "$(jq -r .rootId <<<"$child")" "$first"
call agents.sync "$(agent bot 'RUN exit 1')" >/dev/null
wait_for 60 status_is bot failed
holds "an older image does not serve a newer version" "$(ask /v1/sessions.create -d '{"agent":"bot"}')" '"AgentNotReady".*"failed"'
same "but for whom asks for its version" "$(call sessions.create '{"agent":"bot","version":2}' | jq -r .version)" 2
same "and for children of its sessions" "$(call sessions.create "{\"agent\":\"bot\",\"parent\":\"$first\"}" | jq -r .version)" 2
call agents.sync '{"slug":"plain"}' >/dev/null
plain=$(call sessions.create '{"agent":"plain"}')
same "an agent without an image starts at once" "$(jq -r .state <<<"$plain")" open
same "sessions are listed" "$(get sessions.list agentId=bot | jq '.items | length')" 4
same "a session ends" "$(call sessions.end "{\"id\":\"$first\"}" | jq -r .state)" ended
same "and once more" "$(call sessions.end "{\"id\":\"$first\"}" | jq -r .state)" ended
same "with those below it" "$(get sessions.get "id=$(jq -r .id <<<"$child")" | jq -r .state)" ended
holds "what has ended has no children" "$(ask /v1/sessions.create -d "{\"agent\":\"bot\",\"parent\":\"$first\"}")" '"Gone"'

# Tools: nothing is started for one yet, and an error says what hinders it.
hosted=$(agent hosted 'ENV A=1' | jq '.sandbox.provider = "modal"')
holds "a sync warns of a provider that is not here" "$(call agents.sync "$hosted")" '"warnings":.*sandbox.provider.*ProviderUnavailable'
wait_for 60 status_is hosted ready
hosted=$(call sessions.create '{"agent":"hosted"}' | jq -r .id)
open=$(call sessions.create '{"agent":"bot","version":2}' | jq -r .id)
tool() # SESSION TOOL: what a call of it says
{
	ask /v1/tools.call -d "{\"sessionId\":\"$1\",\"tool\":\"$2\",\"arguments\":{\"command\":\"id\"},\"callId\":\"1\",\"timeoutMs\":1000}"
}
said=$(tool "$hosted" bash)
holds "the first tool call fails with ProviderUnavailable" "$said" '"ProviderUnavailable"'
holds "which names the provider and what to do" "$said" 'no machines of modal, the sandbox.provider of version 1 of hosted: leave it out'
holds "as 503" "$said" '^503$'
same "and nothing says that it passes" "$(grep -c retryAfterMs <<<"$said" || true)" 0
said=$(tool "$hosted" Bash)
holds "another name than the thirteen is UnknownTool" "$said" '"UnknownTool"'
holds "with the nearest of them" "$said" 'did you mean bash\?'
holds "as 404" "$said" '^404$'
holds "so is any tool of an agent without a sandbox" "$(tool "$(jq -r .id <<<"$plain")" bash)" 'has no tools: its spec has no sandbox'
holds "tools are not called on our own machines either" "$(tool "$open" bash)" '^501$'
holds "what has ended has no tools" "$(tool "$first" bash)" '"Gone"'
holds "an unknown session is not found" "$(tool ses_x bash)" '"NotFound"'
holds "a call names its session" "$(ask /v1/tools.call -d '{"tool":"bash"}')" '"path":"sessionId"'
holds "and its tool" "$(ask /v1/tools.call -d "{\"sessionId\":\"$open\"}")" '"path":"tool"'
holds "with arguments by name" "$(ask /v1/tools.call -d "{\"sessionId\":\"$open\",\"tool\":\"read\",\"arguments\":[]}")" '"path":"arguments"'
holds "it is no read" "$(ask "/v1/tools.call?sessionId=$open&tool=read")" '^405$'
call sessions.end "{\"id\":\"$open\"}" >/dev/null

# Events.
wait_for 60 grep -q '^event: session.ended' "$work/later"
types=$(sed -n 's/^event: //p' "$work/all" | head -n 6 | xargs)
same "events come in order" "$types" "agent.created version.appended image.baking bake.cancelled image.failed version.appended"
same "to whom was there before them, too" "$(grep -c '^event: agent.created' "$work/later")" 3
same "with what they are about" "$(grep -A 1 '^event: session.created' "$work/all" | sed -n 's/^data: //p' | head -n 1 | jq -r '.sessionId, .agentId' | cut -c -4 | xargs)" "ses_ agt_"
holds "and a comment at once" "$(head -n 1 "$work/later")" '^:$'
same "a stream goes on behind what was seen" "$(curl -sSN -m 2 -H "Authorization: Bearer $token" -H 'Last-Event-ID: 3' "$url/v1/events.stream" 2>/dev/null | grep -m 1 '^id:')" "id: 4"
stream "$work/plain" 'after=0&agentId=plain&type=session.created'
wait_for 60 grep -q '^event' "$work/plain"
same "and shows what is asked for" "$(grep -c '^id:' "$work/plain")" 1
stream "$work/gap" after=1000000
wait_for 60 grep -q '^data' "$work/gap"
same "who has seen what was never there is told of a gap" "$(sed -n 1,2p "$work/gap" | xargs)" 'event: gap data: {type:gap,after:1000000,oldest:1}'

# Contexts.
mkdir "$work/context"
echo hello >"$work/context/greeting"
tar -C "$work/context" -cf "$work/context.tar" .
said=$(ask /v1/contexts.put -H 'Content-Type: application/x-tar' --data-binary "@$work/context.tar" | head -n 1)
same "a context is its tar's digest" "$(jq -r .digest <<<"$said")" "sha256:$(sha256sum <"$work/context.tar" | cut -d' ' -f1)"
same "and once more, in pieces" "$(ask /v1/contexts.put -H 'Transfer-Encoding: chunked' -T "$work/context.tar" -X POST | head -n 1)" "$said"
call agents.sync "$(agent copy 'COPY greeting /greeting' 'RUN cat /greeting' | jq --argjson put "$said" '.sandbox.image.context = $put.digest')" >/dev/null
wait_for 60 status_is copy ready
holds "COPY reads it" "$(get bakes.logs "id=$(bake_of copy)&step=2")" '^hello$'
holds "what is no tar is refused" "$(printf 'BZh9' | ask /v1/contexts.put --data-binary @-)" '"InvalidArgument".*bzip2'
holds "and nothing, too" "$(ask /v1/contexts.put -d '')" '"InvalidArgument".*empty'

# The same by the client in JavaScript.
cat >"$work/client.mjs" <<JS
import { AgentNotReady, ProviderUnavailable, createClient, definePlane } from "$root/api/client/index.js";

const client = createClient();
const seen = [];
const watching = (async () => {
	for await (const event of client.events({ after: "0", agentId: "scripted" })) {
		seen.push(event.type);
		if (event.type === "session.created")
			return;
	}
})();
const { digest } = await client.contexts.put("$work/context");
const agent = (steps) => definePlane({ agent: { slug: "scripted", sandbox: { image: { base: "base:1", context: digest, steps } } } });
const { id, appended } = await client.agents.sync(agent(["COPY greeting /greeting", "RUN cat /greeting; sleep 1"]));
const early = await client.sessions.create({ agent: id }).catch((error) => error);
let state = await client.agents.imageStatus({ id });
while (state.status === "baking")
	state = await client.agents.imageStatus({ id, wait: 30, since: state });
const session = await client.sessions.create({ agent: id });
const [bake] = (await client.bakes.list({ agentId: id })).items;
const log = await client.bakes.logs({ id: bake.id, step: 2, follow: true }).text();
await watching;
const hosted = await client.sessions.create({ agent: "hosted" });
const tool = await client.tools.call({ sessionId: hosted.id, tool: "bash", arguments: { command: "id" } }).catch((error) => error);
console.log(JSON.stringify([appended, early instanceof AgentNotReady && early.status, state.status, session.version, bake.state,
	log.includes("hello"), tool instanceof ProviderUnavailable, seen.filter((type) => type !== "image.ready")]));
JS
call agents.sync '{"slug":"scripted"}' >/dev/null
same "a client in JavaScript goes from sync to a session" \
	"$(HEARTH_URL=$url HEARTH_TOKEN=$token timeout 120 node "$work/client.mjs" 2>&1)" \
	'[true,"baking","ready",2,"ready",true,true,["agent.created","version.appended","version.appended","image.baking","session.created"]]'

# Bad input.
for method in bakes.get bakes.logs sessions.get; do
	holds "$method of an unknown id is not found" "$(ask "/v1/$method?id=bak_x")" '^404$'
	holds "$method without an id says so" "$(ask "/v1/$method")" '"path":"id"'
done
holds "no step is 0" "$(ask "/v1/bakes.logs?id=$bake&step=0")" '"path":"step"'
holds "a page has a limit" "$(ask "/v1/bakes.list?limit=501")" '"path":"limit"'
holds "a cursor is an earlier page's" "$(ask "/v1/bakes.list?cursor=x")" '"path":"cursor"'
holds "an event's id is a number" "$(ask "/v1/events.stream?after=x")" '"path":"after"'
holds "a sub-agent is the version's" "$(ask /v1/sessions.create -d "{\"agent\":\"bot\",\"version\":2,\"parent\":\"$first\",\"subagent\":\"x\"}")" '^4(00|10)$'
holds "and has a parent" "$(ask /v1/sessions.create -d '{"agent":"bot","version":2,"subagent":"review"}')" '"path":"parent"'
holds "an unknown parent is not found" "$(ask /v1/sessions.create -d '{"agent":"bot","parent":"ses_x"}')" '"NotFound"'
reader=$(hearth token create --scope read 2>/dev/null)
for method in bakes.cancel sessions.create sessions.end tools.call contexts.put agents.rebake; do
	holds "a reader does not call $method" "$(as=$reader ask "/v1/$method" -d '{}')" '^403$'
done
stop_daemon
same "streams end with the daemon" "$status" 0
nothing_left "nothing is left over"
finish

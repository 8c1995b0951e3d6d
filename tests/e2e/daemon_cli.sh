#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# daemon_cli.sh - the commands that ask the daemon: from a sync to a session, and what goes wrong.
. "$(dirname "$0")/lib.sh"

agent() # SLUG STEP...: its spec, on a base of ours
{
	local slug=$1
	shift
	jq -n --arg slug "$slug" '{slug: $slug, model: {provider: "gateway", model: "m"}, system: "s",
		sandbox: {image: {base: "base:1", steps: $ARGS.positional}}}' --args "$@" >"$work/$slug.json"
}

member() # NAME COMMAND...: a member of the JSON that a command prints
{
	local name=$1
	shift
	"$@" | jq -r "$name"
}

refused "where nobody serves it says what to do" 75 "hearth serve" hearth status bot
hearth import "$(tiny_base)" --tag base:1 >/dev/null 2>&1
start_daemon

# From sync to ready.
agent bot 'RUN echo said; echo made >/made' 'RUN cat /proc/sys/kernel/random/uuid >/id'
said=$(hearth sync "$work/bot.json" --json)
same "a sync says which version it is, at once" \
	"$(jq -c '[.slug, .version, .appended, .status]' <<<"$said")" '["bot",1,true,"baking"]'
digest=$(hearth sync "$work/bot.json" --wait 2>"$work/said")
holds "the same again appends none" "$(cat "$work/said")" '^bot version 1 was there'
holds "who waits is told the digest" "$digest" '^sha256:[0-9a-f]{64}$'
holds "and what went on, or how it is" "$(cat "$work/said")" '^bot version 1: ready$'
said=$(hearth status bot)
holds "the status of an image says that it is ready" "$said" '^bot version 1: ready$'
holds "and which it is" "$said" "^  image +$digest, "
same "as JSON it is the daemon's answer" "$(member .digest hearth status bot --json)" "$digest"
same "an id is as good as a slug" "$(member .slug hearth status "$(member .agentId hearth status bot --json)" --json)" bot
jq '.system = "t"' "$work/bot.json" | hearth sync - --wait --json >"$work/said" 2>/dev/null
same "a spec may come by standard input, and its image with the answer" \
	"$(jq -c '[.version, .status, .image.digest]' "$work/said")" "[2,\"ready\",\"$digest\"]"
script -qec "'$HEARTH' status bot --wait" "$work/tty" >/dev/null
same "a terminal is told once how it is" "$(grep -c 'bot version 2: ready' "$work/tty")" 1
holds "an older version has a status, too" "$(hearth status bot --version 1)" '^bot version 1: ready$'
jq -n '{slug: "plain", nonsense: 1}' >"$work/plain.json"
holds "what the daemon warns of is said" "$(hearth sync "$work/plain.json" 2>&1)" '^hearth: warning: .*nonsense'
holds "an agent without an image is no failure" "$(hearth status plain)" '^plain version 1: none$'
said=$(hearth status)
holds "without a name all agents are listed" "$said" "^bot +2 +ready +${digest:7:12}  [0-9a-z]"
holds "those without an image, too" "$said" '^plain +1 +none +-  +-$'
same "as JSON each is its status" "$(hearth status --json | jq -c '[.items[] | [.slug, .status]]')" '[["plain","none"],["bot","ready"]]'
same "a page at a time" "$(hearth status --limit 1 --json | jq -r '.items | map(.slug) | join(" ")')" plain
refused "who waits says for which" 64 "name the agent" hearth status --wait

# A context beside the spec.
mkdir "$work/src"
echo content >"$work/src/file"
agent copier 'COPY file /file' 'RUN cat /file'
jq '.sandbox.image.context = "src"' "$work/copier.json" >"$work/beside.json"
check "a context is a directory beside the spec" "$HEARTH" sync "$work/beside.json" --wait
holds "whose digest is what the version has" \
	"$(hearth call agents.get '{"id":"copier"}' | jq -r .spec.sandbox.image.context)" '^sha256:'
same "by an option it is the same version" \
	"$(member .appended hearth sync "$work/copier.json" --context "$work/src" --json)" false
refused "a context that is not there is said" 66 "context .*none" hearth sync "$work/copier.json" --context "$work/none"

# From another machine: no data directory is here, and the context goes along.
far() { env -u HEARTH_DATA HEARTH_URL="$url" HEARTH_TOKEN="$token" "$HEARTH" "$@"; }
same "a context is sent from another machine, and is the same" "$(far sync "$work/beside.json" --json | jq -c '[.slug, .appended]')" '["copier",false]'
echo secret >"$work/src/secret"
echo secret >"$work/src/.dockerignore"
digest=$(far context put "$work/src")
same "what is sent has the digest of what is stored here" "$digest" "$(hearth context put "$work/src")"
agent hidden 'COPY . /src' 'RUN test -e /src/file && test ! -e /src/secret'
check "without what a .dockerignore hides" far sync "$work/hidden.json" --context "$work/src" --wait
tar -C "$work" -cf "$work/src.tar" src
same "a tar is sent as it is" "$(far context put - <"$work/src.tar")" "$(hearth context put "$work/src.tar")"
refused "a directory that is not there is said, there, too" 66 "context put .*No such file" far context put "$work/none"
refused "and who may not" 77 "token create" env HEARTH_URL="$url" HEARTH_TOKEN=hth_no "$HEARTH" context put "$work/src"

# Rebakes.
id=$(hearth rebake bot)
holds "a rebake says its bake" "$id" '^bak_'
second=$(hearth rebake bot --wait 2>"$work/said")
check "who waits for a rebake gets another image" test "$second" != "$digest"
same "which the agent has" "$(member .digest hearth status bot --wait --json 2>/dev/null)" "$second"
third=$(hearth rebake bot --wait --json 2>/dev/null)
same "as JSON it is the bake" "$(jq -c '[.slug, .rebake, .state]' <<<"$third")" '["bot",true,"ready"]'
same "a rollback goes back by one" "$(hearth rollback bot)" "$second"
refused "and no further" 75 "no image from before" hearth rollback bot
jq '.sandbox.image.steps = ["RUN true"]' "$work/bot.json" | hearth sync - --wait >/dev/null 2>&1
holds "a rebake that changes nothing says so" "$(hearth rebake bot --wait 2>&1)" '^bak_.* unchanged$'
check "earlier steps may be left as they are" "$HEARTH" rebake bot --from-step 1 --wait
refused "a step is a number" 64 "from-step" hearth rebake bot --from-step none
refused "an agent without an image is not baked" 75 "no image" hearth rebake plain

# What goes wrong has its code.
agent bad 'RUN echo the log; exit 7'
refused "a step that fails is 1, with its log" 1 "the log" hearth sync "$work/bad.json" --wait
wait_for 60 grep -q 'agent=bad .*state=failed' "$work/daemon.log" || true
holds "the daemon's log says so, too" "$(cat "$work/daemon.log")" 'warn .*bake ended .*agent=bad version=1 state=failed why=.*exit code 7'
refused "as the status is, and what it was" 1 "bad version 1: .*exit" hearth status bad
holds "which prints it all the same" "$(member .error.code hearth status bad --json 2>/dev/null || true)" StepFailed
refused "an agent has no image's log, and is said how to ask" 66 "hearth logs -f bad" hearth logs bad
refused "as its rebake is" 1 "exit" hearth rebake bad --wait
agent refused 'ENTRYPOINT sh'
refused "a step that is refused is 65" 65 "ENTRYPOINT" hearth sync "$work/refused.json" --wait
refused "no session opens on it, and what says why is named" 75 "has failed.*; hearth status bad shows" hearth sessions create bad
printf '{"slug": "x", "sandbox": {"imgae": {}}}' >"$work/wrong.json"
refused "a wrong key is 64, with its path" 64 "wrong.json.*sandbox.imgae" hearth sync "$work/wrong.json"
refused "as what is no JSON" 64 "spec" hearth sync - <<<'{'
refused "a spec that is not there is 66" 66 "none.json" hearth sync "$work/none.json"
refused "as is an agent that is not, and what lists them is said" 66 "nobody.*; hearth status lists them" hearth status nobody
refused "an unknown token is 77, and where one comes from is said" 77 "hearth token create" \
	env HEARTH_URL="$url" HEARTH_TOKEN=hth_none "$HEARTH" status bot
refused "a token that may not is 77" 77 "scope operate" env HEARTH_URL="$url" \
	HEARTH_TOKEN="$(hearth token create --scope read 2>/dev/null)" "$HEARTH" sync "$work/bot.json"

# A bake that runs is followed, and cancelled.
mkfifo "$work/gate"
agent long 'RUN echo begun; while [ ! -e /none ]; do sleep 0.1; done'
hearth sync "$work/long.json" >/dev/null
hearth logs -f long >"$work/followed" &
follower=$!
wait_for 60 grep -q '^begun' "$work/followed" || true
holds "a log is followed while it is written" "$(cat "$work/followed")" '^begun'
refused "what is being baked is 75" 75 "still being baked" hearth status long
holds "and says its step" "$(hearth status long 2>/dev/null || true)" '^long version 1: baking, \[1/1\] RUN echo begun'
refused "a session has to wait" 75 "being baked; hearth status long" hearth sessions create long
id=$(member '.items[0].id' hearth bakes long --json)
holds "it is among the bakes" "$(hearth bakes)" "^$id +long:1 +running +bake"
holds "a bake is cancelled by its id" "$(hearth bakes cancel "$id")" "^$id"
wait "$follower"
refused "whoever waits for it is told" "130" "cancel" hearth status long --wait
holds "its log stays" "$(hearth logs "$id")" '^begun'
holds "as JSON, too" "$(hearth logs "$id" --json)" '^\{"text": ?"begun"\}$'
refused "what has ended is not cancelled" 75 "." hearth bakes cancel "$id"
refused "a bake that is not is 66" 66 "no bake" hearth logs bak_none
refused "an agent has bakes, or none to follow" 66 "no bakes" hearth logs -f plain
same "bakes come a page at a time" "$(hearth bakes --limit 2 --json | jq '.items | length')" 2
holds "which says how to go on" "$(hearth bakes --limit 2 2>&1)" '^there are more: --cursor bak_'

# Sessions and events.
session=$(hearth sessions create bot)
holds "a session's id is said" "$session" '^ses_'
child=$(hearth sessions create bot --parent "$session" --json)
same "a child is its parent's" "$(jq -r .parentId <<<"$child")" "$session"
same "both are listed" "$(hearth sessions list bot | grep -c ' open ')" 2
holds "by the name of their agent" "$(hearth sessions)" "^$session  bot:[0-9]+ +open "
same "which each answer has" "$(jq -r .slug <<<"$child")" bot
check "a session ends" "$HEARTH" sessions end "$session"
same "and all below it" "$(hearth sessions | grep -c ' open ' || true)" 0
refused "a session that is not is 66" 66 "." hearth sessions end ses_none
refused "sessions are not deleted" 64 "expected list" hearth sessions delete "$session"
holds "what happened is there to be read" "$(hearth events)" '^1  20[0-9TZ:.-]*  agent.created  agt_[0-9a-z]*  '
same "of one agent and type, as JSON" "$(hearth events --agent bot --type version.appended --json | jq -s length)" 3
last=$(hearth events --json | tail -n 1 | jq -r .id)
hearth events -f --after "$last" >"$work/events" &
watcher=$!
hearth status bot --watch --json >"$work/watched" 2>/dev/null &
servers+=("$watcher" $!)
hearth status bot --watch >"$work/lines" 2>/dev/null &
servers+=($!)
hearth sessions create bot >/dev/null
wait_for 60 grep -q session.created "$work/events" || true
same "what happens is told as it happens" "$(awk '{print $3}' "$work/events")" session.created
wait_for 60 test -s "$work/watched" || true
wait_for 60 test -s "$work/lines" || true
id=$(member .id hearth rebake bot --wait --json 2>/dev/null)
wait_for 60 grep -q "$id" "$work/watched" || true
holds "a status is watched as it changes" "$(tail -n 1 "$work/watched")" "\"rebake\":.*\"bakeId\":\"$id\""
lines() { [ "$(wc -l <"$work/lines")" -ge 2 ]; }
check "in lines for people" wait_for 60 lines
help=$(hearth call --help)
unnamed() { grep -hoP '\.name = "\K[^"]+' "$root"/api/routes_*.c | while read -r name; do grep -qwF "$name" <<<"$help" || echo "$name"; done; }
check "the methods are found" grep -q agents.sync <<<"$(grep -h '\.name = ' "$root"/api/routes_*.c)"
same "and the help of call names them all" "$(unnamed)" ""
stop_daemon
wait "$watcher" || true
same "the daemon ends as it should" "$status" 0
nothing_left "nothing is left over"
finish

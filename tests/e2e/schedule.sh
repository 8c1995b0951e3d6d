#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# schedule.sh - images baked anew by the daemon, at the times of their spec and whenever somebody asks: a base that
# moves in a registry, a step whose content moves, and what becomes of the image that served before.
. "$(dirname "$0")/lib.sh"
: "${SHIFTED_CLOCK_LIB:?is a wall clock that can be set}"
export SHIFTED_CLOCK=$work/shift
ahead=$(($(date -ud '2030-06-01 12:00:00' +%s) - EPOCHSECONDS)) # no case is near another time of the day
echo "$ahead" >"$SHIFTED_CLOCK"

agent() # SLUG BASE CRON STEP...: its spec
{
	local slug=$1 base=$2 cron=$3
	shift 3
	jq -nc --arg slug "$slug" --arg base "$base" --arg cron "$cron" '{slug: $slug, model: {provider: "gateway", model: "m"},
		sandbox: {image: ({base: $base, steps: $ARGS.positional} + if $cron == "" then {} else {rebake: {cron: $cron}} end)}}' --args "$@"
}

call() # METHOD JSON: the answer's body
{
	ask "/v1/$1" -d "$2" | head -n -1
}

status_of() # SLUG [FILTER]
{
	ask "/v1/agents.imageStatus?id=$1" | head -n -1 | jq -c "${2:-.}"
}

is() # SLUG FILTER: whether its status is so
{
	[ "$(status_of "$1" "$2")" = true ]
}

settled() # SLUG
{
	is "$1" '.status != "baking" and .rebake.status != "baking"'
}

rebake() # SLUG: to its end
{
	call agents.rebake "{\"id\":\"$1\"}" >/dev/null
	wait_for 60 settled "$1"
}

rebakes() # SLUG: how many there were, whoever asked for them
{
	ask "/v1/bakes.list?agentId=$1&limit=500" | head -n -1 | jq '[.items[] | select(.rebake)] | length'
}

fetched() # NAME: how often steps fetched it
{
	grep -c "\"GET /$1 HTTP" "$work/served.log" || true
}

content() # SLUG: what its image says
{
	spec "$work/look.json" "localhost/$1:1" 'RUN cat /made'
	hearth bake "$work/look.json" --no-cache 2>&1 | sed -n 's/^.*made of //p'
}

begin() # a daemon on the clock that can be set
{
	LD_PRELOAD=$SHIFTED_CLOCK_LIB ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 \
		start_daemon --grace 1 --config "$work/hearth.json"
}

pass() # SECONDS: the daemon's clock goes ahead
{
	ahead=$((ahead + $1))
	echo "$ahead" >"$SHIFTED_CLOCK.new"
	mv "$SHIFTED_CLOCK.new" "$SHIFTED_CLOCK"
}

base() # NUMBER: what the registry calls base:1 from now on
{
	[ -d "$work/base-$1" ] || "$here/image.py" "$work/base-$1:latest" tiny --env "BASE=$1" >/dev/null
	push "$work/base-$1:latest" base:1
}

wake() # a version with times of its own makes the daemon look at its clock
{
	alarms=$((${alarms:-0} + 1))
	call agents.sync "$(agent alarm scratch "$alarms 1 1 1 *")" >/dev/null
}

day=86400
mkdir "$work/served"
echo 1 >"$work/served/moves"
serve_port=$(free_port)
setpriv --pdeathsig TERM python3 -u -m http.server -d "$work/served" -b 127.0.0.1 "$serve_port" >/dev/null 2>"$work/served.log" &
servers+=($!)
wait_for 60 curl -fsS -o /dev/null "http://127.0.0.1:$serve_port/"
jq -n --arg files "127.0.0.1:$serve_port" '{egress: {hosts: {"files.test": $files}}, bakes: {parallel: 2}}' >"$work/hearth.json"
start_registry
registry_server=${servers[-1]}
base 1
begin

# A registry that accepts and says nothing, which takes its time.
silent_port=$(free_port)
setpriv --pdeathsig TERM python3 -uc 'import socket, sys
server, came = socket.create_server(("127.0.0.1", int(sys.argv[1]))), []
while True:
	came.append(server.accept())
	print("came")' "$silent_port" >"$work/silent.log" &
servers+=($!)
silence_listens() { bash -c "exec 3<>/dev/tcp/127.0.0.1/$silent_port" 2>/dev/null; }
wait_for 60 silence_listens
call agents.sync "$(agent silent "127.0.0.1:$silent_port/base:1" '' 'ENV A=1')" >/dev/null

# When somebody asks.
call agents.sync "$(agent bot "$registry/base:1" '0 3 * * *' 'ENV A=1' 'RUN wget -q -O /got http://files.test/moves' \
	'RUN echo "made of base $BASE and content $(cat /got)" >/made')" >/dev/null
wait_for 60 settled bot
first=$(status_of bot .digest)
same "a version is made of what there is that day" "$(content bot)" "base 1 and content 1"
rebake bot
same "a rebake in which nothing moved is unchanged" "$(status_of bot '[.status, .rebake.status, .digest]')" "[\"ready\",\"unchanged\",$first]"
same "though its steps ran anew" "$(fetched moves)" 2
same "and appends no version" "$(call agents.get '{"id":"bot"}' | jq .version)" 1
echo 2 >"$work/served/moves"
rebake bot
same "content that moved is in the image" "$(content bot)" "base 1 and content 2"
base 2
rebake bot
same "as is a base that moved" "$(content bot)" "base 2 and content 2"
second=$(status_of bot .digest)
check "what was there before is kept" is bot ".previous.digest != $second and .previous.digest != $first"

# One that goes on: the old image serves, and whoever asks again gets the same.
call agents.sync "$(agent slow "$registry/base:1" '' 'RUN wget -q -O /made http://files.test/moves; echo "made of $(cat /made)"' \
	'RUN while wget -q -O /dev/null http://files.test/closed; do sleep 0.1; done')" >/dev/null
wait_for 60 settled slow
served=$(status_of slow .digest)
touch "$work/served/closed"
echo 3 >"$work/served/moves"
asked=$(call agents.rebake '{"id":"slow"}')
same "a rebake is a bake of its own" "$(jq -c '[(.bakeId | startswith("bak_")), .joined]' <<<"$asked")" '[true,false]'
wait_for 60 is slow '.rebake.step.n == 2'
same "the old image serves meanwhile" "$(status_of slow '[.status, .digest, .rebake.status]')" "[\"ready\",$served,\"baking\"]"
holds "and opens sessions" "$(ask /v1/sessions.create -d '{"agent":"slow"}')" '^200$'
same "a second rebake joins it" "$(call agents.rebake '{"id":"slow"}')" "$(jq -c '.joined = true' <<<"$asked")"
rm "$work/served/closed"
wait_for 60 settled slow
check "until there is another" is slow ".digest != $served and .rebake.status == \"ready\""
same "which one bake made" "$(rebakes slow)" 1

# A rebake that fails takes nothing away.
"$here/image.py" "$work/broken:latest" entry:benign-symlink >/dev/null
push "$work/broken:latest" base:1
events=$(hearth events --json --type image.rebakeFailed | wc -l)
rebake bot
same "a base that moved to what has no shell fails the rebake, for good" \
	"$(status_of bot '[.status, .rebake.status, .rebake.error.step, .rebake.error.terminal]')" '["ready","failed",2,true]'
same "and the image serves that did" "$(status_of bot .digest)" "$second"
holds "for new sessions, too" "$(ask /v1/sessions.create -d '{"agent":"bot"}')" '^200$'
same "under its name" "$(content bot)" "base 2 and content 2"
same "which an event tells" "$(($(hearth events --json --type image.rebakeFailed | wc -l) - events))" 1
mv "$work/registry/docker/registry/v2/repositories/base" "$work/lost"
rebake bot
same "as does a base that is gone" "$(status_of bot '[.status, .digest, .rebake.status, .rebake.error.code]')" "[\"ready\",$second,\"failed\",\"NotFound\"]"
mv "$work/lost" "$work/registry/docker/registry/v2/repositories/base"

# What fails in passing is tried again.
wait_for 120 is silent '.phase == "waiting"'
same "who waits for a silent registry is told so, and keeps no other waiting" \
	"$(status_of silent '[.status, .attempt, .error.code, .error.terminal, has("retryAt")]')" '["baking",1,"TimedOut",false,true]'
same "it was asked once" "$(grep -c came "$work/silent.log")" 2 # and by us
call bakes.cancel "{\"id\":\"$(ask '/v1/bakes.list?agentId=silent' | head -n -1 | jq -r '.items[0].id')\"}" >/dev/null
check "and what waits for it is cancelled" wait_for 60 is silent '.status == "failed"'
base 3
echo 4 >"$work/served/moves"
kill "$registry_server"
wait "$registry_server" 2>/dev/null || true
call agents.rebake '{"id":"bot"}' >/dev/null
wait_for 60 is bot '.rebake.phase == "waiting"'
same "a registry that does not answer is asked again later" \
	"$(status_of bot '[.status, .rebake.status, .rebake.attempt, .rebake.error.code, .rebake.error.terminal]')" '["ready","baking",1,"UpstreamFailed",false]'
check "at a time that is told" is bot '(.rebake.retryAt | sub("\\.[0-9]+Z"; "Z") | fromdate) - (.rebake.at | sub("\\.[0-9]+Z"; "Z") | fromdate) | . >= 4 and . <= 6'
serve docker-registry serve "$work/registry.yml"
wait_for 60 curl -fsS "http://$registry/v2/"
pass 10
wake
wait_for 60 settled bot
same "and then it is ready" "$(status_of bot '[.rebake.status, (.rebake | has("retryAt"))]')" '["ready",false]'
same "with what has moved" "$(content bot)" "base 3 and content 4"
same "a rollback goes back to before it" "$(call agents.rollback '{"id":"bot"}' | jq .digest)" "$second"
same "in content as in name" "$(content bot)" "base 2 and content 2"

# At 03:00 each day.
call agents.sync "$(agent witness scratch '* * * * *')" >/dev/null
wait_for 60 settled witness
base 4
echo 5 >"$work/served/moves"
asked=$(rebakes bot)
pass "$day"
wake
scheduled() { [ "$(rebakes bot)" -gt "$asked" ] && settled bot; }
check "a rebake comes when its time has come" wait_for 60 scheduled
same "with a base and content that moved" "$(content bot)" "base 4 and content 5"
check "the image before is kept" is bot ".previous.digest == $second"
stop_daemon
base 5
pass $((5 * day))
begin
asked=$((asked + 1))
check "times that were missed are caught up" wait_for 60 scheduled
same "with what moved meanwhile" "$(content bot)" "base 5 and content 5"
same "by one rebake" "$(rebakes bot)" $((asked + 1))
stop_daemon
begin
seen=$(rebakes witness)
pass 120
wake
witnessed() { [ "$(rebakes witness)" -gt "$seen" ]; }
check "when others' times come" wait_for 60 witnessed
same "what was caught up is not so again" "$(rebakes bot)" $((asked + 1))
stop_daemon
same "a daemon ends between two times" "$status" 0
nothing_left "nothing is left over"
finish

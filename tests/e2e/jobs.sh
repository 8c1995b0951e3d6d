#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jobs.sh - the bakes of a daemon, each in a process of its own; job_parent stands in for the daemon.
. "$(dirname "$0")/lib.sh"
: "${JOB_PARENT:?is the stand-in}"

mkfifo "$work/open"
exec {open}<>"$work/open" # says nothing and does not end

job() # SPEC [NAME=VALUE...]: prints its events; its standard input stays open
{
	"$JOB_PARENT" "$HEARTH" "$HEARTH_DATA" "$@" <&"$open" 2>>"$work/parent.log"
}

agent() # FILE BASE STEP...: an agent's spec
{
	local file=$1
	shift
	spec "$file.image" "$@"
	jq '{slug: "agent", model: {provider: "gateway", model: "m"}, system: "s", sandbox: {image: .}}' "$file.image" >"$file"
}

base=$(tiny_base)
hearth import "$base" --tag base:1 >/dev/null 2>&1

agent "$work/a.json" base:1 'ENV A=1' 'RUN echo $A; echo made >/made' 'WORKDIR /w' 'RUN cat /made >here'
said=$(job "$work/a.json" version=3)
holds "a job tells of a step that it makes" "$said" '^running 2/4 begun RUN echo'
holds "a job tells what a step writes" "$said" '^log 1$'
holds "a job tells of its result" "$said" '^result sha256:[0-9a-f]{64} base=sha256:[0-9a-f]{64} steps=4 cached=1$'
digest=$(sed -n 's/^result \([^ ]*\).*/\1/p' <<<"$said")
same "a published image has the version's name" "$(hearth inspect agent:3 --json | jq -r .digest)" "$digest"
same "a published image is the latest" "$(hearth inspect agent:latest --json | jq -r .digest)" "$digest"
holds "the steps of a published image have their logs" "$(hearth logs agent:3 2)" '^1$'

said=$(job "$work/a.json" version=3 previous="$digest")
holds "a job finds what was made" "$said" "^result $digest .* steps=4 cached=4 unchanged$"
holds "a job tells of a step that it finds" "$said" '^running 4/4 cached RUN cat /made >here$'

agent "$work/b.json" base:1 'RUN echo before; echo failing >&2; exit 7'
status=0
said=$(job "$work/b.json") || status=$?
same "a failed step's job ends with its code" "$status" 1
holds "a step that fails is told for good, with its code" "$said" '^error StepFailed terminal step=1 exit=7 '
holds "a failed step's error has the end of its log" "$said" '^failing$'

spec=$(jq '.sandbox.image.timeoutMs = 300' "$work/b.json")
jq '.sandbox.image.steps = ["RUN sleep 100"]' <<<"$spec" >"$work/late.json"
said=$(job "$work/late.json" || true)
holds "a step that takes too long is told for good" "$said" '^error TimedOut terminal step=1 '

jq '.sandbox.image.base = "127.0.0.1:1/none"' "$work/a.json" >"$work/gone.json"
said=$(job "$work/gone.json" || true)
holds "a registry that does not answer may do so later" "$said" '^error UpstreamFailed passing step=0 '
jq '.sandbox.image.steps += ["ADD a b"]' "$work/gone.json" >"$work/refused.json"
said=$(job "$work/refused.json" || true)
holds "a step is refused before anything is pulled" "$said" '^error StepRefused terminal step=5 '

agent "$work/c.json" base:1 'RUN --mount=type=secret,id=s cat /run/secrets/s; echo; wc -c </run/secrets/s'
said=$(job "$work/c.json" secret=s:hunter2)
holds "a secret reaches the step that asks for it" "$said" '^log .*\*\*\*|^7$'
check "a secret is in no file of ours" bash -c '! grep -rqs hunter2 "$1"' - "$HEARTH_DATA"

mkdir "$work/docker"
echo '{"proxies": {"default": {"httpProxy": "http://proxy.test:3128"}}}' >"$work/docker/config.json"
agent "$work/proxied.json" base:1 'RUN echo $http_proxy'
holds "a step is told of the host's proxies" "$(DOCKER_CONFIG=$work/docker job "$work/proxied.json")" '^log http://proxy.test:3128$'

# Where registries are, the configuration says.
start_registry
push "$work/tiny:latest" hub/base:1
jq -n --arg url "http://$registry/hub" '{registry: {mirrors: {"registry.test": [$url]}}}' >"$work/config.json"
agent "$work/mirrored.json" registry.test/base:1 'ENV A=1'
said=$(job "$work/mirrored.json" config="$work/config.json")
holds "a job asks the mirrors of the configuration" "$said" '^result '

# A job that is cancelled, or whose parent dies, or that dies itself, leaves nothing.
agent "$work/d.json" base:1 'RUN echo first; echo 1 >/one' 'RUN echo begun; sleep 100'
begin() # starts a job, and sets parent to its process
{
	mkfifo "$work/in.$1"
	"$JOB_PARENT" "$HEARTH" "$HEARTH_DATA" "$work/d.json" <"$work/in.$1" >"$work/out.$1" 2>&1 &
	parent=$!
	servers+=("$parent")
	exec {input}>"$work/in.$1"
	wait_for 60 grep -q '^log begun' "$work/out.$1"
}
begin cancel
echo stop >&"$input"
wait "$parent" || status=$?
same "a cancelled job ends as such" "$status" 130
nothing_left "a cancelled job leaves nothing"
begin parent
kill -9 "$parent"
nothing_left "a job whose parent dies leaves nothing"
begin child
kill -9 "$(pgrep -P "$parent" -x hearth)"
wait "$parent" || status=$?
same "a job that dies may be tried again" "$status" 75
nothing_left "a job that dies leaves nothing"
holds "a job that is started again finds the steps that were made" "$(cat "$work/out.child")" '^running 1/2 cached RUN echo first'

# Between its result and its publishing a job keeps what it made from a collector.
agent "$work/e.json" base:1 'RUN echo kept >/kept'
"$JOB_PARENT" "$HEARTH" "$HEARTH_DATA" "$work/e.json" version=9 keep="$work/go" <&"$open" >"$work/out.e" 2>&1 &
parent=$!
servers+=("$parent")
wait_for 60 grep -q '^result' "$work/out.e"
hearth gc --all >/dev/null 2>&1
touch "$work/go"
status=0
wait "$parent" || status=$?
same "what waits to be published is published" "$status" 0
check "what waited to be published is whole" hearth fsck
check "what waited to be published can be exported" hearth export agent:9 "oci:$work/exported"
nothing_left "jobs leave nothing"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rebake.sh - an image made anew: a base that moves, a step whose content moves, a bake that is killed.
. "$(dirname "$0")/lib.sh"
: "${JOB_PARENT:?is the stand-in for the daemon}"

# What steps fetch, and each request for it as a line of served.log.
mkdir "$work/served"
echo 1 >"$work/served/moves"
for n in 1 2 3 4 5 6; do echo "$n" >"$work/served/step-$n"; done
serve_port=$(free_port)
setpriv --pdeathsig TERM python3 -u -m http.server -d "$work/served" -b 127.0.0.1 "$serve_port" >/dev/null 2>"$work/served.log" &
servers+=($!)
wait_for 60 curl -fsS "http://127.0.0.1:$serve_port/moves"

fetched() # NAME: how often a step fetched it
{
	grep -c "\"GET /$1 HTTP" "$work/served.log" || true
}

agent() # FILE BASE STEP...
{
	local file=$1
	shift
	spec "$file.image" "$@"
	jq '{slug: "agent", model: {provider: "gateway", model: "m"}, system: "s", sandbox: {image: .}}' "$file.image" >"$file"
}

mkfifo "$work/open"
exec {open}<>"$work/open" # says nothing and does not end

job() # SPEC [NAME=VALUE...]: prints its events
{
	"$JOB_PARENT" "$HEARTH" "$HEARTH_DATA" "$@" "host=files.test=127.0.0.1:$serve_port" <&"$open" 2>>"$work/parent.log"
}

begin() # FILE SPEC [NAME=VALUE...]: the same behind our back; sets parent
{
	local out=$1
	shift
	"$JOB_PARENT" "$HEARTH" "$HEARTH_DATA" "$@" "host=files.test=127.0.0.1:$serve_port" <&"$open" >"$out" 2>>"$work/parent.log" &
	parent=$!
	servers+=("$parent")
}

image_of() { sed -n 's/^result \([^ ]*\) .*/\1/p' <<<"$1"; }
base_of() { sed -n 's/^result .* base=\([^ ]*\) .*/\1/p' <<<"$1"; }

start_registry
tiny_base >/dev/null
push "$work/tiny:latest" base:1
agent "$work/a.json" "$registry/base:1" 'ENV A=1' 'WORKDIR /srv' 'RUN wget -q -O got http://files.test/moves' 'RUN cat got >copy'
said=$(job "$work/a.json" version=1)
first=$(image_of "$said")
base=$(base_of "$said")
same "a bake runs its step once" "$(fetched moves)" 2 # one of them was curl

# Nothing moved.
said=$(job "$work/a.json" version=1 previous="$first" rebake=0)
holds "a rebake in which nothing moved is unchanged" "$said" "^result $first .* unchanged$"
same "a rebake runs its steps anew" "$(fetched moves)" 3
holds "a rebake finds what runs no command" "$said" '^running 2/4 cached WORKDIR /srv$'
holds "a rebake runs each RUN" "$said" '^running 4/4 begun RUN cat got'
said=$(job "$work/a.json" version=1 previous="$first" rebake=4)
same "a rebake from a step on finds those above it" "$(fetched moves)" 3
holds "a rebake from a step on runs that one" "$said" '^running 4/4 begun RUN cat got'

# What the step reads moved. Until it is published nobody sees the new image.
echo 2 >"$work/served/moves"
begin "$work/out.moved" "$work/a.json" version=1 previous="$first" rebake=0 keep="$work/go"
wait_for 60 grep -q '^result' "$work/out.moved"
said=$(job "$work/a.json" version=2)
holds "what a rebake made is found by nobody before it is published" "$said" "^result $first .* cached=4$"
hearth gc --all >/dev/null 2>&1
touch "$work/go"
wait "$parent"
second=$(image_of "$(cat "$work/out.moved")")
check "a step whose content moved makes another image" test "$first" != "$second"
same "a published rebake is what the version's name stands for" "$(hearth inspect agent:1 --json | jq -r .digest)" "$second"
said=$(job "$work/a.json" version=3)
holds "what a rebake made is found when it is published" "$said" "^result $second .* cached=4$"
check "an image that was collected around is whole" hearth fsck

# The base moved.
"$here/image.py" "$work/moved:latest" tiny --env MOVED=1 >/dev/null
push "$work/moved:latest" base:1
said=$(job "$work/a.json" version=4 base="$base")
holds "a base that moved rebuilds no step" "$said" "^result $second base=$base .* cached=4$"
said=$(job "$work/a.json" version=4 previous="$second" rebake=0)
third=$(image_of "$said")
check "a rebake takes the base that moved" test "$(base_of "$said")" != "$base"
check "a moved base makes another image" test "$third" != "$second"
said=$(job "$work/a.json" version=5 base="$base")
holds "a version keeps its predecessor's base, whatever its name is now" "$said" "^result $second base=$base .* cached=4$"
said=$(HEARTH_DATA=$work/other job "$work/a.json" version=1 base="$base")
holds "an inherited base that is not here is pulled by its digest" "$said" "^result .* base=$base "
said=$(HEARTH_DATA=$work/other job "$work/a.json" version=2 base="sha256:$(printf '%064d' 7)")
holds "an inherited base that nobody has is resolved anew" "$said" "^result .* base=$(base_of "$(job "$work/a.json" version=1)") "
hearth tag "$second" kept >/dev/null
hearth gc --all >/dev/null 2>&1
agent "$work/b.json" "$registry/base:1" 'ENV A=1' 'WORKDIR /srv' 'RUN wget -q -O got http://files.test/moves' 'RUN cat got got >copy'
mv "$work/registry/docker/registry/v2/repositories/base" "$work/lost"
said=$(job "$work/b.json" version=6 base="$base")
holds "an inherited base is kept as long as an image of it" "$said" "^result .* base=$base .* cached=3$"
hearth import "$(tiny_base)" --tag ours:1 >/dev/null 2>&1
agent "$work/c.json" ours:1 'RUN echo ours >/ours'
ours=$(image_of "$(job "$work/c.json" version=1)")
said=$(job "$work/c.json" version=1 previous="$ours" rebake=0)
holds "a base that is tagged here is no registry's to be asked for" "$said" "^result $ours .* unchanged$"

# A rebake that fails publishes nothing.
agent "$work/d.json" ours:1 'RUN wget -q -O /got http://files.test/moves; cat /proc/sys/kernel/random/uuid >/id' 'RUN test "$(cat /got)" != 3'
said=$(job "$work/d.json" version=7)
served=$(image_of "$said")
echo 3 >"$work/served/moves"
status=0
said=$(job "$work/d.json" version=7 previous="$served" rebake=0) || status=$?
same "a rebake whose step fails has failed" "$status" 1
id=$(sed -n 's/^id //p' <<<"$said")
same "an image stays where its rebake failed" "$(hearth inspect agent:7 --json | jq -r .digest)" "$served"
before=$(fetched moves)
said=$(job "$work/d.json" version=7)
holds "what a failed rebake made is found by nobody" "$said" "^result $served .* cached=2$"
hearth gc --all >/dev/null 2>&1
said=$(job "$work/d.json" version=7 rebake=0 id="$id" || true)
holds "an open rebake's steps are collected by nobody" "$said" '^running 1/2 cached RUN wget'
same "an open rebake repeats no step that was made" "$(fetched moves)" "$before"
said=$(job "$work/d.json" version=7 rebake=0 id=bak_unknown || true)
hearth gc >/dev/null 2>&1
said=$(job "$work/d.json" version=7 rebake=0 id=bak_unknown || true)
holds "what no open rebake owns is collected" "$said" '^running 1/2 begun RUN wget'

# The same step of an ordinary bake and of a rebake, at the same time.
agent "$work/e.json" ours:1 'RUN wget -q -O /got http://files.test/step-1; while ! wget -q -O /go http://files.test/go; do sleep 0.1; done'
asked() { [ "$(fetched step-1)" = "$1" ]; }
begin "$work/out.ordinary" "$work/e.json" version=8
wait_for 60 asked 1
begin "$work/out.rebake" "$work/e.json" version=8 rebake=0
check "a rebake joins no ordinary bake's step" wait_for 60 asked 2
touch "$work/served/go"
check "a bake and a rebake of one step both end" wait_for 60 grep -q '^published' "$work/out.ordinary"
check "a rebake and a bake of one step both end" wait_for 60 grep -q '^published' "$work/out.rebake"

# Killed at random moments, and started again under the same id.
steps=()
for n in 1 2 3 4 5 6; do steps+=("RUN wget -q -O /got-$n http://files.test/step-$n; echo $n >>/all; sleep 0.1"); done
agent "$work/f.json" ours:1 "${steps[@]}"
said=$(job "$work/f.json" version=9)
served=$(image_of "$said")
begin "$work/kill.0" "$work/f.json" version=9 previous="$served" rebake=0
wait_for 60 grep -q '^id ' "$work/kill.0"
id=$(sed -n 's/^id //p' "$work/kill.0")
RANDOM=${SEED:-$$}
echo "seed ${SEED:-$$}"
for round in $(seq "${ROUNDS:-30}"); do
	sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
	victim=$parent
	[ $((round % 2)) = 0 ] || victim=$(pgrep -P "$parent" -x hearth) || victim=$parent
	kill -9 "$victim" 2>/dev/null || true
	wait "$parent" 2>/dev/null || true
	! grep -q '^published' "$work/kill.$((round - 1))" || break
	begin "$work/kill.$round" "$work/f.json" version=9 previous="$served" rebake=0 id="$id"
done
wait "$parent" 2>/dev/null || true
last=$(ls "$work"/kill.* | sort -t. -k2 -V | tail -n 1)
echo "killed $round times"
holds "a rebake that is killed at any moment ends well" "$(cat "$last")" "^result $served .* unchanged$"
holds "a rebake that was killed is published" "$(cat "$last")" '^published'
for n in 1 2 3 4 5 6; do
	# As the runs followed each other: once made, a step is only found.
	after=$(ls "$work"/kill.* | sort -t. -k2 -V | xargs cat | sed -n "1,/^running $n\\/6 \\(done\\|cached\\)/d; /^running $n\\/6 begun/p")
	same "a killed rebake makes step $n no second time" "$after" ""
done
nothing_left "rebakes that were killed leave nothing"
check "a store with killed rebakes is whole" hearth fsck
finish

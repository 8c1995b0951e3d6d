#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 at random moments of bakes and pulls: nothing is lost, nothing is wrong, nothing is left.
#
# SEED repeats a run; ROUNDS is how many kills have to hit a bake that runs.
. "$(dirname "$0")/lib.sh"

rounds=${ROUNDS:-12}
[ "${HEARTH_LONG:-0}" = 0 ] || rounds=${ROUNDS:-100}
RANDOM=${SEED:=$(($(date +%s) % 32768))}
echo "SEED=$SEED ROUNDS=$rounds"

start_registry
debian_base
push "$debian:bookworm-slim" debian:1
base=$(tiny_base)

# Steps whose layers are the same bytes in every store and round.
steps=("RUN i=0; while [ \$i -lt 300 ]; do echo \$i > /var/\$i; i=\$((i + 1)); done; touch -d @1000 /var/* /var" \
	"RUN seq 1 400000 > /var/numbers; touch -d @1000 /var/numbers /var" \
	"RUN rm /var/1?; touch -d @1000 /var")

round() # N: its spec; the environment makes every key another
{
	spec "$work/round-$1.json" "$base" "ENV ROUND=$1" "${steps[@]}"
	echo "$work/round-$1.json"
}

layers() # DIGEST-OF-A-BAKE SPEC: diff ids, after every blob was read and compared with its name
{
	rm -rf "$work/out" "$work/copy"
	hearth bake "$2" --output "oci:$work/out:x" >/dev/null 2>&1
	skopeo --insecure-policy copy -q "oci:$work/out:x" "dir:$work/copy" >/dev/null
	skopeo inspect --config "oci:$work/out:x" | jq -c .rootfs.diff_ids
	(cd "$work/out/blobs/sha256" && for name in *; do echo "$name  $name"; done | sha256sum --check --quiet)
}

pick() # LIMIT: a random number below it
{
	echo $(((RANDOM << 15 | RANDOM) % $1))
}

# Kill the command, one of what it started, or all of it, within so many milliseconds; counts in
# hits when it still ran.
kill_within() # MS PID
{
	local after=$(($(pick "$1") + 1)) victims=("$2")
	sleep "$((after / 1000)).$(printf '%03d' $((after % 1000)))"
	mapfile -t started < <("$here/leftovers.py" --pids "$HEARTH_DATA" | awk '/ (\.?hearth-|crun|runc)/ {print $1}')
	case $((RANDOM % 3)) in
	1) [ ${#started[@]} = 0 ] || victims=("${started[RANDOM % ${#started[@]}]}") ;;
	2) victims+=("${started[@]}") ;;
	esac
	! kill -0 "$2" 2>/dev/null || hits=$((hits + 1))
	kill -KILL "${victims[@]}" 2>/dev/null || true
	{ wait "$2"; } 2>/dev/null || true
}

first=$(bake "$(round 0)" --tag first:1)
expected=$(layers "$first" "$(round 0)")
span=100000
for n in a b c; do # the fastest, since other work may stand in the way of one
	start=${EPOCHREALTIME/./}
	hearth bake "$(round undisturbed-$n)" >/dev/null 2>&1
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	span=$((took < span ? took : span))
done
echo "undisturbed: $span ms"

wrong=0 hits=0
for ((n = 1; hits < rounds && n <= 5 * rounds; n++)); do
	file=$(round "$n")
	setsid "$HEARTH" bake "$file" >"$work/round.log" 2>&1 &
	kill_within "$span" $!
	hearth images >/dev/null || wrong=$((wrong + 1))
	((n % 2)) || [ "$(layers x "$file")" = "$expected" ] || wrong=$((wrong + 1))
done
kills=$((n - 1))
same "of $kills kills $rounds hit a running bake" "$hits" "$rounds"
same "the store answered after each, and the next bake made the right layers" "$wrong" 0
for ((n = 1; n <= kills; n++)); do
	[ "$(layers x "$(round "$n")")" = "$expected" ] || wrong=$((wrong + 1))
done
same "at the end every one of them has the right layers" "$wrong" 0
spec "$work/last.json" "$base" "RUN echo the last one sweeps"
bake "$work/last.json" >/dev/null
same "what was baked before is what it was" "$(bake "$(round 0)")" "$first"
same "and still cached" "$(cached)" 4
holds "its tag is there" "$(hearth images)" first:1
nothing_left "nothing is left over"

pulls=$((rounds / 5))
export HEARTH_DATA=$work/pulled
start=${EPOCHREALTIME/./}
digest=$(hearth pull "$registry/debian:1" 2>/dev/null | tail -n 1)
span=$(((${EPOCHREALTIME/./} - start) / 1000))
echo "undisturbed pull: $span ms"
for ((n = 1; n <= pulls; n++)); do
	export HEARTH_DATA=$work/pull-$n
	setsid "$HEARTH" pull "$registry/debian:1" >"$work/round.log" 2>&1 &
	kill_within "$span" $!
	[ "$(hearth pull "$registry/debian:1" 2>/dev/null | tail -n 1)" = "$digest" ] || wrong=$((wrong + 1))
	spec "$work/use.json" "$registry/debian:1" "RUN test -x /usr/bin/apt-get && dpkg -l dpkg"
	hearth bake "$work/use.json" >/dev/null 2>&1 || wrong=$((wrong + 1))
	"$here/leftovers.py" "$HEARTH_DATA" || wrong=$((wrong + 1))
	rm -rf "$HEARTH_DATA"
done
same "$pulls killed pulls: the next one completes, and its image runs" "$wrong" 0
finish

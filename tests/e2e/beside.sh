#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collections of everything beside all that uses the store, and killed ones:
# nothing that is in use goes, and what is left is whole.
. "$(dirname "$0")/lib.sh"
rounds=${ROUNDS:-8}

start_registry
base=$(tiny_base)
for n in 1 2; do
	spec "$work/$n.json" "$base" "RUN head -c 1000000 /dev/urandom > /shared" "RUN head -c 500000 /dev/urandom > /own-$n"
done
there=$registry/kept:1
kept=$(bake "$work/1.json" --tag "$there")
hearth push --plain-http "$there" >"$work/push.log" 2>&1
hearth export "$there" "docker-archive:$work/docker.tar" >/dev/null 2>&1
hearth export "$there" "oci-archive:$work/oci.tar" >/dev/null 2>&1

collecting() # until the file "done" is there
{
	while [ ! -e "$work/done" ]; do
		hearth gc --all --json >"$work/gc.$1" 2>&1 || { cp "$work/gc.$1" "$work/gc.failed"; return 1; }
		echo "$1" >>"$work/collections"
	done
}
over_and_over() # NAME COMMAND...
{
	local name=$1
	shift
	for n in $(seq "$rounds"); do
		"$HEARTH" "$@" >"$work/$name.log" 2>&1 || { echo "round $n" >>"$work/$name.log"; return 1; }
	done
}

collecting 1 & collectors=($!)
collecting 2 & collectors+=($!)
declare -A running
over_and_over bake bake "$work/2.json" & running[bake]=$!
over_and_over output bake "$work/2.json" --output "oci-archive:$work/output.tar" & running[output]=$!
over_and_over pull pull --plain-http "$there" --data "$HEARTH_DATA" & running[pull]=$!
over_and_over import import "docker-archive:$work/docker.tar" --tag imported:1 & running[import]=$!
over_and_over copy copy --plain-http "oci-archive:$work/oci.tar" "$registry/copied:1" & running[copy]=$!
over_and_over convert copy --compression gzip "oci-archive:$work/oci.tar" "docker-archive:$work/gzip.tar" & running[convert]=$!
over_and_over export export "$there" "oci:$work/export:1" & running[export]=$!
over_and_over push push --plain-http "$there" & running[push]=$!
for name in "${!running[@]}"; do
	status=0
	wait "${running[$name]}" || status=$?
	same "$name ends well beside collections, $rounds times" "$status" 0
	[ "$status" = 0 ] || tail -n 5 "$work/$name.log"
done
touch "$work/done"
status=0
wait "${collectors[0]}" && wait "${collectors[1]}" || status=$?
same "so do they, $(wc -l <"$work/collections") of them" "$status" 0
[ "$status" = 0 ] || cat "$work/gc.failed"
for out in output gzip; do
	kind=$([ $out = gzip ] && echo docker || echo oci)
	check "$out.tar is whole" skopeo --insecure-policy copy -q "$kind-archive:$work/$out.tar" "dir:$work/$out"
done
same "what was named is there" "$(hearth inspect "$there" --json | jq -r .digest)" "$kept"
check "and the store whole" hearth fsck

# Killed wherever they are.
killed=0
for n in $(seq "$((rounds * 2))"); do
	spec "$work/gone.json" "$base" "RUN head -c 1000000 /dev/urandom > /gone-$n"
	bake "$work/gone.json" >/dev/null
	"$HEARTH" gc --all >/dev/null 2>&1 & collector=$!
	read -rt "0.0$((RANDOM % 3))$((RANDOM % 10))" <> <(:) || true
	kill -9 $collector 2>/dev/null && killed=$((killed + 1))
	wait $collector 2>/dev/null || true
done
check "$killed of $((rounds * 2)) collections were killed" test "$killed" -gt 0
check "the store is whole all the same" hearth fsck
same "what was named is cached" "$(bake "$work/1.json")" "$kept"
same "all of it" "$(cached)" 2
hearth gc --all >/dev/null
same "and what they left goes with the next one" "$(hearth gc --all --json | jq -c '[.images, .steps, .blobs, .trees]')" '[[],0,0,0]'
nothing_left "nothing is left over"
finish

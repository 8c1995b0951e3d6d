#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Twenty bakes at once, half of whose steps are the same: what is shared runs once, and is shared.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
bakes=20
ran() # NAME: a step that leaves its name where all steps find it
{
	echo "RUN --mount=type=cache,id=ran,target=/ran echo $1 >>/ran/steps; head -c 64 /dev/urandom >/srv/$1"
}

for n in $(seq $bakes); do
	steps=()
	for i in 1 2 3; do steps+=("$(ran "shared-$i")"); done
	for i in 1 2 3; do steps+=("$(ran "own-$n-$i")"); done
	spec "$work/$n.json" "$base" "${steps[@]}"
done

bakers=()
for n in $(seq $bakes); do
	"$HEARTH" bake "$work/$n.json" --tag "many:$n" >"$work/$n.digest" 2>"$work/$n.log" &
	bakers+=($!)
done
failures=0
for n in $(seq $bakes); do
	wait "${bakers[n - 1]}" || { failures=$((failures + 1)) && tail -n 5 "$work/$n.log"; }
done
same "all of them bake" "$failures" 0

times() # PREFIX: of the steps so named, how often they ran, and how many of them
{
	sort "$HEARTH_DATA"/caches/*/data/steps | uniq -c | awk -v prefix="$1" 'index($2, prefix) == 1 {print $1}' |
		sort | uniq -c | awk '{print $1 " ran " $2}'
}
same "each step that is shared runs once" "$(times shared-)" "3 ran 1"
same "and so does each that is not" "$(times own-)" "$((3 * bakes)) ran 1"

diff_ids() # N: of the image's layers
{
	hearth inspect "many:$1" --json | jq -c '.config.rootfs.diff_ids'
}
diff_ids 1 >"$work/first"
strangers=0
for n in $(seq 2 $bakes); do
	jq -e --argjson n "$(diff_ids "$n")" '.[:4] == $n[:4] and .[4:] != $n[4:] and length == ($n | length)' \
		"$work/first" >/dev/null || strangers=$((strangers + 1))
done
same "what it made is in all images" "$strangers" 0
same "of which no two are the same" "$(cat "$work"/*.digest | sort -u | wc -l)" "$bakes"
bake "$work/7.json" >/dev/null
same "all is cached" "$(cached)" 6
nothing_left "nothing is left over"
finish

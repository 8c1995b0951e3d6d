#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What takes the space, and whether it is as much as the file system says.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
same "where there is no store nothing takes space" "$(hearth du --json | jq -c '[.bytes, .images]')" '[0,[]]'

# A file system of its own: what it has less afterwards is what the store takes.
own_disk 600M
used() # bytes of the file system
{
	sync -f "$work/mnt"
	df -B1 --output=used "$work/mnt" | tail -n 1
}
near() # A B: within one per cent
{
	local off=$(($1 - $2))
	[ $((${off#-} * 100)) -le "$2" ]
}
empty=$(used)

spec "$work/one.json" "$base" "RUN head -c 30000000 /dev/urandom > /shared" "RUN head -c 9000000 /dev/urandom > /one; i=0; while [ \$i -lt 500 ]; do echo \$i > /f\$i; i=\$((i + 1)); done"
jq '.steps[1] = "RUN head -c 5000000 /dev/urandom > /two; ln /two /again; truncate -s 400M /hole"' "$work/one.json" >"$work/two.json"
one=$(bake "$work/one.json" --tag one:1 --tag one:also)
two=$(bake "$work/two.json" --tag two:1)
spec "$work/cache.json" "$base" "RUN --mount=type=cache,id=pkgs,target=/c head -c 7000000 /dev/urandom > /c/x"
bake "$work/cache.json" >/dev/null
spec "$work/logs.json" "$base" "RUN head -c 100000 /dev/urandom | od -x"
bake "$work/logs.json" >/dev/null
said=$(hearth du --json)
all=$(jq .bytes <<<"$said")
check "the sum ($all) is what df misses ($(($(used) - empty))), within one per cent" near "$all" $(($(used) - empty))
same "and exactly what du says" "$(hearth du --json | jq .bytes)" "$(du -sB1 "$HEARTH_DATA" | cut -f1)"
same "directories make it up" "$(jq '[.directories[].bytes] | add' <<<"$said")" "$all"

of() # IMAGE FILTER
{
	jq --arg digest "$1" ".images[] | select(.digest == \$digest) | $2" <<<"$said"
}
same "an image is listed once, with all its names" "$(of "$one" '.names | map(split("/")[-1]) | sort | join(" ")')" '"one:1 one:also"'
check "an image's own is what no other has" near "$(of "$one" .uniqueBytes)" 9007000
check "of the other, too" near "$(of "$two" .uniqueBytes)" 5000000
check "what they share is told" test "$(of "$one" .sharedBytes)" -gt 30000000
same "size is both" "$(of "$one" '.uniqueBytes + .sharedBytes')" "$(of "$one" .sizeBytes)"
same "a layer of two images is one, and knows its tree" \
	"$(jq '[.layers[] | select(.images >= 2 and .sizeBytes > 29000000 and .treeBytes > 29000000)] | length' <<<"$said")" 1
same "a cache has its id" "$(jq -r '.caches[].id' <<<"$said" | cut -d' ' -f1)" pkgs
check "and its size" near "$(jq '.caches[0].bytes' <<<"$said")" 7000000
check "logs have theirs" test "$(jq .chunks.of.logs <<<"$said")" -gt 50000
same "everything has an owner" "$(jq .chunks.of.unnamed <<<"$said")" 0
same "the largest come first" "$(jq '[.images[].uniqueBytes] | . == (sort | reverse)' <<<"$said")" true
same "trees, too" "$(jq '[.trees[].bytes] | . == (sort | reverse)' <<<"$said")" true
text=$(hearth du --layers)
holds "text has the sum" "$text" "MB .*$HEARTH_DATA"
holds "the images" "$text" 'two:1 +[0-9a-f]{12} +[0-9.]+ MB +5.0 MB'
holds "the layers" "$text" '^LAYER'
holds "the caches" "$text" 'MB +pkgs linux/'

freed=$(hearth rm two:1 --json | jq .freedBytes)
hearth gc >/dev/null
check "what is an image's own comes back with it" test "$freed" -gt 5000000
said=$(hearth du --json)
check "then du and df still agree" near "$(jq .bytes <<<"$said")" $(($(used) - empty))
same "and the image is gone" "$(of "$two" .digest)" ""
check "what was shared is now the other's own" test "$(of "$one" .uniqueBytes)" -gt 39000000
umount "$work/mnt"
export HEARTH_DATA=$work/data
nothing_left "nothing is left over"
finish

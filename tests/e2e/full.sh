#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A disk that is full before anything was collected on it.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
own_disk 160M
spec "$work/kept.json" "$base" "RUN head -c 20000000 /dev/urandom > /file"
kept=$(hearth bake "$work/kept.json" --tag kept:1 2>"$work/bake.log" | tail -n 1)
mkdir "$work/context"
head -c 20000000 /dev/urandom >"$work/context/file"
hearth context put "$work/context" >/dev/null

fill() # to the last byte
{
	dd if=/dev/zero of="$work/mnt/filler" bs=1M oflag=append conv=notrunc 2>/dev/null || true
	dd if=/dev/zero of="$work/mnt/filler" bs=4k oflag=append conv=notrunc 2>/dev/null || true
}
available() # bytes
{
	df --output=avail -B1 "$work/mnt" | tail -n 1
}
fill
truncate -s -2M "$work/mnt/filler"
tree=$(find "$HEARTH_DATA/trees" -name file -size +10000k)
printf X | dd of="$tree" bs=1 seek=12345678 conv=notrunc 2>/dev/null
said=$(hearth fsck --dry-run) || true
holds "a tree that is wrong and has no room beside it is told" "$said" \
	'^tree sha256:[0-9a-f]{64}: has no room beside it'
holds "the others are looked at all the same" "$said" 'blobs: clean'
same "and nothing is left in the trash" "$(ls "$HEARTH_DATA/trash")" ""
fill
check "the last byte is taken" test "$(available)" -lt 4096
check "a collection makes the room that it needs itself" hearth gc --all
check "and gives back what nothing names" test "$(available)" -gt 30000000
same "what is tagged stayed" "$(hearth inspect kept:1 --json | jq -r .digest)" "$kept"
same "and is cached" "$(hearth bake "$work/kept.json" 2>"$work/bake.log" | tail -n 1)" "$kept"
check "the store is clean" hearth fsck
check "the reserve was made again" test "$(stat -c %s "$HEARTH_DATA/reserve")" -eq 4194304

# While one bake has filled the disk others go on, and so do they when it has failed.
rm "$work/mnt/filler"
spec "$work/other.json" "$base" \
	'RUN --mount=type=cache,id=gate,target=/gate touch /gate/other; echo started; while [ -e /gate/other ]; do sleep 0.05; done; echo small >/small' \
	"RUN cat /small"
spec "$work/filling.json" "$base" \
	'RUN --mount=type=cache,id=filled,target=/gate touch /gate/filled; dd if=/dev/zero of=/big bs=1M count=1000 || { echo full; while [ -e /gate/filled ]; do sleep 0.05; done; exit 1; }'
"$HEARTH" bake "$work/other.json" --progress plain >"$work/other.log" 2>&1 &
other=$!
wait_for 60 grep -qxF '[1/2] started' "$work/other.log" || cat "$work/other.log"
"$HEARTH" bake "$work/filling.json" --progress plain >"$work/filling.log" 2>&1 &
filling=$!
wait_for 60 grep -qxF '[1/1] full' "$work/filling.log" || cat "$work/filling.log"
check "a bake has filled the disk ($(available) bytes are free)" test "$(available)" -lt 2000000
same "another one that is cached ends well beside it" "$(hearth bake "$work/kept.json" 2>"$work/bake.log" | tail -n 1)" "$kept"
while kill -0 "$filling" 2>/dev/null; do # it may be made twice, on a cache that is new
	rm -f "$HEARTH_DATA"/caches/*/data/filled
	sleep 0.1
done
status=0
wait "$filling" || status=$?
check "the one that filled it fails" test "$status" != 0
holds "by a sentence that names the space" "$(cat "$work/filling.log")" '[Nn]o space'
check "the other one runs on" kill -0 "$other"
rm "$HEARTH_DATA"/caches/*/data/other
status=0
wait "$other" || { status=$?; cat "$work/other.log"; }
same "and ends well" "$status" 0

# As much as somebody wants to be free, and no more than has to go for it.
for n in 1 2 3; do
	spec "$work/new.json" "$base" "RUN head -c 8000000 /dev/urandom > /file && echo $n"
	hearth bake "$work/new.json" >"$work/last" 2>"$work/bake.log"
done
hearth gc >/dev/null
free=$(($(available) + 14000000))
said=$(hearth gc --min-free "$free" --json 2>"$work/gc.log")
check "a collection that wants more free space takes something" test "$(jq .freedBytes <<<"$said")" -ge 14000000
check "until there is so much ($(available) of $free)" test "$(available)" -ge "$free"
same "but no image for it, where trees are enough" "$(jq -c '[.images, .missingBytes]' <<<"$said")" '[[],0]'
same "and says nothing" "$(cat "$work/gc.log")" ""
said=$(hearth gc --min-free 1G --json 2>"$work/gc.log")
holds "where nothing more can go it says so" "$(cat "$work/gc.log")" '^hearth: .* too little: what is left has a tag or is in use'
check "and how much is missing" test "$(jq .missingBytes <<<"$said")" -ge $((1000000000 - $(available) - 1000000))
check "all that no tag needs went" test "$(jq '.images | length' <<<"$said")" -ge 3
same "what is tagged stayed" "$(hearth inspect kept:1 --json | jq -r .digest)" "$kept"
check "whole" hearth export kept:1 "oci-archive:$work/kept.tar"

# A disk that is full where there is no tree that could make room, either.
rm -rf "$HEARTH_DATA"
rm -f "$work/mnt/filler"
hearth context put "$work/context" >/dev/null
rm -rf "$HEARTH_DATA"/trees/*
fill
check "with no trees the last byte is taken" test "$(available)" -lt 4096
check "the reserve makes the room that a collection needs" hearth gc --all
check "and it gives back all" test "$(available)" -gt 15000000
check "and makes the reserve again" test "$(stat -c %s "$HEARTH_DATA/reserve")" -eq 4194304
check "that store is clean" hearth fsck
nothing_left "nothing is left over on it"

# A daemon on it: what there is no room for is baked when there is.
start_registry
tar -C "$work/context" -cf "$work/large.tar" file
"$here/image.py" "$work/large:latest" tiny "$work/large.tar" >/dev/null
push "$work/large:latest" large:1
hearth import "$base" --tag base:1 >/dev/null 2>&1
fill
truncate -s -12M "$work/mnt/filler"
start_daemon --grace 1
agent() # SLUG BASE STEP...: its spec
{
	jq -nc --arg slug "$1" --arg base "$2" '{$slug, sandbox: {image: {$base, steps: $ARGS.positional}}}' --args "${@:3}"
}
status_is() # SLUG FILTER
{
	ask "/v1/agents.imageStatus?id=$1" | head -n -1 | jq -e "$2"
}
ask /v1/agents.sync -d "$(agent large "$registry/large:1")" >/dev/null
check "an image that there is no room for waits" wait_for 60 status_is large '.phase == "waiting"'
check "which is said, with when it is tried again" status_is large \
	'.status == "baking" and .error.code == "StoreFull" and .error.terminal == false and .attempt >= 1 and (.retryAt | endswith("Z"))'
ask /v1/agents.sync -d "$(agent small base:1 'RUN echo small >/small')" >/dev/null
check "a small one is made beside it" wait_for 60 status_is small '.status == "ready"'
rm "$work/mnt/filler"
check "and the large one when there is room" wait_for 120 status_is large '.status == "ready" and .attempt >= 2'
stop_daemon
nothing_left "nothing is left over of the daemon"
finish

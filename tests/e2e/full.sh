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
dd if=/dev/zero of="$work/mnt/filler" bs=1M 2>/dev/null || true
dd if=/dev/zero of="$work/mnt/filler" bs=4k oflag=append conv=notrunc 2>/dev/null || true

available() # bytes
{
	df --output=avail -B1 "$work/mnt" | tail -n 1
}
check "the last byte is taken" test "$(available)" -lt 4096
check "a collection makes the room that it needs itself" hearth gc --all
check "and gives back what nothing names" test "$(available)" -gt 30000000
same "what is tagged stayed" "$(hearth inspect kept:1 --json | jq -r .digest)" "$kept"
same "and is cached" "$(hearth bake "$work/kept.json" 2>"$work/bake.log" | tail -n 1)" "$kept"
check "the store is clean" hearth fsck
nothing_left "nothing is left over on it"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A small disk: bakes make room for themselves, and collections bring it back.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
own_disk 164M # four of them are the reserve
available() # bytes
{
	df --output=avail -B1 "$work/mnt" | tail -n 1
}
bake_new() # N [ARGUMENT...]: an image whose layer is new, of 8 MB
{
	spec "$work/new.json" "$base" "RUN head -c 8000000 /dev/urandom > /file && echo $1"
	hearth bake "$work/new.json" "${@:2}" 2>"$work/bake.log" | tail -n 1
}
fill() # the disk, to its last byte
{
	dd if=/dev/zero of="$work/mnt/filler" bs=1M oflag=append conv=notrunc 2>/dev/null || true
	dd if=/dev/zero of="$work/mnt/filler" bs=4k oflag=append conv=notrunc 2>/dev/null || true
}
whole() # NAME: all of it can be written out, and read by others
{
	hearth export "$1" "oci-archive:$work/whole.tar" && skopeo --insecure-policy copy -q "oci-archive:$work/whole.tar" "dir:$work/whole"
}

# Twenty of 16 MB, layer and tree, on a disk of 150.
kept=$(bake_new 0 --tag kept:1)
for n in $(seq 20); do
	bake_new "$n" >"$work/last" || { cat "$work/bake.log"; break; }
done
same "bakes make room by themselves, for as long as something can go" "$n" 20
spec "$work/large.json" "$base" "RUN head -c 14000000 /dev/urandom > /file"
check "a step that takes more than there is room for is made once more" bake "$work/large.json"
holds "which is said" "$(cat "$work/bake.log")" 'made once more'
bake_new "$n" >"$work/last"
holds "the last one is there" "$(hearth images --json)" "$(cat "$work/last")"
same "what is tagged stayed" "$(hearth inspect kept:1 --json | jq -r .digest)" "$kept"
check "whole" whole kept:1
same "and cached, though its tree went" "$(bake_new 0 --tag kept:1)" "$kept"
same "its step, too" "$(cached)" 1

# What collections say is what df says.
before=$(available)
said=$(hearth gc --all --json)
same "the disk has what a collection gave back, within 1 %" \
	"$(jq --argjson df $(($(available) - before)) '(.treesBytes + .punchedBytes + .cachesBytes) as $n |
		($n > 10000000) and (($n - $df | fabs) < $n / 100)' <<<"$said")" true
check "of nothing that is named" whole kept:1

# Full of what is tagged: nothing can go, until somebody says so.
for n in $(seq 20); do
	bake_new "tagged $n" --tag "tagged:$n" >"$work/last" || break
done
check "a disk that is full of what is tagged ends the bakes" test "$n" -lt 20
holds "by a sentence that says what to do" "$(cat "$work/bake.log")" 'hearth gc --all'
hearth rm "tagged:$((n - 1))" "tagged:$((n - 2))" "tagged:$((n - 3))" >/dev/null
spec "$work/another.json" "$base" "RUN head -c 13000000 /dev/urandom > /file"
check "what is untagged makes room for another" bake "$work/another.json" --tag another:1
fill
check "the last byte is taken" test "$(available)" -lt 4096
check "a collection says what it would do on a full disk" hearth gc --all --dry-run
check "and does it" hearth gc --all --max-size 1
check "which gives trees back" test "$(available)" -gt 8000000
fill
spec "$work/none.json" "$base" "RUN dd if=/dev/zero of=/file bs=1M count=300 || true"
refused "a bake that has no room, even for its lease, ends" 74 'space' timeout 60 "$HEARTH" bake "$work/none.json"
check "then a tag can be taken away" hearth rm another:1
rm "$work/mnt/filler"
check "and a bake works" bake_new again
check "what stayed is whole" whole tagged:1
check "all of it" whole kept:1

# A record that a collection removed is made again, equal or not, and found.
spec "$work/again.json" "$base" "RUN echo again > /again"
bake "$work/again.json" >/dev/null
hearth gc --all >/dev/null
check "an image that went is baked again" bake "$work/again.json" --tag again:1
same "its step ran" "$(cached)" 0
check "the next one finds it" bake "$work/again.json"
same "as cached" "$(cached)" 1
check "it is whole" whole again:1

mount -o remount,ro "$work/mnt"
refused "a store that cannot be written is not collected" '74|77|70|69' 'read-only' hearth gc --all
mount -o remount,rw "$work/mnt"
check "afterwards it is as it was" whole again:1
nothing_left "nothing is left over on it"
finish

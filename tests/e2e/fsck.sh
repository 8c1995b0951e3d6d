#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A store is damaged behind its back: it is found, named and mended, and the next bake heals.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
spec "$work/a.json" "$base" "RUN echo first > /first" "RUN head -c 3000000 /dev/urandom > /big" \
	"RUN i=0; while [ \$i -lt 4000 ]; do echo line \$i of a log; i=\$((i + 1)); done"
image=$(bake "$work/a.json" --tag a:1 --output "oci:$work/out:1")
blob() # FILTER of the manifest: a digest
{
	jq -r "$1" "$work/out/blobs/sha256/${image#*:}" 2>/dev/null
}
damage() # DATABASE FILE OFFSET: flip the byte at OFFSET of FILE where the database has it
{
	python3 - "$HEARTH_DATA/$1/data.mdb" "$2" "$3" <<'PY'
import sys
database, part, at = sys.argv[1], open(sys.argv[2], "rb").read(), int(sys.argv[3])
start = max(0, at - 64)
wanted = part[start:at + 64]
with open(database, "r+b") as f:
    data = f.read()
    found = data.find(wanted)
    assert found >= 0
    while found >= 0:
        f.seek(found + at - start)
        f.write(bytes([part[at] ^ 0x40]))
        found = data.find(wanted, found + 1)
PY
}
mended() # SENTENCE PHRASE: it is damaged, says the phrase, and is clean afterwards
{
	refused "$1: a dry run says so" 65 "$2" hearth fsck --dry-run
	refused "$1: it is found and named" 65 "$2" hearth fsck
	check "$1: then it is clean" hearth fsck
}
whole() # SENTENCE: the image can be baked, written and read
{
	rm -rf "$work/again" "$work/copy"
	check "$1: the next bake makes it again" bake "$work/a.json" --tag a:1 --output "oci:$work/again:1"
	check "$1: whole" skopeo --insecure-policy copy -q "oci:$work/again:1" "dir:$work/copy"
	check "$1: and then the store is clean" hearth fsck
}

check "what was baked is clean" hearth fsck
same "where there is no store nothing is damaged" "$(HEARTH_DATA=$work/none hearth fsck --json | jq .clean)" true
said=$(hearth fsck --json)
same "all of it was read" "$(jq '[.clean, .findings == [], .chunks > 10, .blobs > 4, .bytes > 3000000] | all' <<<"$said")" true
same "layers and trees, too, and the sum is told" "$(jq '[.tarBytes > 3000000, .treeBytes > 3000000, .ms > 0,
	.verifiedBytes == .bytes + .tarBytes + .treeBytes] | all' <<<"$said")" true
said=$(hearth fsck)
holds "text says so in a line" "$said" 'chunks, .* MB .*blobs: clean'
holds "and the rate of all of it" "$said" 'read and verified .* MB in [0-9.]+s \(.*/s\): chunks .* MB, layers inflated .* MB, trees .* MB'

layer=$(blob '.layers[2].digest')
damage blobs "$work/out/blobs/sha256/${layer#*:}" 1000000
refused "an export of it says what to do" 65 'another digest; hearth fsck mends the store' hearth export a:1 "oci-archive:$work/damaged.tar"
check "and leaves no archive" test ! -e "$work/damaged.tar"
mended "a flipped byte of a layer" "tag docker.io/library/a:1 $image: its layer $layer is damaged"
refused "the tag is gone" 66 'no image' hearth rm a:1
whole "a step whose layer was lost"
same "the step below it was still cached" "$(cached)" 1

image=$(bake "$work/a.json" --tag a:1)
rm -rf "$work/out"
hearth bake "$work/a.json" --output "oci:$work/out:1" >/dev/null 2>&1
layer=$(blob '.layers[0].digest')
damage blobs "$work/out/blobs/sha256/${layer#*:}" 5000
mended "a flipped byte of the base" "its layer $layer is damaged"
whole "a base that was lost"

config=$(blob '.config.digest')
damage blobs "$work/out/blobs/sha256/${config#*:}" 40
mended "a flipped byte of a config" "its config $config is damaged"
whole "an image that was lost"

damage blobs "$work/out/blobs/sha256/${image#*:}" 20
mended "a flipped byte of a manifest" "its manifest $image is damaged"
whole "an image without a manifest"

printf '"manifest":"%s"' "$image" >"$work/part"
damage meta "$work/part" 0
mended "a record that is no JSON" 'record: .*is not a JSON object'
whole "a record that was lost"

rm -rf "$HEARTH_DATA"/trees/*
said=$(hearth fsck)
holds "trees that are gone are told" "$said" '^tree sha256:[0-9a-f]{64}: is gone'
holds "and no damage" "$said" 'clean'
holds "the second time there is nothing to tell" "$(hearth fsck --json | jq -c .findings)" '^\[\]$'
jq '.steps += ["RUN cat /first /big | wc -c"]' "$work/a.json" >"$work/b.json"
check "a step that stands on them runs" bake "$work/b.json"
same "after the cached ones" "$(cached)" 3

# Trees: what is built upon must be what the layer says.
tree() # FILE: where it lies among the trees
{
	find "$HEARTH_DATA/trees" -path "*/$1"
}
bake "$work/a.json" --tag a:1 >/dev/null
hearth bake "$work/b.json" --no-cache >/dev/null 2>&1
hearth bake "$work/b.json" >/dev/null 2>&1
tampered() # SENTENCE COMMAND...
{
	local sentence=$1
	shift
	"$@"
	mended "$sentence" '^tree sha256:[0-9a-f]{64}: differs from its layer'
	spec "$work/c.json" "$base" "RUN echo first > /first" "RUN cat /first; echo $SECONDS.$RANDOM > /c"
	check "$sentence: a step on it runs" bake "$work/c.json"
	same "$sentence: it was made again" "$(cat "$(tree first | head -n 1)")" first
	check "$sentence: right" hearth fsck
}
spec "$work/c.json" "$base" "RUN echo first > /first" "RUN cat /first > /c"
bake "$work/c.json" >/dev/null
tampered "a truncated file" truncate -s 0 "$(tree first)"
tampered "a changed byte" sed -i s/first/furst/ "$(tree first)"
tampered "another mode" chmod 600 "$(tree first)"
tampered "another owner" chown 7:7 "$(tree first)"
tampered "a file that is gone" rm "$(tree first)"
tampered "a file more" touch "$(dirname "$(tree first)")/more"
tampered "a symlink instead" ln -sf /etc/passwd "$(tree first)"
truncate -s 0 "$(tree first)"
check "--quick does not look at trees" hearth fsck --quick
refused "else it is damage" 65 'differs' hearth fsck

# Beside whatever runs there is no false alarm.
for i in 1 2 3 4 5 6; do
	spec "$work/busy.json" "$base" "RUN head -c 2000000 /dev/urandom > /$i" "RUN echo $i > /n"
	bake "$work/busy.json" >/dev/null
	hearth gc --all >/dev/null
done & busy=$!
rounds=0
while kill -0 $busy 2>/dev/null; do
	hearth fsck >"$work/fsck.out" 2>&1 || break
	rounds=$((rounds + 1))
done
wait $busy
check "beside bakes and collections it is clean each of $rounds times" test "$rounds" -gt 2
[ "$rounds" -gt 2 ] || cat "$work/fsck.out"
check "and afterwards" hearth fsck
nothing_left "nothing is left over"
finish

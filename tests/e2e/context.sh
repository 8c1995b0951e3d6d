#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What COPY reads: a directory, a tar on standard input or in a file, a digest.
. "$(dirname "$0")/lib.sh"

context=$work/context
mkdir -p "$context/src/empty" "$context/$(printf 'n%.0s' {1..80})/$(printf 'm%.0s' {1..80})"
echo one >"$context/src/a"
ln "$context/src/a" "$context/src/hard"
ln -s ../src/a "$context/src/link"
echo deep >"$context/$(printf 'n%.0s' {1..80})/$(printf 'm%.0s' {1..80})/file"
echo all >"$context/.wh.src"
echo all >"$context/.wh..wh..opq"
truncate -s 3M "$context/src/sparse"
chmod 4711 "$context/src/a"
setfattr -n user.note -v kept "$context/src/a"
chown -hR 1000:1000 "$context"

spec "$work/s.json" scratch "COPY src $(cd "$context" && echo n*) /srv/"
image=$(bake "$work/s.json" --context "$context")

pack() # OPTION...: the context as a tar, whose owners are others'
{
	tar -C "$context" --xattrs --owner=5000000 --group=7 "$@" -cf - .
}

pack >"$work/c.tar"
pack --zstd >"$work/c.tar.zst"
pack -z >"$work/c.tar.gz"
for kind in tar tar.gz tar.zst; do
	same "a $kind has the key of the directory that was packed" \
		"$(bake "$work/s.json" --context "$work/c.$kind") $(cached)" "$image 1"
done
same "so has a tar on standard input" "$(bake "$work/s.json" --context - <"$work/c.tar") $(cached)" "$image 1"
same "whether it can be read twice or not" "$(pack -z | bake "$work/s.json" --context -) $(cached)" "$image 1"

digest=$(hearth context put "$context")
cp -a "$context" "$work/copy"
find "$work/copy" -exec touch -h -d 2001-02-03 {} + -exec chown -h 0:0 {} +
setfattr -n user.note -v kept "$work/copy/src/a"
same "equal directories are one context, whatever their times and owners" "$(hearth context put "$work/copy")" "$digest"
same "as JSON, too" "$(hearth context put "$context" --json | jq -r .digest)" "$digest"
same "a digest is a context" "$(bake "$work/s.json" --context "$digest") $(cached)" "$image 1"
jq --arg context "$digest" '. + {context: $context}' "$work/s.json" >"$work/d.json"
same "also in the spec" "$(bake "$work/d.json") $(cached)" "$image 1"
same "a tar's digest is that of its bytes" "$(hearth context put "$work/c.tar.gz")" "sha256:$(sha256sum <"$work/c.tar.gz" | cut -d' ' -f1)"
cp -a --no-preserve=xattr "$context" "$work/bare"
printf 'src\n!src/[al]*\n' >"$work/bare/.dockerignore"
same "the JavaScript client packs the same bytes" "$(node --input-type=module - "$work/bare" <<JS
import { createHash } from "node:crypto";
import { packContext } from "$root/api/client/node/context.js";
const hash = createHash("sha256");
for await (const bytes of packContext(process.argv[2]))
	hash.update(bytes);
console.log("sha256:" + hash.digest("hex"));
JS
)" "$(hearth context put "$work/bare")"
echo two >>"$work/copy/src/a"
check "another content is another context" test "$(hearth context put "$work/copy")" != "$digest"

export HEARTH_DATA=$work/data2
mkdir -m 700 "$HEARTH_DATA"
hearth context put "$context" >/dev/null
same "baked from the digest alone it is the same layer but for times" \
	"$(bake "$work/s.json" --context "$digest" >/dev/null; cached)" 0
hearth bake "$work/s.json" --context "$digest" --output "oci:$work/out" >/dev/null 2>&1
layer=$(skopeo inspect "oci:$work/out:latest" | jq -r '.Layers[0]')
mkdir "$work/rootfs"
tar -C "$work/rootfs" --zstd -xf "$work/out/blobs/sha256/${layer#sha256:}"
listing() # DIR
{
	(cd "$1" && find . ! -type d -printf '%P %y %m %s %n %l\n' | sort)
}
same "and has what the directory had" \
	"$(listing "$work/rootfs/srv" | grep -E '^(a|hard|link|sparse) ')" \
	"$(listing "$context/src" | grep -E '^(a|hard|link|sparse) ')"
export HEARTH_DATA=$work/data

refused "a digest that the store does not have" 66 'hearth context put' \
	hearth bake "$work/s.json" --context "sha256:$(printf '0%.0s' {1..64})"
refused "what is no digest" 64 'not a sha256' hearth bake "$work/s.json" --context sha256:abc
refused "a context that is not there" 66 'No such file' hearth bake "$work/s.json" --context "$work/nowhere"
: >"$work/empty"
refused "an empty tar" 64 'is empty' hearth bake "$work/s.json" --context "$work/empty"
head -c 5000 /dev/urandom >"$work/noise"
refused "noise" 65 'tar: ' hearth bake "$work/s.json" --context "$work/noise"
head -c 200 "$work/c.tar.gz" >"$work/short"
refused "a tar that was cut off" 65 'context' hearth bake "$work/s.json" --context "$work/short"
xz -c "$work/c.tar" >"$work/c.tar.xz"
refused "what is compressed otherwise, by its name" 64 'it is xz' hearth bake "$work/s.json" --context "$work/c.tar.xz"
refused "spec and context in one" 64 'cannot both' hearth bake - --context - <"$work/s.json"
refused "a verb that is not there" 64 'context put' hearth context get x

# Names that would leave the directory, as in layers.
python3 - "$work" <<'PY'
import io, sys, tarfile
def tar(name, *entries):
    with tarfile.open(f"{sys.argv[1]}/{name}.tar", "w") as out:
        for path, kind, link in entries:
            info = tarfile.TarInfo(path)
            info.type, info.linkname, info.size = kind, link, 3 if kind == tarfile.REGTYPE else 0
            out.addfile(info, io.BytesIO(b"bad") if info.size else None)
tar("dots", ("../../escaped", tarfile.REGTYPE, ""))
tar("root", ("/escaped", tarfile.REGTYPE, ""))
tar("link", ("out", tarfile.SYMTYPE, sys.argv[1]), ("out/escaped", tarfile.REGTYPE, ""))
tar("hard", ("h", tarfile.LNKTYPE, "../../../../../etc/passwd"))
PY
spec "$work/all.json" scratch "COPY . /srv/"
for name in dots hard; do
	refused "a hostile name: $name" 65 'context' hearth bake "$work/all.json" --context "$work/$name.tar"
done
hearth bake "$work/all.json" --context "$work/link.tar" >/dev/null 2>&1 || true
check "an absolute name begins at the context" bake "$work/all.json" --context "$work/root.tar"
check "nothing has left its directory" test ! -e "$work/escaped" -a ! -e /escaped -a ! -e "$work/data/escaped"

# What was read is remembered, and a bake that finds everything writes nothing.
stored() # what lies in the data directory; readers of LMDB leave a trace in its lock alone
{
	find "$HEARTH_DATA" ! -name lock.mdb ! -path '*/run/*' -printf '%p %s %T@\n' | sort
}

mkdir "$work/many"
for n in {1..300}; do echo "$n" >"$work/many/file-$n"; done
spec "$work/many.json" scratch "COPY . /srv/"
bake "$work/many.json" --context "$work/many" >/dev/null
remembered() # once the youngest file is older than the clock's tick
{
	before=$(stored)
	bake "$work/many.json" --context "$work/many" >/dev/null
	[ "$(stored)" = "$before" ]
}
check "a bake that finds everything writes nothing" wait_for 60 remembered
same "and does not open what it has read" "$(strace -f -e trace=openat "$HEARTH" bake "$work/many.json" --context "$work/many" 2>&1 | grep -c '"file-')" 0
first=$(bake "$work/many.json" --context "$work/many")
touch -r "$work/many/file-1" "$work/stamp"
echo X >"$work/many/file-1"
touch -r "$work/stamp" "$work/many/file-1"
check "another content under an old time is noticed" test "$(bake "$work/many.json" --context "$work/many")" != "$first"
echo 1 >"$work/many/file-1"
same "and the old one is found again" "$(bake "$work/many.json" --context "$work/many") $(cached)" "$first 1"
touch "$work/many/file-2"
same "a touch is no change" "$(bake "$work/many.json" --context "$work/many") $(cached)" "$first 1"
printf X | dd of="$HEARTH_DATA/contexts/$(ls -t "$HEARTH_DATA/contexts" | head -n 1)" bs=1 seek=300 conv=notrunc status=none
same "damaged memory is none" "$(bake "$work/many.json" --context "$work/many") $(cached)" "$first 1"

# Only what COPY needs is read.
mkdir "$context/other"
mknod "$context/other/device" c 1 3
truncate -s 1T "$context/other/huge"
chmod 000 "$context/other"
same "what COPY does not name is not looked at" "$(bake "$work/s.json" --context "$context") $(cached)" "$image 1"
spec "$work/t.json" scratch "COPY scr /srv/"
refused "a missing source names the nearest name" 66 'did you mean src' hearth bake "$work/t.json" --context "$context"
refused "also in a tar, whose place in the store is no name" 66 'did you mean src\? \(the context is a tar\)' \
	hearth bake "$work/t.json" --context "$digest"
nothing_left "nothing is left over"
finish

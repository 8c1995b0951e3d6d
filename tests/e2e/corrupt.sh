#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Layers that are broken or hostile, and a disk that is full: nothing escapes and nothing is lost.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
start_registry

spec "$work/run.json" scratch "RUN true"
spec "$work/none.json" scratch
export ESCAPED=escaped-$$
for kind in dotdot dotdot-deep through-symlink hardlink-out hardlink-absolute hardlink-through-symlink \
	whiteout-dotdot whiteout-dot whiteout-empty whiteout-out whiteout-through-symlink opaque-through-symlink; do
	"$here/image.py" "$work/bad:$kind" tiny "entry:$kind" >/dev/null
	refused "a layer with $kind is refused" 65 . hearth pull "oci:$work/bad:$kind"
done
"$here/image.py" "$work/bad:through" tiny entry:through-absolute-symlink >/dev/null
hearth pull "oci:$work/bad:through" >/dev/null 2>&1 || true
"$here/image.py" "$work/good:absolute" tiny entry:absolute >/dev/null
spec "$work/there.json" "oci:$work/good:absolute" "RUN test -f /$ESCAPED"
check "an absolute name starts at the image's root" hearth bake "$work/there.json"
check "nothing was written outside" test -z \
	"$(find / -xdev \( -path /proc -o -path /sys \) -prune -o -name "$ESCAPED" -not -path "$work/*" -print 2>/dev/null)"
"$here/image.py" "$work/good:benign" tiny entry:benign-symlink >/dev/null
check "a link with too many dots is only odd" hearth pull "oci:$work/good:benign"
for name in dev proc sys; do
	"$here/image.py" "$work/bad:$name" tiny "entry:$name-symlink" >/dev/null
	refused "a /$name that is a symlink runs no step" 65 "/$name" hearth bake "$work/run.json" --base "oci:$work/bad:$name"
done
for name in dev proc sys etc; do
	"$here/image.py" "$work/bad:no-$name" tiny "entry:no-$name" >/dev/null
	refused "neither does an image that removed its /$name" 65 "no /$name" hearth bake "$work/run.json" --base "oci:$work/bad:no-$name"
done

# The registry's own files are changed behind its back, before a store that has none of them pulls.
export HEARTH_DATA=$work/fresh
damage() # TAG PROGRAM: push tiny as TAG and edit its layer with a Python expression on `b`
{
	"$here/image.py" "$work/damage:$1" tiny "entry:$2" >/dev/null
	push "$work/damage:$1" "damage:$1"
	layer=$(skopeo inspect --tls-verify=false "docker://$registry/damage:$1" | jq -r '.Layers[-1]')
	python3 -c "p = '$(blob_file "$layer")'; b = bytearray(open(p, 'rb').read()); $3; open(p, 'wb').write(b)"
}
damage flipped benign-symlink 'b[len(b) // 2] ^= 1'
refused "a layer with a flipped bit is refused" 65 'sha256:|digest' hearth pull "$registry/damage:flipped"
damage short dev-symlink 'del b[len(b) // 2:]'
refused "a truncated layer is refused" '65|69' . hearth pull "$registry/damage:short"
damage long proc-symlink 'b += b"more"'
refused "a layer that is longer than was said is refused" '65|69' . hearth pull "$registry/damage:long"
damaged_layout() # NAME WHICH: the manifest, or what it has at .WHICH, is a byte longer; prints its hex
{
	local hex
	hex=$("$here/image.py" "$work/damaged-$1:x" "$work/none.tar" | cut -d: -f2)
	[ "$1" = manifest ] || hex=$(jq -r "$2.digest" "$work/damaged-$1/blobs/sha256/$hex" | cut -d: -f2)
	printf ' ' >>"$work/damaged-$1/blobs/sha256/$hex"
	echo "$hex"
}
tar -C "$work" --owner 0 --group 0 -cf "$work/none.tar" none.json
for part in manifest config layer; do
	hex=$(damaged_layout "$part" ".${part/layer/layers[0]}")
	refused "a layout's $part that is not what its digest says is refused" 65 "$hex" hearth pull "oci:$work/damaged-$part:x"
done
printf 'not a tar at all' | gzip >"$work/text.gz"
"$here/image.py" "$work/bad:text" "$work/text.gz" >/dev/null
refused "a layer that is no tar is refused" 65 . hearth pull "oci:$work/bad:text"
tar -C "$work" --owner 0 --group 0 -cf "$work/things.tar" run.json
"$here/image.py" "$work/bad:diff" tiny "$work/things.tar" >/dev/null
python3 - "$work/bad" <<'PY'
import hashlib, json, pathlib, sys
root = pathlib.Path(sys.argv[1])
blob = lambda d: root / "blobs/sha256" / d.split(":")[1]
def put(value):
    data = json.dumps(value).encode()
    name = "sha256:" + hashlib.sha256(data).hexdigest()
    blob(name).write_bytes(data)
    return {"digest": name, "size": len(data)}
index = json.loads((root / "index.json").read_text())
entry = next(m for m in index["manifests"] if m["annotations"]["org.opencontainers.image.ref.name"] == "diff")
manifest = json.loads(blob(entry["digest"]).read_text())
config = json.loads(blob(manifest["config"]["digest"]).read_text())
config["rootfs"]["diff_ids"][-1] = "sha256:" + "1" * 64
manifest["config"].update(put(config))
entry.update(put(manifest))
(root / "index.json").write_text(json.dumps(index))
PY
refused "a layer that is not what the config says is refused" 65 . hearth pull "oci:$work/bad:diff"
nothing_left "nothing of them is left over"
export HEARTH_DATA=$work/data

"$here/image.py" "$work/bomb:1" bomb:1024 >/dev/null
refused "a bomb past the ceiling is refused" 65 'byte|large|limit|ceiling|max' \
	hearth pull "oci:$work/bomb:1" --max-layer-bytes 64MiB
spec "$work/bomb.json" "oci:$work/bomb:1" "RUN true"
refused "by a bake, too" 65 'byte|large|limit|ceiling|max' hearth bake "$work/bomb.json" --max-layer-bytes $((64 << 20))
check "what is below it is taken" hearth pull "oci:$work/bomb:1" --max-layer-bytes 2Gi

# A disk of its own that runs full.
own_disk 160M
spec "$work/layer.json" "$base" "RUN dd if=/dev/urandom of=/big bs=1M count=100 2>/dev/null"
refused "a disk that is full in the middle of a layer" 74 'space' hearth bake "$work/layer.json"
spec "$work/step.json" "$base" "RUN dd if=/dev/urandom of=/big bs=1M count=300"
head -c 200M /dev/urandom >"$work/large"
tar -C "$work" --owner 0 --group 0 -cf "$work/large.tar" large
"$here/image.py" "$work/largest:1" "$work/large.tar" >/dev/null
refused "in the middle of a pull" 74 'space' hearth pull "oci:$work/largest:1"
refused "a step that fills the disk fails" '1|74' 'space' hearth bake "$work/step.json"
spec "$work/blind.json" "$base" "RUN dd if=/dev/urandom of=/big bs=1M count=300 2>/dev/null || true"
refused "so does one that does not look" 74 'space' hearth bake "$work/blind.json"
"$here/image.py" "$work/noted:1" tiny entry:large-xattr >/dev/null
refused "what ext4 does not hold is no full disk" 69 'user.big of 5000 bytes' hearth pull "oci:$work/noted:1"
mkdir "$work/mntcontext"
mount -t tmpfs tmpfs "$work/mntcontext"
echo x >"$work/mntcontext/noted"
if setfattr -n user.big -v "$(head -c 5000 /dev/zero | tr '\0' x)" "$work/mntcontext/noted"; then # Linux 6.6
	spec "$work/noted.json" "$base" "COPY noted /noted" "RUN cat /noted"
	check "of a context it is left out" bake "$work/noted.json" --context "$work/mntcontext"
	holds "which the log says" "$(cat "$work/bake.log")" '^\[1/2\] hearth: .*xattr user.big of 5000 bytes is left out: No space'
fi
umount "$work/mntcontext"
spec "$work/small.json" "$base" "RUN echo small > /small"
holds "what is small is baked afterwards" "$(bake "$work/small.json" --tag small:1)" '^sha256:'
holds "and images works" "$(hearth images)" small:1
nothing_left "nothing is left over on it"
written() # LAYOUT: the files of its last layer, with their sizes
{
	local manifest layer
	manifest=$(jq -r '.manifests[0].digest[7:]' "$1/index.json")
	layer=$(jq -r '.layers[-1].digest[7:]' "$1/blobs/sha256/$manifest")
	zstd -qdc "$1/blobs/sha256/$layer" | tar -tv | awk '$1 ~ /^-/ {printf "%s%s ", $6, $3}'
}
spec "$work/wrong.json" "$base" "RUN (echo hi > /x; touch /y; head -c 65536 /dev/zero > /z) 2>/dev/null || true"
for free in 0 4 8 12 16 32 64 256; do # KiB
	rm -f "$work/mnt/filler"
	hearth gc --all >/dev/null # or the bake makes itself room of what nothing needs
	dd if=/dev/zero of="$work/mnt/filler" bs=64k 2>/dev/null || true
	dd if=/dev/zero of="$work/mnt/filler" bs=4k oflag=append conv=notrunc 2>/dev/null || true
	truncate -s "-${free}k" "$work/mnt/filler"
	[ "$free" != 0 ] || holds "the doctor sees a full disk" "$(hearth doctor || true)" 'overlayfs.*space'
	status=0
	hearth bake "$work/wrong.json" --output "oci:$work/whole:x" >"$work/wrong.log" 2>&1 || status=$?
	if [ "$status" = 0 ]; then # a tree that nothing needs gave room, and it was made once more
		same "with $free KiB left what is believed is whole" "$(written "$work/whole")" "x3 y0 z65536 "
	else
		same "with $free KiB left no step is believed" "$status" 74
		holds "for want of space" "$(cat "$work/wrong.log")" 'space'
	fi
	refused "with $free KiB left no step of more than can be freed is believed" 74 'space' hearth bake "$work/blind.json"
done
[ "$status" = 74 ] || hearth gc --all >/dev/null
rm "$work/mnt/filler"
bake "$work/wrong.json" --output "oci:$work/right:x" >/dev/null
same "nothing of it was cached" "$(cached)" 0
umount "$work/mnt"

export HEARTH_DATA=$work/data
holds "the store still bakes" "$(bake "$work/small.json" --tag small:1)" '^sha256:'
holds "and images works there too" "$(hearth images)" small:1
nothing_left "nothing is left over"
finish

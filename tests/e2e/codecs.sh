#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An image's own layers are zstd or gzip, whichever the spec asks for: nothing
# runs twice for it, and GNU gzip, umoci, podman and skopeo read the second.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
mkdir "$work/context"
head -c 700000 /dev/urandom | base64 >"$work/context/big"
echo small >"$work/context/small"
steps=("RUN mkdir /made && seq 200000 > /made/numbers && ln -s numbers /made/link" "COPY . /copied/" "ENV A=1" "RUN rm /made/link && echo \$A > /made/a")
spec "$work/zstd.json" "$base" "${steps[@]}"
jq '.compression = "gzip"' "$work/zstd.json" >"$work/gzip.json"

manifest() # LAYOUT:TAG
{
	jq . "${1%:*}/blobs/sha256/$(jq -r --arg tag "${1##*:}" '.manifests[] | select(.annotations["org.opencontainers.image.ref.name"] == $tag) | .digest' "${1%:*}/index.json" | cut -d: -f2)"
}

types() # LAYOUT:TAG: of the layers, by their last word
{
	manifest "$1" | jq -r '[.layers[].mediaType | split(".") | last] | join(" ")'
}

converts_nothing() # the last bake
{
	! grep 'layers as' "$work/bake.log"
}

trees()
{
	find "$HEARTH_DATA/trees" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort
}

zstd=$(bake "$work/zstd.json" --context "$work/context" --output "oci:$work/zstd:x")
same "layers are zstd where nothing else is said, and the base's stays" "$(types "$work/zstd:x")" "tar+gzip tar+zstd tar+zstd tar+zstd"
before=$(trees)
gzip=$(bake "$work/gzip.json" --context "$work/context" --output "oci:$work/gzip:x")
same "the other codec runs no step" "$(cached)" 4
holds "it says what it makes" "$(cat "$work/bake.log")" '^\[export\] 3 layers as gzip'
same "the image's own layers are gzip, the base's stays" "$(types "$work/gzip:x")" "tar+gzip tar+gzip tar+gzip tar+gzip"
check "it is another image" test "$zstd" != "$gzip"
same "with the same configuration" "$(manifest "$work/gzip:x" | jq .config)" "$(manifest "$work/zstd:x" | jq .config)"
same "the same base layer" "$(manifest "$work/gzip:x" | jq '.layers[0]')" "$(manifest "$work/zstd:x" | jq '.layers[0]')"
same "and the same trees" "$(trees)" "$before"

same "a second time it is the same image" "$(bake "$work/gzip.json" --context "$work/context")" "$gzip"
check "and nothing is made" converts_nothing
same "the option goes before the spec" "$(bake "$work/gzip.json" --context "$work/context" --compression zstd)" "$zstd"
same "and says gzip as well" "$(bake "$work/zstd.json" --context "$work/context" --compression gzip)" "$gzip"
refused "a codec that there is not" 64 '"xz": expected zstd or gzip' hearth bake "$work/zstd.json" --compression xz

hearth bake "$work/gzip.json" --context "$work/context" --tag made:gzip >/dev/null 2>&1
holds "inspect says what each layer is" "$(hearth inspect made:gzip)" '^layers +sha256:[0-9a-f]+ .* application/vnd.oci.image.layer.v1.tar\+gzip$'
holds "history does in a word" "$(hearth history made:gzip)" ' gzip +COPY \. /copied/'
same "and whole as JSON" "$(hearth history made:gzip --json | jq -c '[.[] | .mediaType | values | split(".") | last] | unique')" '["tar+gzip"]'

# Foreign judges, on the very blobs.
judged=0
for layer in $(manifest "$work/gzip:x" | jq -r '.layers[1:][].digest' | cut -d: -f2); do
	judged=$((judged + 1))
	diff_id=$(jq -r ".rootfs.diff_ids[$judged]" "$work/gzip/blobs/sha256/$(manifest "$work/gzip:x" | jq -r .config.digest | cut -d: -f2)")
	same "layer $judged: GNU gzip reads all members" "sha256:$(gzip -dc <"$work/gzip/blobs/sha256/$layer" | sha256sum | cut -d' ' -f1)" "$diff_id"
	same "layer $judged: so does zlib" "sha256:$(python3 -c 'import gzip, sys, hashlib; print(hashlib.sha256(gzip.open(sys.argv[1]).read()).hexdigest())' "$work/gzip/blobs/sha256/$layer")" "$diff_id"
done
umoci unpack --image "$work/gzip:x" "$work/bundle" >/dev/null
unpack "$work/zstd:x" "$work/other"
same "umoci unpacks what it does of the zstd image" "$("$here/listing.py" "$work/bundle/rootfs")" "$("$here/listing.py" "$work/other/rootfs")"
own_storage
image=$("${podman[@]}" pull -q "oci:$work/gzip:x" | tail -n 1)
# The root itself is in no layer here: podman gives it a mode of its own.
below() # ROOT
{
	"$here/listing.py" "$1" | grep -v '^/ dir '
}
same "podman, too" "$(below "$("${podman[@]}" image mount "$image")")" "$(below "$work/bundle/rootfs")"
"${podman[@]}" image umount "$image" >/dev/null
same "skopeo names the digest that hearth did" "$(skopeo inspect "oci:$work/gzip:x" | jq -r .Digest)" "$gzip"

# The other way round, and steps made anew.
spec "$work/first.json" "$base" "RUN seq 300000 > /first"
bake "$work/first.json" --compression gzip --output "oci:$work/first:gzip" >/dev/null
check "a layer is made as gzip directly" converts_nothing
same "and is it" "$(types "$work/first:gzip")" "tar+gzip tar+gzip"
bake "$work/first.json" --output "oci:$work/first:zstd" >/dev/null
same "a gzip layer becomes zstd" "$(types "$work/first:zstd")" "tar+gzip tar+zstd"
same "without a step" "$(cached)" 1
again=$(bake "$work/gzip.json" --context "$work/context" --no-cache)
same "steps that make the same anew give the same image" "$again" "$gzip"
check "which needs no conversion" converts_nothing

# A tree that was lost is made again from members, too.
rm -rf "$HEARTH_DATA/trees" && mkdir -m 0700 "$HEARTH_DATA/trees"
spec "$work/on.json" "$base" "RUN seq 300000 > /first" "RUN test \$(wc -l < /first) = 300000"
bake "$work/on.json" --compression gzip >/dev/null && ok "a lost tree comes back" || not_ok "a lost tree comes back"
nothing_left "nothing is left over"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Layers as podman, pigz and others compress them: pulled, every byte of them
# checked, and baked on.
. "$(dirname "$0")/lib.sh"

mkdir -p "$work/things/opt/many"
for i in $(seq 300); do seq "$i" 4000 >"$work/things/opt/many/$i"; done
head -c 3000000 /dev/urandom >"$work/things/opt/random"
tar -C "$work/things" --owner 0 --group 0 --sort name -cf "$work/things.tar" opt
"$here/image.py" "$work/base:latest" tiny "$work/things.tar" >/dev/null
start_registry

own_storage
# Without what containers/image remembers of this host's blobs: it would name one that is there already.
alone() # COMMAND...
{
	mkdir -p /var/lib/containers
	unshare -m sh -c 'mount -t tmpfs none /var/lib/containers && exec "$@"' sh "$@"
}
skopeo --insecure-policy copy -q "oci:$work/base:latest" containers-storage:localhost/base
# One layer as Go writes it: this podman's zstd:chunked leaves out what GNU tar and Python pad with.
buildah commit -q --squash "$(buildah from localhost/base)" localhost/foreign >/dev/null

pulled() # SENTENCE REFERENCE: with all that is in it
{
	spec "$work/on.json" "$2" "RUN test \$(cat /opt/many/* | wc -l) = 1155150 && test \$(wc -c < /opt/random) = 3000000 && echo $2 > /it"
	if hearth pull "$2" >"$work/pull.log" 2>&1 && bake "$work/on.json" >/dev/null; then ok "$1"; else not_ok "$1" "$(tail -n 5 "$work/pull.log" "$work/bake.log")"; fi
}

trees() # that have the file in it
{
	find "$HEARTH_DATA/trees" -mindepth 1 -maxdepth 1 -type d -exec test -e '{}/opt/random' \; -print | wc -l
}

for format in gzip zstd zstd:chunked; do
	name=$registry/foreign/${format/:/-}:x
	alone podman --cgroup-manager cgroupfs push -q --tls-verify=false --compression-format "$format" localhost/foreign "$name" >/dev/null
	layer=$(curl -fsS -H 'Accept: application/vnd.oci.image.manifest.v1+json' "http://$registry/v2/foreign/${format/:/-}/manifests/x" | jq -r '.layers[-1]')
	pulled "podman's $format ($(jq -r '.mediaType | split(".") | last' <<<"$layer")) is read" "$name"
done
same "all of them are one tree" "$(trees)" 1
holds "the last one has a table of contents" "$layer" 'zstd-chunked.manifest-checksum'
check "in a frame that is skipped" grep -aq 'GnUlInUx' "$(blob_file "$(jq -r .digest <<<"$layer")")"

alone podman --cgroup-manager cgroupfs push -q --tls-verify=false --compression-format zstd:chunked localhost/base "$registry/foreign/padded:x" >/dev/null
refused "a tar that lost its padding is not the config's" 65 "its tar is sha256:.* the image's config says" hearth pull "$registry/foreign/padded:x"

# Made by hand: each is the base's second layer with the same tar.
by_hand() # FILE MEDIA-TYPE: into a layout
{
	local blob digest config layout=$work/by-hand
	rm -rf "$layout" && cp -r "$work/base" "$layout"
	digest=$(sha256sum <"$1" | cut -d' ' -f1)
	cp "$1" "$layout/blobs/sha256/$digest"
	blob=$(jq -r '.manifests[0].digest' "$layout/index.json" | cut -d: -f2)
	jq -c --arg d "sha256:$digest" --argjson s "$(stat -c %s "$1")" --arg t "application/vnd.oci.image.layer.v1.$2" \
		'.layers[-1] |= {mediaType: $t, digest: $d, size: $s}' "$layout/blobs/sha256/$blob" >"$work/manifest"
	config=$(sha256sum <"$work/manifest" | cut -d' ' -f1)
	cp "$work/manifest" "$layout/blobs/sha256/$config"
	jq -c --arg d "sha256:$config" --argjson s "$(stat -c %s "$work/manifest")" '.manifests[0] += {digest: $d, size: $s}' "$layout/index.json" >"$work/index"
	cp "$work/index" "$layout/index.json"
}

again() # SENTENCE FILE MEDIA-TYPE
{
	by_hand "$2" "$3"
	pulled "$1" "oci:$work/by-hand:latest"
}

split -b 500000 "$work/things.tar" "$work/piece."
for piece in "$work"/piece.*; do gzip -c "$piece"; done >"$work/members.gz"
again "members with names and times" "$work/members.gz" tar+gzip
check "nobody is warned of what is right" bash -c '! grep -q WARNING "$1"' - "$work/pull.log"
{ cat "$work/members.gz" && head -c 4096 /dev/zero; } >"$work/padded.gz"
again "zeros behind the last member" "$work/padded.gz" tar+gzip
holds "are warned of" "$(cat "$work/pull.log")" 'WARNING layer sha256:.*: 4096 bytes behind its compressed stream are ignored'
{ cat "$work/members.gz" && echo garbage; } >"$work/garbage.gz"
again "garbage behind the last member" "$work/garbage.gz" tar+gzip
holds "is, too" "$(cat "$work/pull.log")" 'WARNING layer sha256:.*: 8 bytes behind its compressed stream are ignored'
again "a plain tar that is said to be gzip" "$work/things.tar" tar+gzip
again "gzip that is said to be zstd" "$work/members.gz" tar+zstd
zstd -q --ultra -20 --long=27 -c <"$work/things.tar" >"$work/long.zst"
again "zstd with a window of 128 MiB" "$work/long.zst" tar+zstd
same "and all of these are another" "$(trees)" 2
cut=$(($(stat -c %s "$work/members.gz") - 5))
head -c "$cut" "$work/members.gz" >"$work/cut.gz"
by_hand "$work/cut.gz" tar+gzip
refused "one that is cut off" 65 'it ends too early' hearth pull "oci:$work/by-hand:latest"
nothing_left "nothing is left over"
finish

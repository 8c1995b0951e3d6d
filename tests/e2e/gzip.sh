#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clients that know gzip alone pull TAG-gzip from the daemon: made when it is first asked for, and then kept.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
start_daemon
registry=${url#http://}
echo "{\"auths\": {\"$registry\": {\"auth\": \"$(printf 'any:%s' "$token" | base64 -w0)\"}}}" >"$work/auth.json"
export REGISTRY_AUTH_FILE=$work/auth.json

bake_as() # TAG TEXT [JQ FILTER]: an image with a layer of its own
{
	spec "$work/$1.json" "$base" "RUN echo $2 > /a"
	jq "${3:-.}" "$work/$1.json" >"$work/spec.json"
	bake "$work/spec.json" --tag "localhost/mine:$1"
}
raw() { skopeo inspect --tls-verify=false --raw "docker://$registry/mine:$1"; }
seen() { raw "$1" | sha256sum | cut -d' ' -f1; }
made() { curl -fsS -H "Authorization: Bearer $token" "$url/metrics" | sed -n 's/^hearth_gzip_variants_total //p'; }
tags() { hearth tags mine | tr '\n' ' '; }
types() { raw "$1" | jq -r '.layers[].mediaType' | sort -u; }

digest=$(bake_as 1 one)
same "an image is served as it was baked" "sha256:$(seen 1)" "$digest"
holds "with a layer of zstd" "$(types 1)" "tar\+zstd$"
same "and no variant is there" "$(tags)" "1 "
pids=()
for i in 1 2 3 4 5 6 7 8; do
	curl -fsS -u "any:$token" "$url/v2/mine/manifests/1-gzip" >"$work/got.$i" & pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
same "of eight who ask for the variant at once all get it" "$(sha256sum "$work"/got.? | cut -d' ' -f1 | sort -u)" "$(seen 1-gzip)"
same "it is made once" "$(made)" 1
same "its layers are gzip" "$(types 1-gzip)" application/vnd.oci.image.layer.v1.tar+gzip
same "its config is the image's, and so are its diff ids" "$(raw 1-gzip | jq -r .config.digest)" "$(raw 1 | jq -r .config.digest)"
same "it is one of the tags" "$(tags)" "1 1-gzip "
variant=$(seen 1-gzip)
check "a client copies it" skopeo --insecure-policy copy -q --src-tls-verify=false "docker://$registry/mine:1-gzip" "oci:$work/old:x"
rm -rf "$work/bundle"
umoci unpack --image "$work/old:x" "$work/bundle" >/dev/null
same "with the files of the image" "$(cat "$work/bundle/rootfs/a")" one

# It follows its image
check "the same image by another name" hearth tag localhost/mine:1 localhost/mine:same
same "has the same variant" "$(seen same-gzip)" "$variant"
bake_as 1 two >/dev/null
same "a tag that moves drops its variant" "$(tags)" "1 same same-gzip "
check "of which another is made then" test "$(seen 1-gzip)" != "$variant"
bake_as 1 one >/dev/null
same "and back again it is the same one" "$(seen 1-gzip)" "$variant"
plain=$(bake_as plain one '.compression = "gzip"')
plain=$(hearth copy localhost/mine:plain "oci:$work/plain" --compression gzip)
hearth import "oci:$work/plain" --tag localhost/mine:plain >/dev/null 2>&1
same "of an image that is gzip it is the image" "sha256:$(seen plain-gzip)" "$plain"
hearth rm localhost/mine:1 >/dev/null 2>&1
same "a tag that is removed takes it along" "$(tags)" "plain plain-gzip same same-gzip "
refused "which is not there then" 1 "manifest unknown|no manifest" raw 1-gzip
refused "nor is that of an image that is not there" 1 "manifest unknown|no manifest" raw absent-gzip
refused "nor that of a variant" 1 "manifest unknown|no manifest" raw same-gzip-gzip
hearth gc --all >/dev/null 2>&1
same "a collection leaves what has a tag" "$(seen same-gzip)" "$variant"
check "undamaged" hearth fsck
stop_daemon
same "the daemon ends well" "$status" 0
finish

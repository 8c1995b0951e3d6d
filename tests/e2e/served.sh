#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Images are pushed to a daemon, copied within it, and signed there; a bake of its own pushes to it.
. "$(dirname "$0")/lib.sh"

export DOCKER_CONFIG=$work/docker REGISTRY_AUTH_FILE=$work/auth.json
base=$(tiny_base)
start_daemon
registry=${url#http://}
printf '%s\n' "$token" | hearth login "$registry" --username any --password-stdin 2>/dev/null
mine() { HEARTH_DATA=$work/mine "$@"; }
seen() { skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$registry/$1"; }
about() { curl -fsS -u "any:$token" "$url/v2/$1/referrers/$digest" | jq -r '.manifests[].digest'; }

spec "$work/a.json" "$base" "RUN echo pushed > /a"
digest=$(mine bake "$work/a.json")
mine hearth push "$digest" "$registry/acme/a:1" "$registry/acme/a:2" "$registry/acme/a:3" >/dev/null 2>&1
same "an image goes to the daemon under several tags" "$(hearth tags acme/a | tr '\n' ' ')" "1 2 3 "
same "which stand for it" "$(seen acme/a:3)" "$digest"
sha512=sha512:$(curl -fsS -u "any:$token" "$url/v2/acme/a/manifests/1" | sha512sum | cut -d' ' -f1)
check "it goes under its sha512" mine hearth push "$digest" "$registry/long/a@$sha512"
same "and comes by it" "$(HEARTH_DATA=$work/other hearth pull "$registry/long/a@$sha512" 2>/dev/null)" "$digest"

printf '{}' >"$work/empty"
empty=sha256:$(sha256sum <"$work/empty" | cut -d' ' -f1)
manifest=application/vnd.oci.image.manifest.v1+json
curl -fsS -u "any:$token" -H "Content-Type: application/octet-stream" --data-binary @"$work/empty" "$url/v2/acme/a/blobs/uploads/?digest=$empty"
jq -nj --arg type "$manifest" --arg empty "$empty" --arg image "$digest" '{schemaVersion: 2, mediaType: $type, artifactType: "test/signature",
	config: {mediaType: "application/vnd.oci.empty.v1+json", digest: $empty, size: 2}, layers: [], subject: {mediaType: $type, digest: $image, size: 1}}' >"$work/signature"
signature=sha256:$(sha256sum <"$work/signature" | cut -d' ' -f1)
curl -fsS -u "any:$token" -X PUT -H "Content-Type: $manifest" --data-binary @"$work/signature" "$url/v2/acme/a/manifests/$signature"
HEARTH_DATA=$work/other hearth copy "$registry/acme/a:1" "$registry/copied/a:1" --referrers >/dev/null 2>"$work/copy.log"
same "a copy takes along what is about the image" "$(about copied/a)" "$signature"
holds "its blobs are mounted" "$(cat "$work/copy.log")" '^\[push\] mounted sha256:'
check "and none is sent" bash -c '! grep -q "^\[push\] done sha256" "$1"' - "$work/copy.log"
same "all tags are copied" "$(HEARTH_DATA=$work/other hearth copy "$registry/acme/a" "$registry/all/a" --all-tags 2>/dev/null | sort)" \
	"$(for tag in 1 2 3; do echo "$tag $digest"; done)"
check "a push from the daemon's store knows what is about the image" hearth push localhost/acme/a:1 "$registry/pushed/a:1" --referrers
same "and takes it along" "$(about pushed/a)" "$signature"
same "what was pushed has a variant, too" \
	"$(curl -fsS -u "any:$token" "$url/v2/acme/a/manifests/1-gzip" | jq -r '.layers[].mediaType' | sort -u)" application/vnd.oci.image.layer.v1.tar+gzip

jq -n --arg push "$registry/agents/bot:1" '{slug: "bot", model: "m", system: "s", sandbox: {image: {base: "scratch", push: [$push]}}}' >"$work/agent.json"
baked=$(hearth sync "$work/agent.json" --wait 2>/dev/null | tail -n 1)
check "a bake pushes to the daemon itself" wait_for 60 hearth tags agents/bot
same "what it made" "$(seen agents/bot:1)" "$baked"
check "nothing is damaged" hearth fsck
stop_daemon
same "the daemon ends well" "$status" 0
finish

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

# What is baked here comes back from somebody who pulled it, as bytes that are cut elsewhere.
bake "$work/a.json" --tag localhost/own/a:1 >/dev/null
bytes() { curl -fsS -u "any:$token" "$url/v2/$1"; }
bytes own/a/manifests/1 >"$work/own"
for name in $(jq -r '.config.digest, .layers[].digest' "$work/own"); do
	bytes "own/a/blobs/$name" >"$work/part"
	curl -fsS -u "any:$token" -H "Content-Type: application/octet-stream" --data-binary @"$work/part" \
		"$url/v2/back/a/blobs/uploads/?digest=$name"
	same "what is baked here and pushed again stays as it is" "sha256:$(bytes "own/a/blobs/$name" | sha256sum | cut -d' ' -f1)" "$name"
done
check "and nothing of it is damaged" hearth fsck

# The same image with every part, and what a layer inflates to, named by its sha512.
fetch() { curl -fsS -u "any:$token" "$url/v2/$1"; }
long_of() { echo "sha512:$(sha512sum | cut -d' ' -f1)"; }
give() # FILE NAME: put it, and have the manifest name it by its sha512
{
	local long
	long=$(long_of <"$1")
	curl -fsS -u "any:$token" -H "Content-Type: application/octet-stream" --data-binary @"$1" "$url/v2/long/b/blobs/uploads/?digest=$long"
	jq -c --arg name "$2" --arg long "$long" '(.config, .layers[]) |= if .digest == $name then .digest = $long else . end' "$work/long" >"$work/longer"
	mv "$work/longer" "$work/long"
}
fetch acme/a/manifests/1 >"$work/long"
tars=()
for name in $(jq -r '.layers[].digest' "$work/long"); do
	fetch "acme/a/blobs/$name" >"$work/part"
	give "$work/part" "$name"
	tars+=("$(zstd -dcf <"$work/part" | long_of)")
done
name=$(jq -r .config.digest "$work/long")
fetch "acme/a/blobs/$name" | jq -c '.rootfs.diff_ids = $ARGS.positional' --args "${tars[@]}" >"$work/config"
give "$work/config" "$name"
jq -jc --argjson size "$(stat -c %s "$work/config")" '.config.size = $size' "$work/long" >"$work/longer"
mv "$work/longer" "$work/long"
put() { curl -fsS -u "any:$token" -X PUT -H "Content-Type: $(jq -r .mediaType "$2")" --data-binary @"$2" "$url/v2/$1"; }
put long/b/manifests/1 "$work/long"
spec "$work/long.json" "$registry/long/b:1" "RUN cat /a >/b"
long() { HEARTH_DATA=$work/longs hearth "$@"; }
check "a step is baked on an image whose parts are named by sha512" long bake "$work/long.json" --tag mine:long
same "and names its own by sha256" "$(long inspect mine:long --json | grep -c sha512)" 0
spec "$work/local.json" "localhost/long/b:1" "RUN cat /a >/c"
check "and on one that was pushed to the daemon, where it lies" hearth bake "$work/local.json"
same "which has a variant for old clients" "$(fetch long/b/manifests/1-gzip | jq -r '.layers[].mediaType' | sort -u)" application/vnd.oci.image.layer.v1.tar+gzip
long push "$registry/long/b:1" "$registry/long/pushed:1" --referrers >/dev/null 2>&1
same "such an image is pushed as it is" "$(fetch long/pushed/manifests/1 | sha256sum)" "$(sha256sum <"$work/long")"
HEARTH_DATA=$work/copies hearth copy "$registry/long/b:1" "$registry/long/copied:1" >/dev/null 2>&1
same "and copied" "$(fetch long/copied/manifests/1 | sha256sum)" "$(sha256sum <"$work/long")"
long export "$registry/long/b:1" "oci:$work/longs.oci:1" >/dev/null 2>&1
same "and written, with its names" "$(find "$work/longs.oci/blobs/sha512" -type f | wc -l)" "$(grep -o sha512: "$work/long" | wc -l)"
check "which are right" bash -c 'cd "$1" && for file in *; do echo "$file  $file"; done | sha512sum -c --quiet' - "$work/longs.oci/blobs/sha512"

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

# Whoever pushes an image may claim another layer's diff id in its config: that gives him nothing of that layer.
mkdir "$work/files"
echo hidden >"$work/files/hidden"
echo mine >"$work/files/mine"
bake <(jq -n '{base: "scratch", steps: ["COPY hidden /hidden"]}') --context "$work/files" --tag localhost/private/a:1 >/dev/null
hidden=$(fetch private/a/manifests/1-gzip | jq -r '.layers[0].digest')
fetch private/a/manifests/1 >"$work/private"
fetch "private/a/blobs/$(jq -r .config.digest "$work/private")" >"$work/claim"
tar -C "$work/files" -c mine | zstd -q >"$work/own"
for part in claim own; do
	curl -fsS -u "any:$token" -H "Content-Type: application/octet-stream" --data-binary @"$work/$part" \
		"$url/v2/thief/a/blobs/uploads/?digest=sha256:$(sha256sum <"$work/$part" | cut -d' ' -f1)"
done
jq -jc --arg own "sha256:$(sha256sum <"$work/own" | cut -d' ' -f1)" --argjson size "$(stat -c %s "$work/own")" \
	'.layers[0] += {digest: $own, size: $size}' "$work/private" >"$work/stolen"
put thief/a/manifests/1 "$work/stolen"
code() { ask "$1" | tail -n 1; }
lies="layer sha256:[0-9a-f]+: its tar is sha256:[0-9a-f]+, the image's config says"
thief=localhost/thief/a:1
gives_nothing() # SENTENCE BASE STEP
{
	refused "$1" 65 "$lies" hearth bake <(jq -n --arg base "$2" --arg step "$3" '{base: $base, steps: [$step]}') --context "$work/files"
}
holds "what was baked here nobody has to look at again" \
	"$(hearth bake <(jq -n '{base: "localhost/private/a:1", steps: ["ENV A=1"]}') 2>&1 | grep -c '^\[base\] \(held\|layer\)')" '^0$'
gives_nothing "a base that claims another's layer is refused" "$thief" "COPY mine /more"
gives_nothing "even where nothing reads it" "$thief" "ENV A=1"
gives_nothing "nor is it copied from" scratch "COPY --from=$thief /hidden /got"
gives_nothing "or mounted" "$base" "RUN --mount=type=bind,from=$thief,target=/mnt cat /mnt/hidden"
holds "nor converted: the other's variant is not its own" "$(ask /v2/thief/a/manifests/1-gzip)" '^[45][0-9][0-9]$'
same "which the other's repository alone has" "$(code "/v2/private/a/blobs/$hidden") $(code "/v2/thief/a/blobs/$hidden")" "200 404"

# Nor does an index give what its entry names, when that was put as a blob, of which nobody asks what it names.
own=$(jq -r '.layers[0].digest' "$work/private")
whole=sha256:$(sha256sum <"$work/private" | cut -d' ' -f1)
for name in thief/a thief/b; do
	curl -fsS -u "any:$token" -H "Content-Type: application/octet-stream" --data-binary @"$work/private" "$url/v2/$name/blobs/uploads/?digest=$whole"
done
jq -nj --arg digest "$whole" --argjson size "$(stat -c %s "$work/private")" --arg arch "$(jq -r .architecture "$work/claim")" '{schemaVersion: 2,
	mediaType: "application/vnd.oci.image.index.v1+json", manifests: [{mediaType: "application/vnd.oci.image.manifest.v1+json",
	digest: $digest, size: $size, platform: {os: "linux", architecture: $arch}}]}' >"$work/index"
put thief/b/manifests/1 "$work/index"
holds "an index has no variant with what its repository lacks" "$(ask /v2/thief/b/manifests/1-gzip)" '^404$'
same "which it lacks after that" "$(code "/v2/private/a/blobs/$own") $(code "/v2/thief/b/blobs/$own") $(code "/v2/thief/b/blobs/$hidden")" "200 404 404"
jq -jc --arg digest "sha256:$(sha256sum <"$work/stolen" | cut -d' ' -f1)" --argjson size "$(stat -c %s "$work/stolen")" \
	'.manifests += [.manifests[0] + {digest: $digest, size: $size}]' "$work/index" >"$work/both"
put thief/a/manifests/2 "$work/both"
refused "nor has a name more than the one that it is given beside" 66 "thief/a has no $whole" hearth tag localhost/thief/a:2 localhost/others:2
refused "nor is it a base" 66 "no image of any platform" hearth bake <(jq -n '{base: "localhost/thief/b:1", steps: ["ENV A=1"]}')

jq -n --arg push "$registry/agents/bot:1" '{slug: "bot", model: "m", system: "s", sandbox: {image: {base: "scratch", push: [$push]}}}' >"$work/agent.json"
baked=$(hearth sync "$work/agent.json" --wait 2>/dev/null | tail -n 1)
check "a bake pushes to the daemon itself" wait_for 60 hearth tags agents/bot
same "what it made" "$(seen agents/bot:1)" "$baked"
check "nothing is damaged" hearth fsck
stop_daemon
same "the daemon ends well" "$status" 0
finish

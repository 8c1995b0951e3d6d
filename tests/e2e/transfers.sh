#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Images go from anywhere to anywhere as they are; those of other platforms are
# pulled, shown and copied, and no command of theirs runs.
. "$(dirname "$0")/lib.sh"

start_registry

# Two platforms, and an index of both, as the layout's tag `multi`.
"$here/image.py" "$work/two:amd64" tiny >/dev/null
"$here/image.py" "$work/two:arm64" tiny --arch arm64 >/dev/null
python3 - "$work/two" <<'PY'
import hashlib, json, sys
root = sys.argv[1]
index = json.load(open(f"{root}/index.json"))
entries = [dict({k: e[k] for k in ("mediaType", "digest", "size")},
                platform={"os": "linux", "architecture": e["annotations"]["org.opencontainers.image.ref.name"]})
           for e in index["manifests"]]
data = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries}).encode()
name = hashlib.sha256(data).hexdigest()
open(f"{root}/blobs/sha256/{name}", "wb").write(data)
index["manifests"].append({"mediaType": "application/vnd.oci.image.index.v1+json", "digest": "sha256:" + name,
                           "size": len(data), "annotations": {"org.opencontainers.image.ref.name": "multi"}})
json.dump(index, open(f"{root}/index.json", "w"))
PY
digest_of() { # TAG
	jq -r --arg tag "$1" '.manifests[] | select(.annotations["org.opencontainers.image.ref.name"] == $tag).digest' "$work/two/index.json"
}
multi=$(digest_of multi)
arm64=$(digest_of arm64)
raw() { skopeo inspect --raw --tls-verify=false "$1" | sha256sum | cut -d' ' -f1; }

same "a layout's index goes to a registry whole" \
	"$(hearth copy "oci:$work/two:multi" "$registry/team/two:1" --platform all 2>/dev/null)" "$multi"
same "byte for byte" "sha256:$(raw "docker://$registry/team/two:1")" "$multi"
same "from registry to registry, too" \
	"$(hearth copy "$registry/team/two:1" "$registry/else/two:2" --platform all 2>/dev/null)" "$multi"
check "where skopeo pulls the other platform" skopeo --insecure-policy --override-arch arm64 copy -q \
	--src-tls-verify=false "docker://$registry/else/two:2" "oci:$work/pulled:arm"
same "from a registry to an archive" \
	"$(hearth copy "$registry/team/two:1" "oci-archive:$work/all.tar" --platform all 2>/dev/null)" "$multi"
same "and from it to a layout" \
	"$(hearth copy "oci-archive:$work/all.tar" "oci:$work/again:x" --platform all 2>/dev/null)" "$multi"
same "one platform is a manifest" \
	"$(hearth copy "$registry/team/two:1" "oci:$work/one:x" --platform linux/arm64 2>/dev/null)" "$arm64"
same "a stream is a source" "$(hearth copy - "oci:$work/streamed:x" --platform all <"$work/all.tar" 2>/dev/null)" "$multi"
same "nothing of it has a name here" "$(hearth images --json | jq length)" 0
amd64=$(digest_of amd64)
spec "$work/pinned.json" "$registry/team/two@$multi" "RUN echo once > /once"
check "a base may be an index's digest" bake "$work/pinned.json" --platform linux/amd64 --output "oci:$work/pinned:1"
same "which is the platform's image" "$(hearth inspect "$registry/team/two@$multi" --json | jq -r .digest)" "$amd64"
spec "$work/pinned.json" "$registry/team/two@$amd64" "RUN echo once > /once"
bake "$work/pinned.json" --platform linux/amd64 >/dev/null
same "and has its steps" "$(cached)" 1
refused "a platform that it has not" 66 'no image for linux/s390x; there is linux/amd64, linux/arm64' \
	hearth copy "$registry/team/two:1" "oci:$work/none:x" --platform linux/s390x
refused "a docker-archive holds one platform" 64 'several' \
	hearth copy "$registry/team/two:1" "docker-archive:$work/all.docker" --platform all

# The other codec.
hearth copy "$registry/team/two:1" "$registry/team/zstd:1" --compression zstd >/dev/null 2>&1
holds "layers are made of the other codec" \
	"$(skopeo inspect --raw --tls-verify=false "docker://$registry/team/zstd:1")" 'tar\+zstd'
same "and hold the same" "$(skopeo inspect --config --tls-verify=false "docker://$registry/team/zstd:1" | jq -cS .rootfs)" \
	"$(skopeo inspect --config "oci:$work/two:amd64" | jq -cS .rootfs)"

# Other platforms: pulled, shown, baked on where nothing of theirs runs.
same "any platform is pulled" "$(hearth pull "$registry/team/two:1" --platform linux/arm64 2>/dev/null)" "$arm64"
holds "and found where it is the only one" "$(hearth inspect "$registry/team/two:1")" 'linux/arm64'
same "inspect shows the index's platforms" \
	"$(hearth inspect "$registry/team/two:1" --json | jq -c .platforms)" '["linux/amd64","linux/arm64"]'
mkdir "$work/context" && echo content >"$work/context/file"
jq -n --arg base "$registry/team/two:1" \
	'{base: $base, platform: "linux/arm64", steps: ["ENV A=b", "COPY file /srv/", "WORKDIR /made", "RUN true"]}' >"$work/run.json"
refused "a RUN of a foreign platform" 65 'step 4: RUN would run a command of linux/arm64, and this host is linux/' \
	hearth bake "$work/run.json" --context "$work/context"
jq 'del(.steps[3])' "$work/run.json" >"$work/copy.json"
digest=$(bake "$work/copy.json" --context "$work/context" --tag arm:1)
holds "what needs no command of theirs is baked" "$digest" '^sha256:'
same "as an image of that platform" "$(hearth inspect arm:1 --json | jq -r .config.architecture)" arm64
spec "$work/other.json" arm:1 "RUN true"
refused "a tag of ours for another platform is asked of no registry" 66 \
	'arm:1 is here for linux/arm64 alone, and linux/[a-z0-9]+ was asked for: --platform linux/arm64 takes it' hearth bake "$work/other.json"
same "and one of our own is copied from the store" \
	"$(hearth copy arm:1 "$registry/team/arm:1" --platform linux/arm64 2>/dev/null)" "$digest"
nothing_left "nothing is left over"
finish

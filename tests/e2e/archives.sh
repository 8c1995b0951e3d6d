#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Archives out and in again: hearth reads what others write, and others what
# hearth does, whole or not at all.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
echo content >"$work/file"
mkdir "$work/context" && mv "$work/file" "$work/context"
spec "$work/spec.json" "$base" "RUN echo one > /srv/one && ln -s one /srv/two" "ENV A=b" "COPY file /srv/"
digest=$(bake "$work/spec.json" --context "$work/context" --tag mine:1 \
	--output "oci-archive:$work/baked.tar:1")
same "bake writes an OCI archive" "$(skopeo inspect "oci-archive:$work/baked.tar:1" | jq -r .Digest)" "$digest"
config=$(hearth inspect mine:1 --json | jq -r .manifest.config.digest)
diff_ids() { jq -c .rootfs.diff_ids; }
ids=$(hearth inspect mine:1 --json | jq .config | diff_ids)

# Out, judged by others.
hearth export mine:1 "oci-archive:$work/oci.tar" 2>/dev/null >"$work/out"
same "export prints the digest" "$(cat "$work/out")" "$digest"
same "skopeo names an OCI archive's image by the same digest" \
	"$(skopeo inspect "oci-archive:$work/oci.tar" | jq -r .Digest)" "$digest"
hearth export mine:1 "docker-archive:$work/docker.tar" >/dev/null 2>&1
same "skopeo reads a docker-archive's config as ours" \
	"$(skopeo inspect --config "docker-archive:$work/docker.tar:mine:1" | diff_ids)" "$ids"
check "and GNU tar lists it" tar -tf "$work/docker.tar"
own_storage
check "podman loads the docker-archive" "${podman[@]}" load -q -i "$work/docker.tar"
same "as the image that its config names" "$("${podman[@]}" image inspect docker.io/library/mine:1 | jq -r '.[0].Id')" \
	"${config#sha256:}"
check "podman loads the OCI archive" "${podman[@]}" load -q -i "$work/oci.tar"
mounted=$("${podman[@]}" image mount docker.io/library/mine:1)
same "with the files that were baked" "$(cat "$mounted/srv/two" "$mounted/srv/file")" $'one\ncontent'
"${podman[@]}" image umount docker.io/library/mine:1 >/dev/null

# In again, into a store of its own, in all the ways that there are.
fresh() { rm -rf "$work/other"; hearth import --data "$work/other" "$@" 2>"$work/import.log"; }
same "an OCI archive comes back as the same image" "$(fresh "oci-archive:$work/oci.tar")" "$digest"
holds "under the name that it had" "$(hearth images --data "$work/other")" 'docker.io/library/mine:1'
fresh "docker-archive:$work/docker.tar" >/dev/null
same "a docker-archive comes back with the same config" \
	"$(hearth inspect mine:1 --data "$work/other" --json | jq -r .manifest.config.digest)" "$config"
same "a layout does" "$(hearth export mine:1 "oci:$work/layout:1" 2>/dev/null; fresh "oci:$work/layout:1" --tag l:1)" \
	"$digest"$'\n'"$digest"
gzip -k "$work/docker.tar"
zstd -q "$work/oci.tar"
check "gzip is inflated" fresh "docker-archive:$work/docker.tar.gz"
same "zstd is, from a stream" "$(fresh - <"$work/oci.tar.zst")" "$digest"
same "export to import is a pipe" "$(hearth export mine:1 oci-archive:- 2>/dev/null | fresh -)" "$digest"
check "of either kind" fresh - < <(hearth export mine:1 docker-archive:- 2>/dev/null)

# What others wrote: podman with gzip layers and names, skopeo, the formats of two ages of docker.
"${podman[@]}" save -q --format oci-archive -o "$work/podman.tar" docker.io/library/mine:1
check "podman's OCI archive is imported" fresh "oci-archive:$work/podman.tar"
holds "with podman's name" "$(cat "$work/import.log")" 'named docker.io/library/mine:1'
skopeo --insecure-policy copy -q "docker-archive:$work/docker.tar:mine:1" "docker-archive:$work/skopeo.tar:some/where:2"
fresh "docker-archive:$work/skopeo.tar:some/where:2" >/dev/null
same "skopeo's docker-archive has the same layers" \
	"$(hearth inspect some/where:2 --data "$work/other" --json | jq .config | diff_ids)" "$ids"
"$here/docker_save.py" "$work/docker.tar" "$work/old.tar" "$work/new.tar"
for age in old new; do
	fresh "docker-archive:$work/$age.tar" >/dev/null
	same "docker save's $age format has the same config" \
		"$(hearth inspect mine:1 --data "$work/other" --json | jq -r .manifest.config.digest)" "$config"
done
skopeo --insecure-policy copy -q --additional-tag localhost/another:2 "docker-archive:$work/docker.tar:mine:1" \
	"docker-archive:$work/two.tar:docker.io/library/mine:1"
check "an image of several names has them all" fresh "docker-archive:$work/two.tar"
holds "each of them" "$(hearth images --data "$work/other")" 'localhost/another:2'

# Bases and our own tags.
spec "$work/on-archive.json" "docker-archive:$work/docker.tar" "RUN cat /srv/one > /srv/three"
check "a docker-archive is a base" bake "$work/on-archive.json"
spec "$work/on-oci.json" "oci-archive:$work/oci.tar" "RUN cat /srv/one > /srv/three"
check "an OCI archive is" bake "$work/on-oci.json"
check "a second bake on it runs nothing" bake "$work/on-oci.json"
same "and says so" "$(cached)" 1
spec "$work/on-mine.json" mine:1 "RUN cat /srv/one > /srv/three"
check "a tag of our own is, without a network" unshare --net "$HEARTH" bake "$work/on-mine.json"
refused "--pull asks the registry of its name, and says where" 69 'docker.io' \
	unshare --net "$HEARTH" bake "$work/on-mine.json" --pull
hearth tag mine:1 again:2 >/dev/null
same "hearth tag gives one more name" "$(hearth inspect again:2 --json | jq -r .digest)" "$digest"
refused "which has to be one" 64 'NAME' hearth tag mine:1 oci:dir

# What is wrong, said; and nothing half done.
refused "a missing file" 66 'no file' hearth import "oci-archive:$work/nothing.tar"
head -c 20000 "$work/oci.tar" >"$work/short.tar"
refused "a cut archive, which nobody pulled" 65 '^hearth: read oci-archive:.*(ends early|damaged|no index)' hearth import "oci-archive:$work/short.tar"
refused "no archive" 65 'not a tar' hearth import "oci-archive:$work/spec.json"
refused "a name that is not in it" 66 'there is docker.io/library/mine:1' \
	hearth import "docker-archive:$work/docker.tar:other:1"
refused "a bake has no stream" 64 'standard output' \
	hearth bake "$work/spec.json" --context "$work/context" --output oci-archive:-
refused "an unknown image" 66 'no image' hearth export nothing:1 "oci-archive:$work/x.tar"
refused "a full disk, by the name of what is on it" 74 'oci-archive:/dev/full: .*space' hearth export mine:1 oci-archive:/dev/full
before=$(sha256sum <"$work/oci.tar")
refused "a directory that is not there" 66 'no directory' hearth export mine:1 "oci-archive:$work/no/x.tar"
echo text >"$work/text"
refused "nor is a file one for a layout" 66 'text is no directory; a file is oci-archive:FILE' hearth export mine:1 "oci:$work/text"
refused "nor one for a layout" 66 'no directory' hearth export mine:1 "oci:$work/no/layout:1"
mkfifo "$work/fifo"
"$HEARTH" export mine:1 "docker-archive:$work/fifo" >/dev/null 2>&1 &
exporting=$!
exec 7<"$work/fifo"
head -c 1000 <&7 >/dev/null
kill -TERM "$exporting"
status=0
wait "$exporting" || status=$?
same "who is told to stop ends an export that nobody reads" "$status" 130
exec 7<&-
same "what was there stays" "$(sha256sum <"$work/oci.tar")" "$before"
same "and nothing else is left" "$(find "$work" -maxdepth 1 -name '.hearth-*')" ""
nothing_left "nothing is left over"
finish

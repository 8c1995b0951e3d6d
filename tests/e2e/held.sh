#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# held.sh - what is baked here is pulled from here, what is pushed is an image here, and both go as images do.
. "$(dirname "$0")/lib.sh"
command -v skopeo >/dev/null || skip "needs skopeo"

base=$(tiny_base)
empty='{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}'
skopeo() # COMMAND ARGUMENT...
{
	local command=$1
	shift
	TMPDIR=$work command skopeo --insecure-policy "$command" "$@"
}
here_at() # REPOSITORY:TAG: as skopeo calls it
{
	echo "docker://${url#http://}/$1"
}
digest_at() # REPOSITORY:TAG
{
	skopeo inspect --tls-verify=false --creds "x:$token" --format '{{.Digest}}' "$(here_at "$1")"
}
put() # REPOSITORY REFERENCE [CURL OPTION...]: a manifest's JSON; its status is the last line
{
	ask "/v2/$1/manifests/$2" -X PUT -H 'Content-Type: application/vnd.oci.image.index.v1+json' "${@:3}"
}
tags() # REPOSITORY
{
	ask "/v2/$1/tags/list" | head -n 1 | jq -c .tags
}

spec "$work/one.json" "$base" "RUN head -c 1000000 /dev/urandom > /one"
spec "$work/two.json" "$base" "RUN echo two > /two"
one=$(bake "$work/one.json" --tag localhost/team/app:1)
start_daemon
same "what was baked before the daemon began is served" "$(digest_at team/app:1)" "$one"
check "whole" skopeo copy -q --src-tls-verify=false --src-creds "x:$token" "$(here_at team/app:1)" "dir:$work/pulled"
two=$(bake "$work/two.json" --tag localhost/team/app:2)
same "what is baked beside it, at once" "$(digest_at team/app:2)" "$two"
check "by its digest, too" skopeo inspect --tls-verify=false --creds "x:$token" "docker://${url#http://}/team/app@$one"
check "an image has more names" hearth tag localhost/team/app:1 localhost/other:latest
same "and is served under each" "$(digest_at other:latest)" "$one"
same "the tags are listed" "$(tags team/app)" '["1","2"]'
holds "and the repositories" "$(ask /v2/_catalog)" '\["other","team/app"\]'
check "a name of another registry is none of ours" hearth tag localhost/team/app:1 registry.example/app:1
holds "so the list is as it was" "$(ask /v2/_catalog)" '\["other","team/app"\]'

check "a tag that is removed" hearth rm localhost/other:latest
holds "is served no more" "$(ask /v2/other/manifests/latest)" '^404$'
holds "nor is its image by a digest" "$(ask "/v2/other/manifests/$one")" '^404$'
same "while another name serves it" "$(digest_at team/app:1)" "$one"

# What is no image has a name among them.
holds "an index of nothing is taken" "$(put team/nothing none -d "$empty")" '^201$'
holds "and listed" "$(hearth images)" '^localhost/team/nothing:none '
same "without a platform" "$(hearth images --json | jq -c '.[] | select(.name == "localhost/team/nothing:none") | .platform')" null
spec "$work/on.json" localhost/team/nothing:none "RUN true"
refused "it is no base" 66 'no image of any platform' hearth bake "$work/on.json"
refused "and not to be inspected" '65|66|69' . hearth inspect localhost/team/nothing:none
check "the store is sound" hearth fsck
check "its space is told" hearth du
check "it goes by its name" hearth rm localhost/team/nothing:none
holds "with the repository" "$(ask /v2/team/nothing/tags/list)" 'NAME_UNKNOWN'

check "so do images" hearth rm localhost/team/app:1 localhost/team/app:2 registry.example/app:1
holds "until there is none" "$(ask /v2/_catalog)" '\{"repositories":\[\]\}'
holds "and nothing of them is served" "$(ask "/v2/team/app/manifests/$two")" '^404$'
hearth gc --all >/dev/null
same "or left" "$(hearth gc --all --json | jq -c '[.records, .blobs]')" '[0,0]'

# What is pushed.
push_here() # REPOSITORY:TAG LAYOUT:TAG [OPTION...]
{
	skopeo copy -q --dest-tls-verify=false --dest-creds "x:$token" "${@:3}" "oci:$2" "$(here_at "$1")"
}
check "an image is pushed" push_here pushed:1 "$work/tiny:latest"
holds "and is one here" "$(hearth images)" '^localhost/pushed:1 '
spec "$work/based.json" localhost/pushed:1 "RUN echo on > /on"
based=$(bake "$work/based.json" --tag localhost/pushed:2)
same "it is a base, and what is baked on it is served beside it" "$(tags pushed)" '["1","2"]'
same "by its digest" "$(digest_at pushed:2)" "$based"
check "by sha512, too" "$here/conformance.py" --url "$url" --token "$token" --algorithm sha512 --only "an image is" --only "an index leads"
hearth gc >/dev/null
same "a collection takes nothing that was pushed" "$(digest_at pushed:1)" "$(skopeo inspect --format '{{.Digest}}' "oci:$work/tiny:latest")"
check "and the store stays sound" hearth fsck
mapfile -t names < <(hearth images --json | jq -r '.[].name // empty')
check "all of it goes by name" hearth rm "${names[@]}"
hearth gc --all >/dev/null
same "with its records" "$(hearth gc --all --json | jq .records)" 0
holds "what was put without a name stays" "$(ask /v2/_catalog)" 'conformance'

stop_daemon
same "the daemon ends well" "$status" 0

finish

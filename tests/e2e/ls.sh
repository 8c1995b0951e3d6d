#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Repositories and tags are listed: of a registry, and of the daemon's own.
. "$(dirname "$0")/lib.sh"
command -v docker-registry >/dev/null || skip "needs docker-registry"

start_registry
bake <(jq -n '{base: "scratch"}') --tag mine:1 >/dev/null
for name in acme/tool:2 acme/tool:10 acme/tool:latest acme/tool/docs:1 acmes:1 zebra:1; do
	hearth push mine:1 "$registry/$name" >/dev/null 2>&1
done

same "a registry's repositories are listed" "$(hearth ls "$registry" | tr '\n' ' ')" "acme/tool acme/tool/docs acmes zebra "
same "or those below a prefix" "$(hearth ls "$registry/acme" | tr '\n' ' ')" "acme/tool acme/tool/docs "
same "which may be one itself" "$(hearth ls "$registry/acme/tool/" | tr '\n' ' ')" "acme/tool acme/tool/docs "
same "a repository's tags, too" "$(hearth tags "$registry/acme/tool" | sort | tr '\n' ' ')" "10 2 latest "
same "as JSON for programs" "$(hearth tags "$registry/acme/tool" --json | jq -c sort)" '["10","2","latest"]'
same "at most so many" "$(hearth ls "$registry" --limit 2 | tr '\n' ' ')" "acme/tool acme/tool/docs "
same "of those that fit" "$(hearth ls "$registry/acme/tool/docs" --limit 1)" acme/tool/docs
same "and what comes behind one" "$(hearth ls "$registry" --after acme/tool/docs --json)" '["acmes","zebra"]'
refused "a repository that is not there is not found" 66 "^hearth: tags of [0-9.:]+/absent: " hearth tags "$registry/absent"
refused "an image is no repository" 64 "without a tag" hearth tags "$registry/acme/tool:2"
refused "nor is a registry" 64 "without a tag" hearth tags "$registry"
refused "a URL is no registry" 64 "^hearth: https://a.test: expected HOST" hearth ls https://a.test
refused "nor is one reached by a CA file that is none" 64 "CA file cannot be used .*/nowhere" hearth ls "$registry" --ca-file /nowhere
refused "nobody listens there" 69 "127.0.0.1:1" hearth ls 127.0.0.1:1
refused "without a daemon its own cannot be told" 75 "hearth serve" hearth ls

# The daemon's own, and the upstreams that it stands before
jq -n --arg place "http://$registry" '{mirror: {upstreams: {"up.test": {url: $place}}}}' >"$work/config.json"
start_daemon --config "$work/config.json"
for name in tool:1 tool:2 tools/a:1; do
	hearth tag mine:1 "localhost/$name"
done
same "the daemon's repositories are listed" "$(hearth ls | tr '\n' ' ')" "tool tools/a "
same "below a prefix, too" "$(hearth ls tools)" tools/a
holds "or it is said that there is none" "$(hearth ls mine 2>&1)" '^no repository at or below mine; hearth images'
same "or by the name that images has" "$(hearth ls localhost/tool)" tool
same "and their tags" "$(hearth tags tool | tr '\n' ' ')" "1 2 "
same "page by page" "$(hearth tags localhost/tool --after 1 --limit 1 --json)" '["2"]'
refused "a repository that it has not is not found" 66 "no repository absent; hearth ls .* hearth tag IMAGE localhost/absent:TAG" hearth tags absent
refused "nor is what was given a short name, which is docker.io's" 66 "hearth tag IMAGE localhost/mine:TAG" hearth tags mine
refused "what is no name is refused" 64 "name" hearth tags "a b"
refused "it takes no registry's password" 64 "--username is for a registry" hearth tags tool --username me --password-stdin
same "another host asks by a token" "$(HEARTH_URL=$url HEARTH_TOKEN=$token hearth ls | tr '\n' ' ')" "tool tools/a "
same "who may not pull sees nothing" "$(HEARTH_URL=$url HEARTH_TOKEN=$(hearth token create --scope pull:tools/* 2>/dev/null) hearth ls)" tools/a

status() { hearth mirror status --json | jq -r ".upstreams[] | select(.host == \"up.test\").$1"; }
same "an upstream that nobody asked yet is one" "$(status health)" unasked
image=$(hearth mirror warm up.test/acme/tool:2 2>"$work/warm.log")
same "an image is warmed" "$image" "$(curl -fsS "http://$registry/v2/acme/tool/manifests/2" -H 'Accept: application/vnd.oci.image.manifest.v1+json' | sha256sum | sed 's/^/sha256:/; s/ .*//')"
holds "and it is said what that took" "$(cat "$work/warm.log")" "up.test/acme/tool:2 is here: [0-9]+ of [0-9]+ blobs were fetched"
same "the upstream is healthy" "$(status health)" healthy
holds "as people read it, too" "$(hearth mirror status)" '^up\.test +healthy '
kill "${servers[0]}"
same "without its upstream it is served" "$(curl -fsS -u "any:$token" "$url/v2/up.test/acme/tool/manifests/$image" | sha256sum | cut -d' ' -f1)" "${image#sha256:}"
same "which is a hit" "$(status 'hits > 0')" true
refused "what is not here cannot be warmed" "69|75" "warm up.test/acme/tool:10" hearth mirror warm up.test/acme/tool:10
holds "and the upstream fails" "$(hearth mirror status)" '^up\.test: .*'
refused "what is no upstream's cannot be warmed" 64 "other.test/a:1: no upstream of this mirror has it" hearth mirror warm other.test/a:1
refused "nor can nothing" 64 "which image" hearth mirror warm
refused "there is no other action" 64 "expected status or warm" hearth mirror cool
stop_daemon
same "the daemon ends well" "$status" 0

finish

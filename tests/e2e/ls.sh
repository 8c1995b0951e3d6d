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
refused "a repository that is not there is not found" 66 "absent" hearth tags "$registry/absent"
refused "an image is no repository" 64 "without a tag" hearth tags "$registry/acme/tool:2"
refused "nor is a registry" 64 "without a tag" hearth tags "$registry"
refused "nobody listens there" 69 "127.0.0.1:1" hearth ls 127.0.0.1:1
refused "without a daemon its own cannot be told" 75 "hearth serve" hearth ls

finish

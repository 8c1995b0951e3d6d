#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The agent of examples/ on a real Debian base from a real registry.
. "$(dirname "$0")/lib.sh"

debian_base
start_registry
push "$debian:bookworm-slim" debian:bookworm-slim
start_git
options=(--base "$registry/debian:bookworm-slim" --add-host "git.example.test=127.0.0.1:$git_port")
cp "$root/examples/agent.json" "$work/agent.json"

first=$(bake "$work/agent.json" "${options[@]}" --output "oci:$work/image:latest" --tag agent:1)
holds "apt-get install and git clone make an image" "$first" '^sha256:[0-9a-f]{64}$'
[ "$bad" = 0 ] || cat "$work/bake.log"
unpack "$work/image:latest" "$work/bundle"
same "the clone is in it" "$(cat "$work/bundle/rootfs/workspace/README.md")" "# Handbook"
check "and git, which runs" chroot "$work/bundle/rootfs" git --version
same "of the base and two steps it has three layers" \
	"$(skopeo inspect "oci:$work/image:latest" | jq '.Layers | length')" 3

again=$(bake "$work/agent.json" "${options[@]}")
same "a second bake is the same image" "$first" "$again"
same "and fully cached" "$(cached)" 2
kill "${servers[0]}"
without=$(bake "$work/agent.json" "${options[@]}")
same "it asks no registry" "$first" "$without"

sed 's|/workspace"$|/workspace \&\& touch /workspace/edited"|' "$work/agent.json" >"$work/edited.json"
edited=$(bake "$work/edited.json" "${options[@]}")
check "an edited second step makes another image" test "$edited" != "$first"
same "its first step stays cached" "$(cached)" 1
holds "hearth images knows the tag" "$(hearth images)" 'agent:1'
same "history has a line for each step" "$(hearth history --json "$first" | jq -r .. | grep -cE '^RUN ')" 2
nothing_left "nothing is left over"
finish

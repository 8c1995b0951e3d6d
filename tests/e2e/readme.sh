#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme.sh - the README's first bake as it stands there, on a base of ours, what it says of the registry, and what the
# quickstart builds for the rest.
. "$(dirname "$0")/lib.sh"

debian_base
mkdir "$work/tree"
cp -r "$root/examples" "$work/tree/"
mkdir -p "$work/tree/build/quickstart"
mknod "$work/tree/build/quickstart/device" c 1 3 # as the quickstart's store has, and no context may
by_hand=$(awk '/^## /{on = $0 == "## By hand"; part = 0} on && /^```/{part++; next} on && part == 1' "$root/README.md")
holds "it shows a bake by hand" "$by_hand" '^build/release/bin/hearth bake spec.json'
by_hand=${by_hand//debian:bookworm-slim/oci:$debian:bookworm-slim}
by_hand=${by_hand//build\/release\/bin\/hearth/$HEARTH}
holds "which prints the digest last" "$(cd "$work/tree" && bash -euc "$by_hand" 2>"$work/bake.log" | tail -n 1)" \
	'^sha256:[0-9a-f]{64}$'
holds "and names the image" "$(hearth images)" '/mine:1 '
same "a name of any length stands above no other column" \
	"$(hearth images | awk '{print index($0, NR == 1 ? "DIGEST" : $2)}' | uniq | wc -l)" 1
check "and writes a layout" test -f "$work/tree/mine/oci-layout"

own_storage
at=127.0.0.1:$(free_port)
pulls=$(awk '/^## /{on = $0 == "## A registry, and a mirror of others"; part = 0} on && /^```/{part++; next} on && part == 1' "$root/README.md")
holds "it shows a pull from the daemon" "$pulls" '^podman pull .*/repo-bot:1$'
pulls=${pulls//127.0.0.1:7460/$at}
hearth tag mine:1 localhost/repo-bot:1 >/dev/null
listen=$at start_daemon
export -f hearth
export REGISTRY_AUTH_FILE=$work/auth.json
check "which logs in and pulls" bash -euo pipefail -c "${pulls//podman/${podman[*]}}"
check "what was baked" "${podman[@]}" image exists "$at/repo-bot:1"
stop_daemon

built=$(grep -oE 'programs=\(.*\)' "$root/examples/quickstart.sh")
for program in $(sed -n 's/^foreach(program \(.*\))$/\1/p' "$root/api/CMakeLists.txt") hearth-agent share; do
	holds "the quickstart builds $program" "$built" "[( ]${program}[ )]"
done
nothing_left "nothing is left over"
finish

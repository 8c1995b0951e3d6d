#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debian-base.sh LAYOUT - a Debian base as an OCI layout, from the package mirror.
#
# Makes LAYOUT (tag bookworm-slim) unless it is there already. Needs root,
# mmdebstrap and umoci.
set -euo pipefail

[[ $# = 1 && $1 != -* ]] || { sed -n '3,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2 && exit 64; }
layout=$1
path=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
[ ! -d "$layout" ] || exit 0

mkdir -p "$(dirname "$layout")"
exec 9>"$layout.lock"
flock 9
[ ! -d "$layout" ] || exit 0
part=$layout.part
rm -rf "$part"
mkdir "$part"
trap 'rm -rf "$part" "$layout.lock"' EXIT

mmdebstrap --quiet --variant=minbase --mode=root bookworm "$part/base.tar" 9>&- </dev/null
umoci init --layout "$part/layout"
umoci new --image "$part/layout:bookworm-slim"
umoci raw add-layer --image "$part/layout:bookworm-slim" "$part/base.tar"
umoci config --image "$part/layout:bookworm-slim" --config.cmd bash --config.env "$path"
umoci gc --layout "$part/layout"
chmod -R a+rX "$part/layout"
mv "$part/layout" "$layout"

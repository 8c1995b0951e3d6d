#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A bake that fails after it rebuilt a step: the next one never combines new layers with old ones.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
mkdir "$work/www"
echo flag >"$work/www/flag"
serve_files "$work/www"
spec "$work/a.json" "$base" "RUN head -c 16 /dev/urandom | sha256sum > /one" "RUN cp /one /two" \
	"RUN wget -q -O /flag http://flag.example.test/flag && cat /one > /three"
up=(--add-host "flag.example.test=127.0.0.1:$port")
down=(--add-host flag.example.test=127.0.0.1:1)

agree() # SENTENCE: bakes, and all three files of the image are one generation
{
	rm -rf "$work/image"
	bake "$work/a.json" "${up[@]}" --output "oci:$work/image:x" >/dev/null
	unpack "$work/image:x" "$work/bundle"
	same "$1" "$(cat "$work/bundle/rootfs/one" "$work/bundle/rootfs/two" "$work/bundle/rootfs/three" | sort -u | wc -l)" 1
}

agree "an image is of one piece"
for round in 1 2 3; do
	refused "round $round: a bake fails after two rebuilt steps" 1 'step 3' \
		hearth bake "$work/a.json" --no-cache "${down[@]}"
	agree "round $round: the next is of one piece"
done
bake "$work/a.json" --no-cache "${up[@]}" >/dev/null
agree "so is one after a whole rebuild"
nothing_left "nothing is left over"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# As many layers as the kernel stacks: they are pulled, baked on and run; one more is refused.
. "$(dirname "$0")/lib.sh"

mkdir "$work/layers"
layers=() # each adds a file to /n, of which only the first says what it is
for i in $(seq 1 500); do
	mkdir -p "$work/tree/n"
	chmod 1777 "$work/tree/n"
	echo "$i" >"$work/tree/n/$i"
	[ "$i" = 1 ] && names=(n) || names=("n/$i")
	tar -C "$work/tree" --owner 0 --group 0 -cf "$work/layers/$i.tar" "${names[@]}"
	rm "$work/tree/n/$i"
	layers+=("$work/layers/$i.tar")
done
"$here/image.py" "$work/base:deep" tiny "${layers[@]:0:398}" >/dev/null
"$here/image.py" "$work/base:brim" tiny "${layers[@]:0:497}" >/dev/null
"$here/image.py" "$work/base:over" tiny "${layers[@]}" >/dev/null

spec "$work/a.json" "oci:$work/base:deep" "RUN cat /n/* | wc -l > /count && stat -c %a /n > /mode" \
	"RUN echo \$((\$(cat /count) + \$(cat /n/398))) > /sum" "COPY a.json /n/" "WORKDIR /n/deep"
digest=$(bake "$work/a.json" --context "$work" --output "oci:$work/image:deep")
holds "400 layers and more are baked on" "$digest" '^sha256:'
same "all of them are in the image" "$(hearth inspect "$digest" --json | jq '.manifest.layers | length')" 403
last() # N PATH: a file of the layer that is the Nth from the top
{
	local blob
	blob=$(jq -r '.layers['"-$1"'].digest' "$work/image/blobs/sha256/$(jq -r '.manifests[0].digest' "$work/image/index.json" | cut -d: -f2)")
	zstd -dcq "$work/image/blobs/sha256/${blob#sha256:}" | tar -xOf - "$2"
}
same "a step sees the files of all layers" "$(last 4 count)" 398
same "and a directory as the lowest has it" "$(last 4 mode)" 1777
same "the next step too" "$(last 3 sum)" 796
bake "$work/a.json" --context "$work" >/dev/null
same "all of it is cached" "$(cached)" 4
spec "$work/b.json" "oci:$work/base:brim" "RUN cat /n/* | wc -l"
holds "so are as many as the kernel stacks" "$(bake "$work/b.json")" '^sha256:'
spec "$work/c.json" "oci:$work/base:over" "RUN true"
refused "more are refused, with the number" 65 'more than 500 layers' hearth bake "$work/c.json"
nothing_left "nothing is left over"
finish

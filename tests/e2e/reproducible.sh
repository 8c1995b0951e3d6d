#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `reproducible: true`: the same spec on another day, in another data directory and
# in another order, is the same image to the last byte.
. "$(dirname "$0")/lib.sh"

mkdir -p "$work/context/sub"
echo a >"$work/context/a"
echo b >"$work/context/sub/b"
mkdir -p "$work/files/etc"
echo old >"$work/files/etc/old"
touch -d @900000000 "$work/files/etc/old"
tar -C "$work/files" --owner 0 --group 0 -czf "$work/files.tar.gz" etc
"$here/image.py" "$work/base:x" tiny "$work/files.tar.gz" >/dev/null
base=oci:$work/base:x

steps=(
	"RUN mkdir -p /srv/d && for i in \$(seq 200); do echo \$i > /srv/d/\$((i * 7919 % 1000)); done; ln /srv/d/7 /srv/link; ln -s d /srv/s"
	"RUN rm -rf /srv/d/1* && touch -d @1000 /srv/ancient && mkfifo /srv/fifo && truncate -s 5M /srv/hole && echo new > /etc/new"
	"ENV A=b"
	"COPY . /copied/"
	"WORKDIR /made/on/the/way"
	"RUN touch /srv/d"
	"RUN hostname > host && echo \$\$ > pid"
)

write_spec() # FILE REPRODUCIBLE BASE
{
	jq -n --argjson reproducible "$2" --arg base "$3" \
		'{base: $base, reproducible: $reproducible, steps: $ARGS.positional}' --args "${steps[@]}" >"$1"
}

times() # LAYOUT DIGEST: the youngest file of the layers above the base's two
{
	local blob
	jq -r '.layers[2:][].digest' "$1/blobs/sha256/${2#sha256:}" | while read -r blob; do
		zstd -dcq "$1/blobs/sha256/${blob#sha256:}" | tar --full-time --utc -tvf - | awk '{print $4, $5}'
	done | sort -r | head -n 1
}

config() # LAYOUT DIGEST FILTER
{
	jq -c "$3" "$1/blobs/sha256/$(jq -r .config.digest "$1/blobs/sha256/${2#sha256:}" | cut -d: -f2)"
}

write_spec "$work/spec.json" true "$base"
write_spec "$work/plain.json" false "$base"
created=$(jq -r .created "$work/base/blobs/sha256/$(jq -r .config.digest \
	"$work/base/blobs/sha256/$(jq -r '.manifests[0].digest' "$work/base/index.json" | cut -d: -f2)" | cut -d: -f2)")
epoch=$(date -d "$created" +%s)
before=$(date +%s)
first=$(bake "$work/spec.json" --context "$work/context" --output "oci:$work/first:x")
holds "it is baked" "$first" '^sha256:'

# Another data directory, in which the same was baked with its real times; another second,
# and a context that was checked out anew.
cp -R "$work/context" "$work/elsewhere"
find "$work/elsewhere" -exec touch {} +
check "so is the same with its times" bake "$work/plain.json" --context "$work/elsewhere" --data "$work/other" --output "oci:$work/plain:x"
check "a second has passed" wait_for 60 bash -c "[ \$(date +%s) -gt $((before + 1)) ]"
same "what kept its times is no layer of it" "$(bake "$work/spec.json" --context "$work/elsewhere" \
	--data "$work/other" --output "oci:$work/second:x")" "$first"
same "nor are its steps" "$(cached)" 1
same "it is cached as it is" "$(bake "$work/spec.json" --context "$work/context")" "$first"
same "wholly" "$(cached)" ${#steps[@]}
same "made anew it is the same" "$(bake "$work/spec.json" --context "$work/context" --no-cache)" "$first"
check "and what keeps its times is another" test "$(bake "$work/plain.json" --context "$work/context")" != "$first"
same "none of whose steps was cached for it" "$(cached)" 1

same "no file is younger than the base" "$(times "$work/first" "$first")" "$(date -u -d "@$epoch" '+%F %T')"
same "nor the image" "$(config "$work/first" "$first" .created)" "$(date -u -d "@$epoch" '+"%FT%T.000Z"')"
same "nor a step of its history" "$(config "$work/first" "$first" '[.history[-7:][].created] | unique | length')" 1
same "older times stay" "$(zstd -dcq "$work/first/blobs/sha256/$(jq -r '.layers[3].digest' "$work/first/blobs/sha256/${first#sha256:}" |
	cut -d: -f2)" | tar --full-time --utc -tvf - | awk '/ancient/ {print $4, $5}')" "1970-01-01 00:16:40"
layers()
{
	jq -c '.layers[:2]' "$work/$1/blobs/sha256/${2#sha256:}"
}
same "the base's layers are untouched" "$(layers first "$first" | jq -c '[.[].digest]')" \
	"$(jq -c '[.layers[].digest]' "$work/base/blobs/sha256/$(jq -r '.manifests[0].digest' "$work/base/index.json" | cut -d: -f2)")"
same "a step that changes nothing but times has no layer" "$(config "$work/first" "$first" '[.history[-2:][].empty_layer == true]')" '[true,false]'

jq '.compression = "gzip"' "$work/spec.json" >"$work/gzip.json"
zipped=$(bake "$work/gzip.json" --context "$work/context")
same "with gzip it is another image" "$(cached)" ${#steps[@]}
same "and that one everywhere, though its steps were never zstd" \
	"$(bake "$work/gzip.json" --context "$work/context" --data "$work/zipped")" "$zipped"

# A time of the user's.
dated=$(SOURCE_DATE_EPOCH=1000000000 bake "$work/spec.json" --context "$work/context" --output "oci:$work/dated:x")
same "SOURCE_DATE_EPOCH is the latest time" "$(times "$work/dated" "$dated")" "2001-09-09 01:46:40"
same "the image's, too" "$(config "$work/dated" "$dated" .created)" '"2001-09-09T01:46:40.000Z"'
same "--source-date-epoch says the same" "$(bake "$work/plain.json" --source-date-epoch 1000000000 --context "$work/context")" "$dated"
same "from the cache" "$(cached)" ${#steps[@]}
plain=$(bake "$work/plain.json" --context "$work/context")
same "who does not ask does not get it" "$(SOURCE_DATE_EPOCH=1000000000 bake "$work/plain.json" --context "$work/context")" "$plain"
for wrong in x -1 1.5 253402300800; do
	refused "no time is $wrong" 64 "SOURCE_DATE_EPOCH: expected seconds since 1970.*found $wrong" \
		env SOURCE_DATE_EPOCH=$wrong "$HEARTH" bake "$work/spec.json" --context "$work/context"
done
refused "nor as an option" 64 "source-date-epoch: expected seconds" "$HEARTH" bake "$work/spec.json" --source-date-epoch soon
holds "why says that it is the times" "$(hearth why "$work/plain.json" 1 --source-date-epoch 5 --context "$work/context")" 'times'

# Nothing below: the beginning of time.
steps=("COPY . /" "WORKDIR /w")
write_spec "$work/scratch.json" true scratch
scratch=$(bake "$work/scratch.json" --context "$work/context" --output "oci:$work/scratch:x")
same "on scratch" "$(bake "$work/scratch.json" --context "$work/elsewhere" --data "$work/third")" "$scratch"
same "the image is of 1970" "$(config "$work/scratch" "$scratch" '[.created, .history[].created] | unique')" '["1970-01-01T00:00:00.000Z"]'
nothing_left "nothing is left over"
finish

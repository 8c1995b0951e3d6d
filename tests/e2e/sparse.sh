#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files of many gigabytes with next to nothing in them: holes are never read, cost
# nothing in a layer, and are holes again wherever it is unpacked.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
shape="stat -c '%n %s %b' /srv/*; for at in 0 300 9000; do dd if=/srv/data.mdb bs=1M skip=\$at count=1 2>/dev/null | sha256sum; done; tail -c 300 /srv/lastlog | sha256sum"
steps=(
	"RUN truncate -s 10G /srv/data.mdb; for at in 0 300 9000; do head -c 500000 /dev/urandom | dd of=/srv/data.mdb bs=1M seek=\$at conv=notrunc 2>/dev/null; done"
	"RUN head -c 292 /dev/urandom | dd of=/srv/lastlog bs=292 seek=1885580785; truncate -s 3M /srv/hole; : > /srv/empty"
)

rows() # what the last step of the last bake wrote
{
	sed -n "s|^\[$1/$1\] ||p" "$work/bake.log" | grep -E '^/srv|  -$'
}

spec "$work/spec.json" "$base" "${steps[@]}" "RUN $shape"
digest=$(bake "$work/spec.json" --output "oci:$work/out:x")
made=$(rows 3)
same "the step sees what was made" "$(wc -l <<<"$made")" 8
check "560 GB of holes make a small layer" test "$(du -sm "$work/out" | cut -f1)" -lt 8
same "as they lie on the disk" "$(awk '/data.mdb|lastlog|hole/ {if ($3 < 3200) print $1}' <<<"$made" | wc -l)" 3

rm -rf "$HEARTH_DATA"/trees/*
spec "$work/again.json" "$base" "${steps[@]}" "RUN : again; $shape"
check "trees are made again from the layers" bake "$work/again.json"
same "with the same holes and bytes" "$(rows 3)" "$made"
spec "$work/pulled.json" "oci:$work/out:x" "RUN $shape"
check "so they are where the image is pulled" bake "$work/pulled.json" --data "$work/other"
same "with the same holes and bytes there" "$(rows 1)" "$made"
spec "$work/touched.json" "oci:$work/out:x" "RUN touch /srv/data.mdb && chmod 600 /srv/lastlog" "RUN $shape"
check "a step may change them" bake "$work/touched.json" --output "oci:$work/touched:x"
same "and they keep their bytes" "$(rows 2 | sed 's/ [0-9]*$//')" "$(sed 's/ [0-9]*$//' <<<"$made")"
# The kernel copies data up a MiB at a time, zeros and all.
same "and most of their holes" "$(awk '/data.mdb|lastlog/ {if ($3 < 3 * 2048 + 1) print $1}' <<<"$(rows 2)" | wc -l)" 2
check "and small" test "$(du -sm "$work/touched" | cut -f1)" -lt 12

mkdir -p "$work/context"
truncate -s 1T "$work/context/disk"
head -c 400000 /dev/urandom | dd of="$work/context/disk" bs=1M seek=500000 conv=notrunc status=none
spec "$work/copied.json" "$base" "COPY disk /srv/disk" "RUN stat -c '%s %b' /srv/disk"
check "a sparse file is copied" bake "$work/copied.json" --context "$work/context" --output "oci:$work/copied:x"
same "with its holes" "$(grep -oE '[0-9]+ [0-9]+$' "$work/bake.log" | head -n 1)" "$(stat -c '%s %b' "$work/context/disk")"
check "into a small layer" test "$(du -sm "$work/copied" | cut -f1)" -lt 6
check "and found again" bake "$work/copied.json" --context "$work/context"
same "by its bytes" "$(cached)" 2

# What GNU tar makes of it.
spec "$work/tar.json" "$base" "RUN truncate -s 90M /f; for at in 0 5 89; do head -c 123456 /dev/urandom | dd of=/f bs=1M seek=\$at conv=notrunc 2>/dev/null; done; stat -c '%s %b' /f; sha256sum /f"
digest=$(bake "$work/tar.json" --output "oci:$work/tar:x")
blob=$(jq -r '.layers[-1].digest' "$work/tar/blobs/sha256/${digest#sha256:}")
mkdir "$work/untarred"
zstd -dcq "$work/tar/blobs/sha256/${blob#sha256:}" | tar -C "$work/untarred" -xf -
was=$(grep -oE '[0-9]+ [0-9]+$|[0-9a-f]{64}  /f' "$work/bake.log")
same "GNU tar unpacks the same bytes" "$(sha256sum <"$work/untarred/f" | cut -d' ' -f1)" "$(sed -n '2s/ .*//p' <<<"$was")"
check "with holes" test "$(stat -c %b "$work/untarred/f")" -lt 1200

# And the other way: what GNU tar wrote, in each of its formats.
for format in "--format gnu" "--sparse-version 1.0" "--sparse-version 0.1" "--sparse-version 0.0"; do
	# shellcheck disable=SC2086 # an option and its value
	tar -C "$work/untarred" --owner 0 --group 0 --sparse ${format/--sparse/--format pax --sparse} -cf "$work/sparse.tar" f
	"$here/image.py" "$work/foreign:latest" tiny "$work/sparse.tar" >/dev/null
	spec "$work/foreign.json" "oci:$work/foreign:latest" "RUN stat -c '%s %b' /f; sha256sum /f"
	check "what tar $format wrote is read" bake "$work/foreign.json"
	same "with its holes and bytes: $format" "$(grep -oE '[0-9]+ [0-9]+$|[0-9a-f]{64}  /f' "$work/bake.log")" \
		"$was"
done
nothing_left "nothing is left over"
finish

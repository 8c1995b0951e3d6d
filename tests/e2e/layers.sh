#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a step leaves, name by name: cases in which other builders were wrong.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
mkdir -p "$work/context/common/sub" "$work/context/other"
echo f >"$work/context/common/sub/f"
echo o >"$work/context/other/o"

make() # STEP...: bakes with --context and exports; sets digest
{
	rm -rf "$work/out"
	spec "$work/make.json" "$base" "$@"
	digest=$(bake "$work/make.json" --context "$work/context" --output "oci:$work/out:x")
}

manifest()
{
	cat "$work/out/blobs/sha256/${digest#sha256:}"
}

count_layers()
{
	manifest | jq '.layers | length'
}

layer() # the tar of the last layer
{
	zstd -dcq "$work/out/blobs/sha256/$(manifest | jq -r '.layers[-1].digest' | cut -d: -f2)"
}

names() # of the last layer, sorted, as ./-less paths
{
	layer | tar -tf - | sed 's|^\./||; /^$/d' | LC_ALL=C sort
}

files() # unpacked by umoci into $work/bundle/rootfs
{
	unpack "$work/out:x" "$work/bundle"
	rootfs=$work/bundle/rootfs
}

make "RUN true"
same "a step that changes nothing has no layer" "$(count_layers)" 1
make "RUN mkdir /s && mv /s /t && rmdir /t && touch /etc/passwd.new && rm /etc/passwd.new"
same "neither has one that undid what it did" "$(count_layers)" 1
make "RUN mv /etc/passwd /etc/tmp && mv /etc/tmp /etc/passwd"
same "nor one that renamed to and fro" "$(count_layers)" 1
cold=$digest
make "RUN mv /etc/passwd /etc/tmp && mv /etc/tmp /etc/passwd"
same "cold and from the cache it is one image" "$digest" "$cold"
make "RUN mkdir -p /d/e && echo x > /d/e/f && ln -s f /d/e/s" "RUN mv /d /t && mv /t /d"
same "nor one that did so with a directory" "$(count_layers)" 2

make "RUN mkdir /d && touch /d/a" "RUN rm -rf /d" "RUN mkdir /d && touch /d/b"
files
same "a directory made again holds only the new" "$(ls "$rootfs/d")" b
make "RUN mkdir /d && touch /d/a" "RUN rm -rf /d && mkdir /d && touch /d/b"
files
same "in one step, too" "$(ls "$rootfs/d")" b
make "RUN mkdir /a1 && touch /a1/file" "RUN rm -rf /a1"
same "a removed directory is one whiteout" "$(names)" .wh.a1
make "RUN mkdir /a1 && touch /a1/file" "RUN rm -rf /a1 && mkdir /a1"
files
check "one made again is there" test -d "$rootfs/a1"
same "and is empty" "$(ls -A "$rootfs/a1")" ""
same "since it says so" "$(names | tr '\n' ' ')" "a1/ a1/.wh.file "
make "RUN mkdir /a1 && touch /a1/file" "RUN rm -rf /a1 && mkdir /a1 && touch /a1/newfile"
files
same "or has the new alone" "$(ls -A "$rootfs/a1")" newfile
make "RUN mkdir /a && touch /a/a" "RUN rm -rf /a && mkdir /b && ln -s b /a"
same "no whiteout lies under what is a link now" "$(names | tr '\n' ' ')" "a b/ "
make "RUN rm /bin/wget && mkdir /bin/wget" "RUN rmdir /bin/wget && ln -s busybox /bin/wget"
files
same "link to directory and back" "$(readlink "$rootfs/bin/wget")" busybox
make "RUN mkdir -p /srv/dir && echo first > /srv/dir/first" "RUN rm /srv/dir/first"
same "a removed file is a whiteout" "$(names | grep -c '^srv/dir/.wh.first$')" 1
warm=$(bake "$work/make.json" --context "$work/context")
same "warm as cold" "$digest $(cached)" "$warm 2"
make "RUN mkdir /srv/apache" "RUN echo x > /srv/apache/run" "RUN chmod 0500 /srv/apache/run"
files
same "a mode that is all that changed" "$(stat -c %a "$rootfs/srv/apache/run")" 500
same "removes nothing" "$(names | tr '\n' ' ')" "srv/ srv/apache/ srv/apache/run "
make "RUN mkdir /s1 && echo a > /s1/a && ln /s1/a /s1/b"
same "a hard link is one, by a relative name" "$(layer | tar -tvf - | grep -c 'link to \(\./\)\?s1/')" 1
make "RUN head -c 1048576 /dev/urandom > /f" "RUN ln /f /g"
files
same "a link across layers links both names" "$(stat -c %h "$rootfs/f" "$rootfs/g" | sort -u)" 2
note="1.0 MB copied because a hard link reaches into a layer below"
same "and says that it is a copy, once" "$(grep -c "\[2/2\] $note" "$work/bake.log")" 1
holds "so does history" "$(hearth history "${digest:7:12}" | tail -n 1)" "^ +$note"
same "in bytes, too" "$(hearth history --json "${digest:7:12}" | jq -c '[.[].linkedBytes]')" "[null,null,1048576]"
same "and the answer of a bake" "$(hearth bake "$work/make.json" --json --no-cache 2>/dev/null | jq .linkedBytes)" 1048576
same "from the cache, too" "$(hearth bake "$work/make.json" --json --progress json 2>"$work/events" | jq .linkedBytes)" 1048576
same "and its events" "$(jq -c 'select(.event == "stepDone") | .linkedBytes' "$work/events" | paste -sd,)" null,1048576
make "RUN head -c 1048576 /dev/urandom > /f" "RUN echo more >> /f; ln /f /g; rm /f; echo x > /x; ln /x /y"
same "nothing is copied for links that reach nowhere" "$(grep -c copied "$work/bake.log")" 0
make "RUN truncate -s 20G /sparse && echo end >> /sparse"
check "a sparse file makes a small layer" test "$(du -sm "$work/out" | cut -f1)" -lt 64
make "RUN for i in etc proc sys dev run tmp; do test -d /\$i; done; cat /etc/resolv.conf /etc/hosts"
same "what was mounted for the step is in no layer" "$(count_layers)" 1
make "RUN if mknod /node c 0 0; then exit 3; fi"
same "a device that would pass for a whiteout cannot be made" "$(count_layers)" 1
make "WORKDIR /" "WORKDIR /etc" "WORKDIR ../tmp"
same "directories that are there need no layer" "$(count_layers)" 1
same "but an entry of the history" "$(hearth inspect "$digest" --json | jq -c '[.config.history[-3:][].empty_layer]')" '[true,true,true]'
make "RUN (sleep 0.2; echo late > /late) & true"
check "a process that outlives its step is ended" bash -c '! grep -qx late <<<"$1"' - "$(names 2>/dev/null)"

# Bases whose root is not 0755, or that begin anew.
first_layer() # SENTENCE EXPECTED STEP LAYER...: what the first step on a base of these layers adds
{
	local sentence=$1 expected=$2 step=$3
	shift 3
	"$here/image.py" "$work/odd:latest" "$@" >/dev/null
	rm -rf "$work/out"
	spec "$work/make.json" "oci:$work/odd:latest" "$step"
	digest=$(bake "$work/make.json" --output "oci:$work/out:x")
	same "$sentence" "$(names | tr '\n' ' ')" "$expected"
}
mkdir -p "$work/again/bin"
cp /bin/busybox "$work/again/bin"
ln -s busybox "$work/again/bin/sh"
touch "$work/again/.wh..wh..opq"
tar -C "$work/again" --owner 0 --group 0 -cf "$work/again.tar" .wh..wh..opq bin
tar -C "$work/again" --owner 0 --group 0 -cf "$work/more.tar" bin/sh
mkdir -p "$work/implies/tmp"
echo x >"$work/implies/tmp/x"
tar -C "$work/implies" --owner 0 --group 0 -cf "$work/implies.tar" tmp/x
first_layer "a root of 0555 is none of the step's doing" "new " "RUN touch /new" entry:closed-root tiny
check "neither below a layer that does not name it" test "$(layer | tar -tf - | grep -cx '\./')" = 0
first_layer "nor above one" "new " "RUN touch /new" tiny entry:closed-root
check "at all" test "$(layer | tar -tf - | grep -cx '\./')" = 0
first_layer "a layer that only implies /tmp leaves it as it was" "tmp/ tmp/mode " \
	"RUN test \$(stat -c %a /tmp) = 1777 && echo > /tmp/mode" tiny "$work/implies.tar"
same "for the next step, too" "$(layer | tar -tvf - | awk '$NF ~ /tmp\/$/ {print $1}')" drwxrwxrwt
first_layer "a closed root stays closed above layers without one" "new " "RUN test \$(stat -c %a /) = 555 && touch /new" \
	tiny entry:closed-root "$work/implies.tar"
make_closed() # STEP...: on that base
{
	spec "$work/make.json" "oci:$work/odd:latest" "$@"
	bake "$work/make.json"
}
holds "and above steps" "$(make_closed "RUN touch /one" "RUN test \$(stat -c %a /) = 555" "RUN test \$(stat -c %a /) = 555")" '^sha256'
first_layer "a layer that hides all below it does" "new " "RUN busybox test ! -e /etc/passwd && echo > /new" \
	tiny "$work/again.tar"
first_layer "also below another" "new " "RUN busybox test ! -e /etc/passwd && echo > /new" \
	tiny "$work/again.tar" "$work/more.tar"

# Equal layers, as steps and bases make them.
spec "$work/make.json" "$base" "RUN touch -d @1 /etc/foo; touch -d @1 /etc" "RUN rm /etc/foo; touch -d @1 /etc" \
	"RUN touch -d @1 /etc/foo; touch -d @1 /etc" "RUN test -e /etc/foo"
holds "a step that makes an earlier one's layer again is stacked once" "$(bake "$work/make.json")" '^sha256'
first_layer "so is a base's layer, and the highest of them counts" "new " "RUN busybox test ! -e /etc/passwd && echo > /new" \
	tiny "$work/again.tar" tiny "$work/more.tar" "$work/again.tar"

make "COPY common/sub/f tmp/"
files
same "COPY into /tmp keeps its mode" "$(stat -c %a "$rootfs/tmp")" 1777
make "COPY --chown=1000:1000 --chmod=640 common/sub/f /new/dir/f"
files
same "owner and mode of a copied file" "$(stat -c '%u:%g %a' "$rootfs/new/dir/f")" "1000:1000 640"
same "the parents made for it have them too, and can be entered" "$(stat -c '%u:%g %a' "$rootfs/new/dir")" "1000:1000 750"
make "COPY common /c" "RUN ls -R /c"
make "COPY common /c" "RUN ls -R /c"
same "copied twice: cached" "$(cached)" 2
find "$work/context" -exec touch -d 2001-01-01 {} +
cp -R "$work/context" "$work/elsewhere"
spec "$work/make.json" "$base" "COPY common /c" "RUN ls -R /c"
same "from another place, with other times: cached" \
	"$(bake "$work/make.json" --context "$work/elsewhere" >/dev/null; cached)" 2
chmod 700 "$work/context/common/sub"
make "COPY common /c" "RUN ls -R /c"
same "a directory's mode is a change" "$(cached)" 0
files
same "and arrives" "$(stat -c %a "$rootfs/c/sub")" 700
mv "$work/context/common/sub/f" "$work/context/common/sub/g"
make "COPY common /c"
files
same "so is a name" "$(ls "$rootfs/c/sub")" g
make "COPY common /y"
check "so is a destination" test "$(cached)" = 0
files
same "where it is, and nowhere else" "$(ls -d "$rootfs"/[cy])" "$rootfs/y"
ln -s /nowhere "$work/context/common/dangling"
make "COPY common /c"
files
same "links inside a copied directory stay links" "$(readlink "$rootfs/c/dangling")" /nowhere

spec "$work/make.json" "$base" "COPY common /c" "WORKDIR /made/here" "RUN mkdir d && touch d/f"
for mask in 000 077; do
	rm -rf "$work/out"
	(umask "$mask" && hearth bake "$work/make.json" --context "$work/context" --data "$work/data-$mask" \
		--output "oci:$work/out:x") >/dev/null 2>&1
	files
	"$here/listing.py" "$rootfs" >"$work/listing-$mask"
done
same "the caller's umask is in nothing" "$(cat "$work/listing-000")" "$(cat "$work/listing-077")"

spec "$work/long.json" "$base" "RUN yes 0123456789012345678901234567890123456789 | head -n 500000"
hearth bake "$work/long.json" >/dev/null 2>"$work/long.log"
same "no line of a long log is lost" "$(grep -cxE '\[1/1\] [0-9]{40}' "$work/long.log")" 500000

spec "$work/twin.json" "$base" "RUN echo ran; sleep 1; cat /proc/sys/kernel/random/uuid > /uuid"
for n in 1 2 3; do
	hearth bake "$work/twin.json" >"$work/twin-$n" 2>"$work/twin-$n.log" &
	twins[n]=$!
done
wait "${twins[@]}"
same "three bakes of one step at once run it once" "$(cat "$work"/twin-[123] | sort -u | wc -l)" 1
same "and each of them sees its log, or that it was cached" "$(grep -lE '^\[1/1\] (ran|CACHED)$' "$work"/twin-[123].log | wc -l)" 3
nothing_left "nothing is left over"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# COPY: from images, with --link, and what its key is made of.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
context=$work/context
mkdir -p "$context/src/sub" "$context/other"
echo one >"$context/src/f"
echo two >"$context/src/sub/g"
echo three >"$context/other/h"
echo net >"$context/ping"
chmod 755 "$context/ping"
setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 "$context/ping"


make() # DIR BASE STEP...: bake it, and unpack it; sets files
{
	local dir=$1
	shift
	spec "$work/$dir.json" "$@"
	jq '. + {compression: "gzip"}' "$work/$dir.json" >"$work/$dir.gz.json"
	hearth bake "$work/$dir.gz.json" --context "$context" --output "oci:$work/$dir.oci:latest" >/dev/null 2>"$work/bake.log" ||
		{ not_ok "bake $dir" "$(tail -n 5 "$work/bake.log")"; return; }
	umoci unpack --image "$work/$dir.oci:latest" "$work/$dir" >/dev/null
	files=$work/$dir/rootfs
}

owner()
{
	stat -c %u:%g "$files/$1"
}

# An image to copy from.
spec "$work/parts.json" "$base" "COPY ping /opt/ping" \
	"RUN mkdir -p /s1/sub && echo data >/s1/a && ln /s1/a /s1/b && ln /s1/a /s1/sub/c && mkfifo /s1/pipe && ln -s a /s1/l && chown 100:200 /s1/a && chown 101:201 /s1/sub && chmod 2750 /s1/sub && chown -h 7:8 /s1/l && touch -d @1000000000 /s1/a" \
	"RUN echo '*' >/.dockerignore && ln -s s1 /door"
parts=$(bake "$work/parts.json" --context "$context" --tag parts:1)
holds "an image to copy from" "$parts" '^sha256:'
printf '*\n!src\n' >"$context/.dockerignore"

# ---- from an image
make from "$base" "COPY --from=parts:1 /s1 /dir" "COPY --from=parts:1 --chown=1:1 /opt/ping /" "COPY --from=parts:1 door/a /by/door"
same "without --chown owners stay, and what had to be made is root's" \
	"$(owner dir) $(owner dir/a) $(owner dir/sub) $(owner dir/l)" "0:0 100:200 101:201 7:8"
same "modes, times and fifos stay" \
	"$(stat -c %a "$files/dir/sub") $(stat -c %Y "$files/dir/a") $(stat -c %F "$files/dir/pipe")" "2750 1000000000 fifo"
same "hard links stay links" "$(stat -c '%i %h' "$files/dir/a")" "$(stat -c '%i %h' "$files/dir/sub/c")"
same "all three of them" "$(stat -c %h "$files/dir/b")" 3
layer=$(jq -r '.manifests[0].digest' "$work/from.oci/index.json")
layer=$(jq -r '.layers[-3].digest' "$work/from.oci/blobs/sha256/${layer#sha256:}")
same "the layer holds their bytes once, and names them relatively" \
	"$(tar -tvzf "$work/from.oci/blobs/sha256/${layer#sha256:}" | grep -c ' link to dir/a')" 2
same "a capability outlives a change of owner" \
	"$(owner ping) $(getfattr --only-values -n security.capability "$files/ping" | od -An -tx1 | tr -d ' \n' | cut -c1-16)" "1:1 0100000200200000"
same "links are followed inside the image" "$(cat "$files/by/door")" data
same "all of it is cached" "$(bake "$work/from.json" >/dev/null; cached)" 3
spec "$work/tagged.json" "$base" "COPY --from=again:1 /uuid /uuid"
spec "$work/again.json" "$base" "RUN cat /proc/sys/kernel/random/uuid > /uuid"
bake "$work/again.json" --tag again:1 >/dev/null
once=$(bake "$work/tagged.json")
bake "$work/again.json" --tag again:1 --no-cache >/dev/null
twice=$(bake "$work/tagged.json")
same "an image that was made anew is copied from anew" "$(cached)" 0
check "with what it has now" test "$once" != "$twice"
refused "what is not in the image is said to be missing there" 66 'sl is not in parts:1; did you mean s1\?' \
	hearth bake <(jq -n --arg b "$base" '{base: $b, steps: ["COPY --from=parts:1 /sl /x"]}')
refused "an unknown owner is an error, as it is looked up where the files go" 66 "owner \"nobody2\"" \
	hearth bake <(jq -n --arg b "$base" '{base: $b, steps: ["COPY --from=parts:1 --chown=nobody2 /s1 /x"]}')
refused "an image that is nowhere is named" "66|69" 'from.*127\.0\.0\.1:1/none' \
	hearth bake <(jq -n --arg b "$base" '{base: $b, steps: ["COPY --from=127.0.0.1:1/none:1 /s1 /x"]}')

start_registry
push "$work/tiny:latest" tools:1
spec "$work/remote.json" scratch "COPY --from=$registry/tools:1 /bin /bin" "RUN [\"/bin/busybox\", \"true\"]"
remote=$(bake "$work/remote.json")
holds "an image is pulled to copy from it" "$remote" '^sha256:'
kill "${servers[0]}"
same "and not asked for again" "$(bake "$work/remote.json") $(cached)" "$remote 2"
spec "$work/layout.json" scratch "COPY --from=oci:$work/tiny:latest /bin /bin"
holds "a layout is an image, too" "$(bake "$work/layout.json")" '^sha256:'

# ---- keys
key() # SENTENCE N: how many steps of the last bake were cached
{
	bake "$work/k.json" --context "$context" >/dev/null
	same "$1" "$(cached)" "$2"
}
rm "$context/.dockerignore"
spec "$work/k.json" "$base" "COPY src /c"
key "a first copy is made" 0
touch "$context/src/f"
key "a touched file is the same" 1
cp -R "$context" "$work/elsewhere"
context=$work/elsewhere key "so is another checkout" 1
chmod 0700 "$context/src/sub"
key "a directory's mode is not" 0
spec "$work/k.json" "$base" "COPY other /c"
key "another source is not" 0
spec "$work/k.json" "$base" "COPY src /c"
key "the first one again is" 1
chmod 0664 "$context/src/f"
key "what umask did to a file shows" 0
spec "$work/k.json" "$base" "COPY --chmod=u=rwX,go=rX src /c"
key "where --chmod says the modes it is another step" 0
chmod 0644 "$context/src/f"
key "to which umask does nothing" 1
chmod 0755 "$context/src/f"
key "but for what it lets run" 0
chmod 0664 "$context/src/f"
mv "$context/src/f" "$context/src/f2"
key "a name counts" 0
spec "$work/k.json" "$base" "COPY src /d"
key "a destination counts" 0
spec "$work/k.json" "$base" "ENV A=1" "COPY other/h /\$A/h" "WORKDIR /\$A/w"
key "variables go into paths" 1 # the ENV
sed 's/A=1/A=2/' "$work/k.json" >"$work/k2.json" && mv "$work/k2.json" "$work/k.json"
key "and into keys" 1
spec "$work/k.json" "$base" "ENV A=1" "COPY other/h h" "WORKDIR /tmp" "COPY other/h /h2" "RUN cat /h /h2 >/h3"
bake "$work/k.json" --context "$context" >/dev/null
sed 's/A=1/A=2/' "$work/k.json" >"$work/k2.json" && mv "$work/k2.json" "$work/k.json"
key "another variable makes a RUN run, but no COPY and no WORKDIR" 4
spec "$work/k.json" "$base" "ENV A=2" "WORKDIR /opt" "COPY other/h h" "COPY other/h /h2"
bake "$work/k.json" --context "$context" >/dev/null
spec "$work/k.json" "$base" "ENV A=2" "WORKDIR /srv" "COPY other/h h"
key "a working directory counts where a destination is relative" 1
spec "$work/k.json" "$base" "WORKDIR /srv" "COPY other/h /h2"
bake "$work/k.json" --context "$context" >/dev/null
spec "$work/k.json" "$base" "WORKDIR /opt" "COPY other/h /h2"
key "and nowhere else" 2
spec "$work/k.json" "$base" "COPY --exclude=sub src /c"
key "what is left out counts" 0
echo more >"$context/src/sub/x"
key "what is in it does not" 1

# ---- what is below
make below "$base" "RUN mkdir -p /t && chmod 1777 /t && mkdir -p /a/d && touch /a/d/x" \
	"COPY src /t" "COPY --chown=5:6 --chmod=0640 src/f2 /new/dir/f" \
	"RUN rm -rf /a && mkdir /b && ln -s b /a" "COPY src/f2 /a/f" "RUN chmod 0500 /a/f"
same "a directory that is there keeps its mode" "$(stat -c %a "$files/t")" 1777
same "parents take the owner, and a mode with which they can be entered" \
	"$(stat -c '%a %u:%g' "$files/new") $(stat -c '%a %u:%g' "$files/new/dir") $(stat -c '%a %u:%g' "$files/new/dir/f")" \
	"750 5:6 750 5:6 640 5:6"
same "a link in a directory's place is followed" "$(readlink "$files/a") $(stat -c %a "$files/b/f")" "b 500"
make parents "$base" "COPY --parents ./src/./sub/x other/h nomatch* /p/"
same "--parents keeps directories, and those below the pivot alone" "$(cd "$files/p" && find . -type f | sort | paste -sd ' ')" "./other/h ./sub/x"
refused "but no name that is missing" 66 'src/none is not in the context' \
	hearth bake <(jq -n --arg b "$base" '{base: $b, steps: ["COPY --parents src/none /p/"]}') --context "$context"

# ---- a layer of its own
make link "$base" "RUN mkdir -p /t /u && chmod 1777 /t && ln -s u /v" "COPY --link src/f2 /t/f" "COPY --link src/f2 /v/f"
same "--link makes parents anew" "$(stat -c %a "$files/t") $(cat "$files/t/f")" "755 one"
check "and follows nothing below" test -d "$files/v" -a ! -L "$files/v"
spec "$work/link2.json" "$base" "RUN mkdir /changed" "COPY --link src/f2 /t/f"
jq '. + {compression: "gzip"}' "$work/link2.json" >"$work/link2.gz.json"
bake "$work/link2.gz.json" --context "$context" >/dev/null
same "it is kept whatever is below" "$(cached)" 1
refused "no name of an owner is known there" 66 'owner "ada"' \
	hearth bake <(jq -n --arg b "$base" '{base: $b, steps: ["COPY --link --chown=ada src /x"]}') --context "$context"
check "what was made runs" test -n "$(bake "$work/link2.json" --context "$context")"

# ---- what is left out
mkdir -p "$context/live/run"
echo live >"$context/live/f"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$context/live/run/sock"
printf '*\n!src\n!live\n' >"$context/.dockerignore"
make live "$base" "COPY live /live"
same "a socket is in no image" "$(cd "$files/live" && find . ! -type d)" ./f
holds "which the log says" "$(cat "$work/bake.log")" 'hearth: run/sock is a socket and is left out'
make quiet "$base" "COPY --exclude=run/sock live /live"
check "but not where it was excluded" test "$(grep -c 'left out' "$work/bake.log")" = 0

# ---- what is missing
printf 'a\nsrc/s*\n' >"$context/.dockerignore"
refused "a rule that hides a source is named with its line" 66 "step 1 .*COPY: src/sub is hidden by .dockerignore line 2 \(src/s\*\) \(the context is $context\)" \
	hearth bake <(jq -n --arg b "$base" '{base: $b, steps: ["COPY src/sub /x"]}') --context "$context"
refused "a missing source is named with its neighbour and the context" 66 "step 1 .*othre is not in the context; did you mean other\? \(the context is $context\)" \
	hearth bake <(jq -n --arg b "$base" '{base: $b, steps: ["COPY othre /x"]}') --context "$context"
rm "$context/.dockerignore"
refused "all of a path is proposed" 66 'did you mean src/sub/g\?' \
	hearth bake <(jq -n --arg b "$base" '{base: $b, steps: ["COPY src/sbu/g /x"]}') --context "$context"
nothing_left "nothing is left over"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `hearth why`: what makes a step run, told by the first component that differs.
. "$(dirname "$0")/lib.sh"

says() # SENTENCE PHRASE STEP [OPTION...]: what is said of a step of the spec
{
	local sentence=$1 phrase=$2 step=$3
	shift 3
	holds "$sentence" "$(hearth why "$work/a.json" "$step" "$@")" "$phrase"
}

base=$(tiny_base)
spec "$work/a.json" "$base" "RUN true"
refused "before the first bake everything would run" 66 "nothing was baked" hearth why "$work/a.json" 1
mkdir "$work/context"
echo one >"$work/context/file"
copy=(--context "$work/context")
base_digest=$(hearth pull "$base" 2>/dev/null | tail -n 1)
spec "$work/a.json" "$base" "ENV A=1" "RUN echo \$A > /a" "COPY file /file" "RUN cat /a /file > /b"
bake "$work/a.json" "${copy[@]}" >/dev/null
says "ENV has nothing to run" 'makes no layer' 1 "${copy[@]}"
says "what did not change is cached" '^step 2 .*is cached' 2 "${copy[@]}"
says "so is a copy" '^step 3 .*is cached' 3 "${copy[@]}"

spec "$work/a.json" "$base" "ENV A=2 B=3" "RUN echo \$A > /a" "COPY file /file" "RUN cat /a /file > /b"
says "a variable is named, with both values" '^environment A: was "1", is "2"$' 2 "${copy[@]}"
says "so is one that is new" '^also environment B: was absent, is "3"$' 2 "${copy[@]}"
says "a step below is explained by the first that runs" '^step 4 would run, since one above it does$' 4 "${copy[@]}"
same "as JSON too" "$(hearth why "$work/a.json" 2 "${copy[@]}" --json | jq -c '[.status, .differences[0].name]')" '["differs","A"]'

spec "$work/a.json" "$base" "ENV A=1" "RUN echo \$A > /a" "COPY file /file" "RUN cat /file /a > /b"
says "another instruction is quoted" '^instruction: was "RUN cat /a /file > /b", is "RUN cat /file /a > /b"$' 4 "${copy[@]}"
spec "$work/a.json" "$base" "ENV A=1" "RUN echo \$A > /a" "COPY file /file" "RUN cat /a /file > /b"
chmod 600 "$work/context/file"
says "a file is named, with its old and its new mode alone" '^file file: was "0644, 4 bytes", is "0600, 4 bytes"$' 3 "${copy[@]}"
chmod 644 "$work/context/file"
echo two >"$work/context/file"
says "other bytes of the same size are told by digest" '^file file: was "0644, 4 bytes, [0-9a-f]{12}", is "0644, 4 bytes, [0-9a-f]{12}"$' 3 "${copy[@]}"
echo three >"$work/context/file"
says "another size says enough" '^file file: was "0644, 4 bytes", is "0644, 6 bytes"$' 3 "${copy[@]}"
mkdir "$work/context/tree"
echo a >"$work/context/tree/a"
ln -s a "$work/context/tree/b"
spec "$work/c.json" "$base" "COPY tree /tree"
bake "$work/c.json" "${copy[@]}" >/dev/null
rm "$work/context/tree/a"
ln -sfn c "$work/context/tree/b"
mkdir "$work/context/tree/c"
told=$(hearth why "$work/c.json" 1 "${copy[@]}")
holds "so is a link" "$told" 'file tree/b: was "a link to a", is "a link to c"$'
holds "a directory that is new" "$told" 'file tree/c: was absent, is "0755, a directory"$'
holds "and a file that is gone" "$told" 'file tree/a: was "0644, 2 bytes", is absent$'
spec "$work/a.json" "$base" "ENV A=1" "RUN echo \$A > /a" "RUN cat /a /file > /b"
says "a parent is named by the steps that make it" '^parent: was "COPY file /file", is "RUN echo \$A > /a"$' 3 "${copy[@]}"
spec "$work/a.json" "$base" "RUN true && true" "RUN true || false" "RUN false || true"
bake "$work/a.json" >/dev/null
spec "$work/a.json" "$base" "RUN true && true" "RUN true || true"
says "of several that are as like it is the one of like words" '^instruction: was "RUN true && true"' 2
spec "$work/a.json" scratch "COPY file /file"
says "no base is told as such" "^base: was ${base_digest:0:19}, is absent\$" 1 "${copy[@]}"
bake "$work/a.json" "${copy[@]}" >/dev/null
spec "$work/a.json" scratch "COPY file /elsewhere"
says "what stands on nothing has a place, too" '^instruction: was "COPY file /file", is "COPY file /elsewhere"$' 1 "${copy[@]}"
echo three >"$work/context/other"
tar -C "$work/context" -cf "$work/other.tar" other
other=$("$here/image.py" "$work/other:latest" tiny "$work/other.tar")
spec "$work/a.json" "oci:$work/other:latest" "ENV A=1" "RUN echo \$A > /a"
hearth pull "oci:$work/other:latest" >/dev/null 2>&1
told=$(hearth why "$work/a.json" 2)
same "another base is the first cause, with both digests" "$(sed -n 2p <<<"$told")" "base: was ${base_digest:0:19}, is ${other:0:19}"
holds "and its layers are the second" "$told" '^also parent: was sha256:[0-9a-f]{12}, is sha256:[0-9a-f]{12}$'
same "as JSON a digest is whole" "$(hearth why "$work/a.json" 2 --json | jq -c '.differences[0]')" \
	"{\"what\":\"base\",\"was\":\"$base_digest\",\"is\":\"$other\"}"

echo "a step that was edited and has an equal result:"
early() # YEAR: equal in all but a time
{
	echo "echo early > /early; touch -d '$1-01-01 00:00:00' /early"
}
spec "$work/a.json" "$base" "RUN $(early 2001)" "RUN cat /early > /late"
bake "$work/a.json" >/dev/null
spec "$work/a.json" "$base" "RUN $(early 2002)" "RUN cat /early > /late"
bake "$work/a.json" --progress plain >/dev/null
holds "it runs, and its layer is an earlier one" "$(cat "$work/bake.log")" '^\[1/2\] DONE .*, layer of .*, equal to an earlier one$'
holds "so the step below is cached" "$(cat "$work/bake.log")" '^\[2/2\] CACHED'
spec "$work/a.json" "$base" "RUN $(early 2003)" "RUN cat /early > /late"
bake "$work/a.json" --progress json >/dev/null
same "as JSON too" "$(jq -c 'select(.event == "stepDone") | [.step, .cutOff, .cached]' "$work/bake.log" | tr -d '\n')" '[1,true,false][2,false,true]'
says "why says it later" '^step 1 .* is cached: .*, and an earlier equal layer stands in for its own$' 1
same "as JSON: cutOff" "$(hearth why "$work/a.json" 1 --json | jq -c '[.status, .cutOff]')" '["cached",true]'
spec "$work/a.json" "$base" "RUN $(early 2001) # once more" "RUN cat /early > /late"
bake "$work/a.json" --progress plain >/dev/null
holds "one that is equal in its times, too, is told so" "$(cat "$work/bake.log")" '^\[1/2\] DONE .*, layer of .*, equal to an earlier one$'
jq '.reproducible = true' "$work/a.json" >"$work/r.json"
bake "$work/r.json" >/dev/null
sed -i 's/once more/and more/' "$work/r.json"
bake "$work/r.json" --progress plain >/dev/null
holds "so is one of a reproducible bake" "$(cat "$work/bake.log")" '^\[1/2\] DONE .*, layer of .*, equal to an earlier one$'
says "and of one that made its own it does not" '^step 2 .* is cached: it was made [^,]*$' 2
same "nor as JSON" "$(hearth why "$work/a.json" 2 --json | jq -c '[.status, .cutOff]')" '["cached",false]'

echo "what a RUN binds:"
mkdir -p "$work/context/lib/deep" "$work/context/bin"
echo one >"$work/context/lib/deep/file"
echo two >"$work/context/bin/tool"
bind="--mount=type=bind,source=lib,target=/lib1 --mount=type=bind,source=bin/tool,target=/tool"
spec "$work/a.json" "$base" "RUN $bind cat /tool /lib1/deep/file > /both"
bake "$work/a.json" "${copy[@]}" >/dev/null
chmod 640 "$work/context/lib/deep/file"
same "a file of a bind mount is named, and no digest of all" "$(hearth why "$work/a.json" 1 "${copy[@]}" | tail -n +2)" \
	'file lib/deep/file: was "0644, 4 bytes", is "0640, 4 bytes"'
chmod 644 "$work/context/lib/deep/file"
chmod 700 "$work/context/lib"
says "so is the directory that is bound" '^file lib: was "0755, a directory", is "0700, a directory"$' 1 "${copy[@]}"
chmod 755 "$work/context/lib"
rm "$work/context/lib/deep/file"
echo three >"$work/context/bin/tool"
told=$(hearth why "$work/a.json" 1 "${copy[@]}")
holds "of several mounts each file is" "$told" 'file bin/tool: was "0644, 4 bytes", is "0644, 6 bytes"$'
holds "and what is gone" "$told" 'file lib/deep/file: was "0644, 4 bytes", is absent$'

echo "an image that is no base:"
lender() # FILE MODE: an image of one file, always of the same name
{
	rm -rf "$work/lent" "$work/lender"
	mkdir -p "$work/lent/opt/in"
	cp "$1" "$work/lent/opt/in/tool"
	chmod "$2" "$work/lent/opt/in/tool"
	tar -C "$work/lent" --owner=5 --group=6 -cf "$work/lent.tar" opt
	"$here/image.py" "$work/lender:latest" tiny "$work/lent.tar" >/dev/null
	hearth pull "oci:$work/lender:latest" >/dev/null 2>&1
}
lender "$work/context/other" 644
spec "$work/a.json" "$base" "COPY --from=oci:$work/lender:latest /opt/in /in"
spec "$work/e.json" "$base" "RUN --mount=type=bind,from=oci:$work/lender:latest,source=/opt,target=/mnt $bind cat /mnt/in/tool /tool > /both"
bake "$work/a.json" >/dev/null
bake "$work/e.json" "${copy[@]}" >/dev/null
lender "$work/context/other" 600
same "a file that is copied from it is named" "$(hearth why "$work/a.json" 1 | tail -n +2)" \
	'file /opt/in/tool: was "0644, 6 bytes, owner 5:6", is "0600, 6 bytes, owner 5:6"'
same "so is one that is bound" "$(hearth why "$work/e.json" 1 "${copy[@]}" | tail -n +2)" \
	'file /opt/in/tool: was "0644, 6 bytes, owner 5:6", is "0600, 6 bytes, owner 5:6"'
echo other >"$work/context/bytes"
lender "$work/context/bytes" 644
holds "other bytes of the same size are told by digest" "$(hearth why "$work/a.json" 1)" \
	'^file /opt/in/tool: was "0644, 6 bytes, [0-9a-f]{12}, owner 5:6", is "0644, 6 bytes, [0-9a-f]{12}, owner 5:6"$'
chmod 700 "$work/context/bin/tool"
told=$(hearth why "$work/e.json" 1 "${copy[@]}" | tail -n +2)
holds "a file of the context beside it is named, too" "$told" 'file bin/tool: was "0644, 6 bytes", is "0700, 6 bytes"$'
same "and nothing else is" "$(wc -l <<<"$told")" 2
chmod 644 "$work/context/bin/tool"

echo "a whole context:"
spec "$work/a.json" "$base" "COPY . /all"
bake "$work/a.json" "${copy[@]}" >/dev/null
chmod 600 "$work/context/other" "$work/context/bin/tool"
told=$(hearth why "$work/a.json" 1 "${copy[@]}")
holds "a file of its root has no slash in front" "$told" 'file other: was "0644, 6 bytes", is "0600, 6 bytes"$'
holds "as one deeper has none" "$told" 'file bin/tool: was "0644, 6 bytes", is "0600, 6 bytes"$'
if setfattr -n user.note -v new "$work/context/file" 2>/dev/null; then
	told=$(hearth why "$work/a.json" 1 "${copy[@]}")
	holds "an attribute is no other content" "$told" 'file file: was "0644, 6 bytes", is "0644, 6 bytes, attributes [0-9a-f]{12}"$'
fi
spec "$work/a.json" "$base" "WORKDIR /never/seen"
says "what never ran has nothing to differ from" 'no step like it has run here' 1
refused "a step that is not there is refused" 64 'the spec has 1' hearth why "$work/a.json" 7
refused "a step is a number" 64 'expected a number from 1' hearth why "$work/a.json" x
spec "$work/a.json" "registry.example.test/none:1" "RUN true"
refused "nothing is pulled" 66 'is not here' hearth why "$work/a.json" 1
nothing_left "nothing is left over"
finish

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
spec "$work/a.json" scratch "COPY file /file"
says "another base is no parent" '^(base|parent|step 1 .*no step like it)' 1 "${copy[@]}"
spec "$work/a.json" "$base" "WORKDIR /never/seen"
says "what never ran has nothing to differ from" 'no step like it has run here' 1
refused "a step that is not there is refused" 64 'the spec has 1' hearth why "$work/a.json" 7
refused "a step is a number" 64 'expected a number from 1' hearth why "$work/a.json" x
spec "$work/a.json" "registry.example.test/none:1" "RUN true"
refused "nothing is pulled" 66 'is not here' hearth why "$work/a.json" 1
nothing_left "nothing is left over"
finish

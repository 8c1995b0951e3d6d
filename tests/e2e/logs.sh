#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What steps wrote can be read later, whole: of an image, and of a step that failed.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
long="i=0; while [ \$i -lt 3000 ]; do echo line \$i; i=\$((i+1)); done"
spec "$work/good.json" "$base" "RUN echo short" "ENV A=b" "RUN $long" "RUN printf 'a\\033[31mb\\0c'"
spec "$work/bad.json" "$base" "RUN echo short" "RUN $long; exit 7"
spec "$work/quiet.json" "$base" "RUN exit 3"
lines=$(seq 0 2999 | sed 's/^/line /')

bake "$work/good.json" --tag logs:1 >/dev/null
same "a step's log is printed whole" "$(hearth logs logs:1 3)" "$lines"
same "a short one too" "$(hearth logs logs:1 1)" short
same "a step that changes only the configuration wrote none" "$(hearth logs logs:1 2)" ""
same "bytes come as they were written" "$(hearth logs logs:1 4 | od -An -tx1)" " 61 1b 5b 33 31 6d 62 00 63"
script -qec "'$HEARTH' logs logs:1 4" "$work/tty" >/dev/null
holds "but do not steer a terminal" "$(cat "$work/tty")" '^ab�c'
all=$(hearth logs logs:1 | tr -d '\0')
same "without a step all are, under titles" "$(grep -a '^\[' <<<"$all" | cut -d ' ' -f 1-3)" \
	"$(printf '[1/4] RUN echo\n[2/4] ENV A=b\n[3/4] RUN i=0;\n[4/4] RUN printf')"
same "in their order" "$(grep -av '^\[' <<<"$all")" "$(printf 'short\n%s\na\033[31mbc' "$lines")"

same "as JSON a line is an object, which says its step" "$(hearth logs logs:1 --json | jq -sc 'first, last')" \
	"$(jq -c '{step: .[0], text: .[1]}' <<<'[1,"short"] [4,"a\u001b[31mb�c"]')"
same "no line of it is lost" "$(hearth logs logs:1 3 --json | jq -r .text)" "$lines"

line=$(printf %049d 7) # 1,048,576 of them are 50 MiB
spec "$work/huge.json" "$base" "RUN yes $line | head -c 52428800"
bake "$work/huge.json" --tag huge:1 >/dev/null
same "fifty megabytes are kept, every one" "$(hearth logs huge:1 1 | sha256sum)" \
	"$(python3 -c 'import sys; sys.stdout.write((sys.argv[1] + "\n") * 1048576)' "$line" | sha256sum)"
same "and shown" "$(grep -cx "\[1/1\] $line" "$work/bake.log")" 1048576
refused "a step that is none is not found" 66 "has 4 steps" hearth logs logs:1 5
refused "nor is an image that is none" 66 "no image" hearth logs nothing:1
refused "a step is a number" 64 "number" hearth logs logs:1 one
skopeo --insecure-policy copy -q "oci:$work/tiny:latest" "oci:$work/other:latest"
hearth pull "oci:$work/other:latest" >/dev/null 2>&1
refused "an image that was not baked here has none" 66 "not baked here" hearth logs "oci:$work/other:latest"

said=$(hearth bake "$work/bad.json" 2>&1 >/dev/null) && not_ok "the bad step fails" "$said"
key=$(grep -oE 'hearth logs [0-9a-f]+' <<<"$said" | tail -n 1 | cut -d ' ' -f 3)
holds "a step that fails says how to read its log" "$key" '^[0-9a-f]{12}$'
same "which is there, whole" "$(hearth logs "$key")" "$lines"
refused "a step that wrote nothing says nothing of logs" 1 "exit code 3$" hearth bake "$work/quiet.json"
nothing_left "nothing is left over"
finish

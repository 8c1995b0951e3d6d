#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The face of the command line.
. "$(dirname "$0")/lib.sh"

holds "--version names program and version" "$(hearth --version)" '^hearth [0-9]+\.[0-9]+'
for command in bake pull push images inspect history logs why gc rm du fsck doctor completion manual; do
	holds "hearth --help lists $command" "$(hearth --help)" "^ +$command"
	holds "hearth $command --help says how it is used" "$(hearth "$command" --help)" "^hearth $command .*OPTIONS"
done
hearth completion bash >"$work/completion"
completes() # WORD...: the words that may stand in place of the last
{
	bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _hearth; echo "${COMPREPLY[*]}"' - \
		"$work/completion" "$@"
}
same "a command is completed" "$(completes hearth insp)" inspect
same "so is an option" "$(completes hearth bake --no-c)" --no-cache
same "and a directory where one is wanted" "$(completes hearth bake --context /et)" /etc
hearth manual >"$work/manual"
for option in $(hearth bake --help | grep -oE '^  --[a-z-]+'); do
	check "the manual page has $option" grep -qF -- "${option//-/\\-}" "$work/manual"
done
refused "there is no completion for another shell" 64 "one for bash" hearth completion fish
refused "no command is a mistake, with help" 64 Commands hearth
refused "an unknown command is, too, with a suggestion" 64 "bake" hearth baek
refused "so is an unknown option" 64 "did you mean --no-cache" hearth bake --no-cahce x.json
refused "a missing spec is not found" 66 "absent.json" hearth bake "$work/absent.json"
refused "a missing argument is said" 64 "SPEC" hearth bake
refused "an image of no store is not found" 66 "nothing|store" hearth inspect nothing:1

refused "debug lines are asked for by module" 64 "HEARTH_LOG: expected all.*found layer" env HEARTH_LOG=layer "$HEARTH" images
for command in "bake x.json --data" "bake x.json --context" "bake x.json --tag" "images --data" "pull x --ca-file"; do
	# shellcheck disable=SC2086 # words
	refused "hearth $command '' is a mistake" 64 "${command##* } is empty" hearth $command ""
	refused "hearth $command= is, too" 64 "${command##* } is empty" hearth ${command}=
done
refused "so is an empty spec" 64 SPEC hearth bake ""
refused "and an empty HEARTH_DATA" 64 HEARTH_DATA env HEARTH_DATA= "$HEARTH" images
refused "and an empty HEARTH_MAP_BYTES" 64 HEARTH_MAP_BYTES env HEARTH_MAP_BYTES= "$HEARTH" images
for bytes in -5 1e9 1023 70368744177665 99999999999999999999; do
	refused "and an address space of $bytes" 64 HEARTH_MAP_BYTES env HEARTH_MAP_BYTES=$bytes "$HEARTH" images
done


echo "{\"data\": \"$work/elsewhere\", \"gc\": {\"keepVersion\": 1}}" >"$work/typo.json"
echo "{\"data\": \"$work/elsewhere\"}" >"$work/hearth.json"
refused "an unknown key of the configuration is named, with what is nearest" 64 \
	'typo.json: gc.keepVersion: unknown key; did you mean keepVersions' hearth images --config "$work/typo.json"
refused "a configuration that was asked for has to be there" 66 'configuration .*absent.json' hearth images --config "$work/absent.json"
refused "one that is no JSON is told by its place" 64 'configuration /dev/null' env HEARTH_CONFIG=/dev/null "$HEARTH" images
refused "an empty HEARTH_CONFIG is a mistake" 64 HEARTH_CONFIG env HEARTH_CONFIG= "$HEARTH" images
env -u HEARTH_DATA HEARTH_CONFIG="$work/hearth.json" "$HEARTH" context put "$here" >"$work/digest"
check "it says where the data is" test -d "$work/elsewhere/meta"
env -u HEARTH_DATA HEARTH_CONFIG="$work/typo.json" "$HEARTH" context put "$here" --config "$work/hearth.json" --data "$work/third" >"$work/again"
check "options and the environment go before it" test -d "$work/third/meta"

base=$(tiny_base)
spec "$work/a.json" "$base" "RUN echo from-the-step" "ENV A=b" "WORKDIR /srv"
refused "an unknown progress is refused" 64 "auto" hearth bake "$work/a.json" --progress loud
refused "a ceiling that is no size is refused" 64 "max-layer-bytes 1X" hearth bake "$work/a.json" --max-layer-bytes 1X
refused "and one of nothing" 64 "max-layer-bytes 0" hearth bake "$work/a.json" --max-layer-bytes 0
digest=$(hearth bake "$work/a.json" --tag cli:1 2>"$work/plain")
same "the digest is all of standard output" "$(wc -l <<<"$digest")" 1
holds "as it should be" "$digest" '^sha256:[0-9a-f]{64}$'
holds "the log is shown, plainly" "$(cat "$work/plain")" from-the-step
check "without escapes when piped" bash -c '! grep -q $'"'\\e'"' "$1"' - "$work/plain"
spec "$work/gap.json" "$base" 'ENV A b' $'RUN true \\\n\n && echo'
hearth bake "$work/gap.json" >"$work/gap" 2>&1
holds "a blank line within a continued one is warned of" "$(cat "$work/gap")" '^\[2/2\] WARNING a blank line'
holds "so is the old form of ENV" "$(cat "$work/gap")" '^\[1/2\] WARNING .*ENV NAME=VALUE'
same "for programs, too" "$(hearth bake "$work/gap.json" --progress json 2>&1 | grep '^{' | jq -r 'select(.event == "warning").step' | paste -sd ' ')" "1 2"
spec "$work/tick.json" "$base" $'# escape=`\nENV A=c:\\x` y' $'# escape=`\nRUN `\n  [ "$A" = "c:\\x y" ]'
check "a backtick may escape" hearth bake "$work/tick.json"
script -qec "'$HEARTH' bake '$work/gap.json'" "$work/tty" >/dev/null
holds "and on a terminal" "$(cat "$work/tty")" 'WARNING'
script -qec "'$HEARTH' bake '$work/a.json' --no-cache" "$work/tty" >/dev/null
spec "$work/rude.json" "$base" "RUN printf 'a\\033]0;title\\007b\\n'"
script -qec "'$HEARTH' bake '$work/rude.json' --progress plain" "$work/rude" >/dev/null
check "what a step writes does not steer a terminal" bash -c '! grep -q $'"'\\e\\]0'"' "$1"' - "$work/rude"
holds "a terminal gets a display" "$(cat "$work/tty")" $'\e\\['
holds "that ends with the digest" "$(tail -n 4 "$work/tty")" 'sha256:[0-9a-f]{64}'
status=0
hearth bake "$work/a.json" --no-cache <&- >&- 2>&- || status=$?
same "a bake without any standard descriptor says that nobody got its digest" "$status" 70
same "and writes its words into no file of the store" "$(stat -c %s "$HEARTH_DATA/lock")" 0
holds "which stays whole" "$(bake "$work/a.json")" "$digest"
closed() { hearth "$@" <&-; }
refused "a spec from a standard input that is closed" 66 'no standard input' closed bake -
mkdir -m 755 "$work/others" && touch "$work/others/file"
refused "a directory of something else is not one to change" 64 'not a store' hearth images --data "$work/others"
full() { hearth images >/dev/full; }
refused "a result that nobody keeps is no full data directory" 70 'write standard output' full
refused "an export to what is no layout is a mistake" 64 'oci:DIR' hearth bake "$work/a.json" --output "$work/out"
few() { prlimit --nofile="$1:$1" "$HEARTH" bake "$work/a.json" --no-cache; }
for files in 8 16 32; do # with fewer the loader finds no library
	refused "$files descriptors are too few, and which limit it is is said" 69 'ulimit -n' few "$files"
done
small() { prlimit --as=2000000000 "$HEARTH" bake "$work/a.json"; }
if prlimit --as=2000000000 "$HEARTH" --version >/dev/null 2>&1; then # a sanitizer's shadow does not fit
	refused "so is too small an address space" 69 'HEARTH_MAP_BYTES' small
	check "which a smaller map fits into" env HEARTH_MAP_BYTES=500000000 prlimit --as=2000000000 "$HEARTH" images
fi
short() { prlimit --fsize=1024000 "$HEARTH" bake "$work/a.json" --no-cache; }
refused "a file that may not grow is told, and ends no worker" 69 'ulimit -f' short
nothing_left "nothing of them is left over"
for name in meta blobs; do
	cp -a "$HEARTH_DATA" "$work/cut-$name"
	truncate -s 20000 "$work/cut-$name/$name/data.mdb"
	refused "a store whose $name was truncated is corrupt, and what to do is said" 65 'truncated.*remove the data directory' \
		hearth bake "$work/a.json" --no-cache --data "$work/cut-$name"
done
hearth bake "$work/a.json" --progress=json >"$work/json" 2>&1
check "--progress=json is a JSON object a line" bash -c 'grep -v ^sha256: "$1" | jq -es "length > 3"' - "$work/json"
same "options may come first" "$(env -u HEARTH_DATA "$HEARTH" bake --data "$work/data" --progress plain "$work/a.json" 2>/dev/null)" \
	"$digest"

refused "an unknown image is not found" 66 "nothing" hearth inspect nothing:1
holds "images lists tag and digest" "$(hearth images)" "cli:1"
for command in "images" "inspect cli:1" "inspect $digest" "history cli:1" "doctor"; do
	# shellcheck disable=SC2086 # words
	check "$command --json is JSON" bash -o pipefail -c '"$@" | jq -e . >/dev/null' - "$HEARTH" $command --json
done
holds "history names the steps" "$(hearth history cli:1)" 'RUN echo from-the-step'
holds "inspect shows the environment" "$(hearth inspect cli:1)" 'A=b'
check "doctor finds this host able" hearth doctor
holds "and says which runtime it found" "$(hearth doctor)" 'crun|runc'
status=0
hearth bake <(jq '.steps += ["RUN exit 7"]' "$work/a.json") >"$work/said" 2>&1 || status=$?
same "a failing step ends with 1" "$status" 1
holds "its number is named" "$(cat "$work/said")" 'step 4'
holds "its status too" "$(cat "$work/said")" '7'
nothing_left "nothing is left over"
finish

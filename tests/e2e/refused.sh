#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Specs and bases that are wrong: a sentence and an exit code, before anything is pulled or run.
. "$(dirname "$0")/lib.sh"

nowhere=127.0.0.1:1/none:1 # nobody listens there: a pull would end with 69
base=$(tiny_base)

step() # SENTENCE CODE PHRASE STEP: as the second of three
{
	spec "$work/step.json" "$nowhere" "RUN true" "$4" "RUN true"
	refused "$1" "$2" "$3" hearth bake "$work/step.json"
}

image() # SENTENCE CODE PHRASE JSON: as the whole spec
{
	printf '%s' "$4" >"$work/image.json"
	refused "$1" "$2" "$3" hearth bake "$work/image.json"
}

step "ENTRYPOINT is refused" 65 'step 2.*ENTRYPOINT' 'ENTRYPOINT ["/bin/sh"]'
step "FROM is refused" 65 'step 2.*FROM' 'FROM debian'
step "ADD is refused" 65 'step 2.*ADD' 'ADD a b'
step "USER is refused" 65 'step 2.*USER' 'USER nobody'
step "a misspelling is refused, with a guess" 65 'step 2.*RUN' 'RNU true'
step "a second instruction in a step is refused" 65 'step 2' $'RUN true\nENTRYPOINT sh'
jq -n --arg base "$base" '{base: $base, steps: ["RUN true", "# two of them\nRUN a\nRUN b"]}' >"$work/two.json"
same "as JSON with its line" "$({ hearth bake "$work/two.json" --json 2>/dev/null || true; } | jq -c '.error | [.code, .step, .line]')" '["StepRefused",2,3]'
same "a wrong spec is told as JSON, too" "$({ hearth bake <(echo '{"base": "scratch", "steps": 5}') --json 2>/dev/null || true; } | jq -c '.error | [.code, .step]')" '["InvalidArgument",null]'
step "an empty step is refused" 65 'steps\[1\]|step 2' ''
step "so is one of blanks" 65 'steps\[1\]|step 2' '   '
step "so is a comment alone" 65 'steps\[1\]|step 2' '# nothing'
step "RUN without a command is refused" 65 'step 2' 'RUN'
step "COPY with one path is refused" 65 'step 2' 'COPY a'
step "ENV without a value is refused" 65 'step 2' 'ENV A'
step "control bytes are refused" 65 'steps\[1\]|step 2' $'RUN echo \x01'
step "what is not supported yet is refused, not ignored" 65 'step 2.*device' 'RUN --device=x true'
step "a mount that cannot be meant is refused" 65 'step 2.*has no size' 'RUN --mount=type=cache,target=/c,size=1m true'
step "a form that no variable has, too" 65 'step 2.*no form of a variable' 'WORKDIR /${A:=b}'
step "COPY without a context is refused" 64 'context' 'COPY a b'
image "a step of a MiB is refused" 65 'steps\[0\]|step 1' \
	"$(python3 -c 'import json; print(json.dumps({"base": "scratch", "steps": ["RUN " + "x" * (1 << 20)]}))')"
image "a NUL in a step is refused" 64 '\\u0000 is not allowed$' '{"base": "scratch", "steps": ["RUN echo \u0000"]}'
image "steps must be a list" 64 'steps' '{"base": "scratch", "steps": "RUN true"}'
image "of strings" 64 'steps\[0\]' '{"base": "scratch", "steps": [7]}'
image "the base must be a string" 64 'base' '{"base": 7, "steps": []}'
image "the base must be there" 64 'base' '{"steps": []}'
image "an unknown key is named, with the nearest" 64 'stesp.*steps' '{"base": "scratch", "stesp": []}'
image "its place too" 64 'sandbox\.image' '{"slug": "a", "sandbox": {"image": {"base": "scratch", "bsae": 1}}}'
image "what is no JSON is refused, with a line" 64 'line|1:|column' '{"base": '
image "an empty spec is refused" 64 . ''
image "a list is no spec" 64 . '[]'
image "a base that is no reference is refused" 64 'base|reference' '{"base": "UPPER//case", "steps": []}'
image "an archive that is not there is refused" 66 'no file x.tar' '{"base": "docker-archive:x.tar", "steps": []}'
python3 -c 'import json; print(json.dumps({"base": "scratch", "steps": ["RUN true"] * 10001}))' >"$work/many.json"
refused "more than 10,000 steps are too many" 65 'steps: more than 10000' hearth bake "$work/many.json"
head -c 16777217 /dev/zero | tr '\0' ' ' >"$work/large.json"
refused "16 MiB and a byte are too long" 65 'more than 16777216' hearth bake "$work/large.json"
refused "a spec that is a directory is refused" 64 'is a directory' hearth bake "$work"
same "a spec may come by a pipe of the shell" \
	"$(hearth bake <(echo '{"base": "scratch", "stesp": []}') 2>&1 | grep -o 'did you mean.*')" 'did you mean steps?'
same "or on standard input" \
	"$(hearth bake - 2>&1 <<<'{"base": "scratch", "stesp": []}' | grep -o 'did you mean.*')" 'did you mean steps?'
mkfifo "$work/nobody"
refused "a fifo that nobody writes to is waited for until the cancel" 130 'cancelled' \
	timeout --preserve-status -s INT 1 "$HEARTH" bake "$work/nobody"
# shellcheck disable=SC2016 # for the inner shell
same "what an error quotes of a spec does not steer a terminal" \
	"$(printf '{"base": "scratch", "a\\u001b[31m": 1}' >"$work/key.json"
	script -qec "'$HEARTH' bake '$work/key.json'" /dev/null | grep -c $'\033')" 0
mkdir "$work/hidden"
echo "secret[" >"$work/hidden/.dockerignore"
spec "$work/hidden.json" "$nowhere" "COPY . /all"
refused "a context with a broken pattern is refused before the pull" 65 'step 1.*dockerignore' \
	hearth bake "$work/hidden.json" --context "$work/hidden"
check "none of these made a machine or pulled" test -z \
	"$(find "$HEARTH_DATA/machines" "$HEARTH_DATA/trees" -mindepth 1 2>/dev/null)"

spec "$work/one.json" "$nowhere" "RUN true"
refused "a registry that does not answer" 69 '127\.0\.0\.1:1' hearth bake "$work/one.json"
refused "a layout that is not there" 66 'absent' hearth bake "$work/one.json" --base "oci:$work/absent:x"
refused "a tag that the layout does not have" 66 'other' hearth bake "$work/one.json" --base "oci:$work/tiny:other"
refused "a platform that the image does not have" '65|66|69' 's390x|platform' \
	hearth bake "$work/one.json" --base "$base" --platform linux/s390x
start_registry
push "$work/tiny:latest" tiny:1
refused "a repository that does not exist" 66 'absent' hearth bake "$work/one.json" --base "$registry/absent:1"
refused "a tag that does not exist" 66 'tiny:2|manifest' hearth bake "$work/one.json" --base "$registry/tiny:2"
refused "a digest that does not exist" 66 'sha256:0000' \
	hearth bake "$work/one.json" --base "$registry/tiny@sha256:$(printf '0%.0s' {1..64})"
refused "pull says it the same way" 66 'absent' hearth pull "$registry/absent:1"
refused "and what was pulled once" 66 "^hearth: pull $registry/absent:1: 1 not found" hearth pull "$registry/absent:1"

mkdir "$work/context"
echo x >"$work/context/greeting"
spec "$work/copy.json" "$base" "COPY greting /"
refused "a missing source is named, with the nearest" 66 'greting' hearth bake "$work/copy.json" --context "$work/context"
spec "$work/copy.json" "$base" "COPY ../../../../../etc/hostname /got"
refused "a source cannot leave the context" 66 'hostname' hearth bake "$work/copy.json" --context "$work/context"
ln -s /etc/hostname "$work/context/out"
spec "$work/copy.json" "$base" "COPY out /"
refused "nor can a link" 66 'out is a link that leads elsewhere' hearth bake "$work/copy.json" --context "$work/context"
long=$(printf 'n%.0s' {1..256})
made() # SENTENCE CODE PHRASE STEP...: when they are run
{
	local sentence=$1 code=$2 phrase=$3
	shift 3
	spec "$work/made.json" "$base" "$@"
	refused "$sentence" "$code" "$phrase" hearth bake "$work/made.json" --context "$work/context"
}
made "a directory's name of 256 bytes is refused" 65 'longer than 255' "WORKDIR /a/$long"
made "so is a copy's" 65 'longer than 255' "COPY greeting /$long"
made "and a source's" 65 'longer than 255' "COPY $long /"
made "a file is no working directory" 65 'no directory' "COPY greeting /f" "WORKDIR /f"
made "a name that a layer reads as a deletion is refused, with advice" 69 'name it otherwise' "COPY greeting /.wh.x"
for dir in /proc/self/fd/7 /sys /dev/shm; do
	made "no step works in what a machine mounts ($dir)" 65 'step 2 .*nothing can be run in /proc' "WORKDIR /" "WORKDIR $dir" "RUN true"
done
made "nor does a link lead there" 65 'step 3 .*nothing can be run in /proc' "RUN ln -s /proc/self /srv/in" "WORKDIR /srv/in/fd" "RUN true"
spec "$work/fails.json" "$base" "RUN echo fine" "RUN echo on its way; exit 42"
refused "a command that fails ends the bake with 1" 1 'step 2' hearth bake "$work/fails.json"
refused "the same again" 1 '42' hearth bake "$work/fails.json"
spec "$work/good.json" "$base" "RUN echo fine"
digest=$(bake "$work/good.json" --tag good:1)
holds "after all this a good spec is baked" "$digest" '^sha256:'
holds "and images works" "$(hearth images)" good:1
mkdir "$work/mnt"
mount --bind "$HEARTH_DATA" "$work/mnt"
mount -o remount,bind,ro "$work/mnt"
refused "a data directory that cannot be written is refused" 77 'give one that can be written' \
	hearth bake "$work/good.json" --data "$work/mnt"
umount "$work/mnt"
ln -s loop "$work/loop"
same "one that cannot be opened is named once" "$(hearth images --data "$work/loop" 2>&1 | grep -o "$work/loop" | wc -l)" 1
echo 999 >"$HEARTH_DATA/VERSION"
refused "a store of another version is left alone" 65 'version|format|newer' hearth images
same "untouched" "$(cat "$HEARTH_DATA/VERSION")" 999
nothing_left "nothing is left over"
finish

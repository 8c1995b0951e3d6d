#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGINT and SIGTERM end a bake, its step and all that the step started.
. "$(dirname "$0")/lib.sh"

soon=15000 # the grace of a command that was told to end, and then a busy machine
base=$(tiny_base)
spec "$work/sleep.json" "$base" "RUN echo before" "RUN echo started; trap '' TERM; sleep 600 & sleep 601 & wait"
spec "$work/next.json" "$base" "RUN echo before" "RUN echo after"

said() # LINE: the bake that runs has said it
{
	grep -qxF "$1" "$work/out"
}

# shellcheck disable=SC2329 # by cancel
copying() # FILE: a part of it is in a machine
{
	compgen -G "$HEARTH_DATA/machines/*/up/$1" >/dev/null
}

cancel() # SIGNAL ARGUMENT...: the bake, as soon as "${when[@]}" is so; sets status and ms
{
	local signal=$1
	shift
	# A background job of a script ignores SIGINT, and so would what it starts.
	python3 - "$HEARTH" bake "$@" --progress plain >"$work/out" 2>&1 <<'PY' &
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
PY
	local pid=$! start
	wait_for 60 "${when[@]}" || cat "$work/out"
	start=${EPOCHREALTIME/./}
	kill -"$signal" "$pid"
	status=0
	wait "$pid" || status=$?
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
}

when=(said "[2/2] started")
for signal in INT TERM; do
	cancel "$signal" "$work/sleep.json"
	same "SIG$signal ends with 130" "$status" 130
	check "and a step that was cancelled, not one that failed" said "[2/2] CANCELLED"
	check "soon ($ms ms)" test "$ms" -lt "$soon"
	nothing_left "SIG$signal leaves nothing"
done
bake "$work/next.json" >/dev/null
same "what was done before is cached" "$(cached)" 1

# Too many to be copied before the signal comes.
mkdir -p "$work/context/large"
(cd "$work/context/large" && seq 40000 | xargs touch)
spec "$work/copy.json" "$base" "COPY large /large"
for when in "said [1/1]\ COPY\ large\ /large" "copying large"; do
	eval "when=($when)"
	cancel INT "$work/copy.json" --context "$work/context"
	same "a COPY (${when[0]}) ends with 130" "$status" 130
	check "soon ($ms ms)" test "$ms" -lt "$soon"
	nothing_left "and leaves nothing"
done

mkdir "$work/layout"
serve flock --no-fork "$work/layout" sleep 600
# shellcheck disable=SC2016 # for the inner shell
wait_for 60 bash -c '! flock --nonblock "$1" true' - "$work/layout"
when=(said "[export] oci:$work/layout")
cancel INT "$work/next.json" --output "oci:$work/layout"
same "an export that waits for another ends with 130" "$status" 130
check "soon, too ($ms ms)" test "$ms" -lt "$soon"
same "and has written nothing" "$(ls -A "$work/layout")" ""
# Again and again, without a pause in between.
spec "$work/again.json" "$base" "RUN echo started; sleep 0.2; echo done >/done"
odd=0 rounds=40
[ "${HEARTH_LONG:-0}" = 0 ] || rounds=1000
for ((n = 0; n < rounds; n++)); do
	status=0
	timeout --signal TERM "0.$(printf '%02d' $((n % 20 + 1)))" "$HEARTH" bake "$work/again.json" --no-cache >/dev/null 2>"$work/again.log" ||
		status=$?
	[ "$status" = 0 ] || [ "$status" = 124 ] || odd=$((odd + 1))
done
same "a step that is cancelled again and again ends each time by that" "$odd" 0
check "and is made after all" bake "$work/again.json"
nothing_left "and leaves nothing"

# A step belongs to all who ask for it, whoever came first and with whatever secret.
# shellcheck disable=SC2016 # for the step's shell
spec "$work/shared.json" "$base" 'RUN --mount=type=cache,id=go,target=/go --mount=type=secret,id=s echo started; echo run >>/go/runs; until [ -e /go/go ]; do sleep 0.05; done; wc -c </run/secrets/s'
echo -n first >"$work/secret"
"$HEARTH" bake "$work/shared.json" --progress plain --secret "id=s,src=$work/secret" >"$work/first.log" 2>&1 &
first=$!
wait_for 60 grep -qxF '[1/1] started' "$work/first.log"
"$HEARTH" bake "$work/shared.json" --progress plain >"$work/second.log" 2>&1 &
second=$!
check "another bake joins a running step and hears it from its beginning" \
	wait_for 60 grep -qxF '[1/1] started' "$work/second.log"
kill -TERM "$first"
status=0
wait "$first" || status=$?
same "the first one is cancelled" "$status" 130
check "and leaves the step to the other" kill -0 "$second"
touch "$(dirname "$(compgen -G "$HEARTH_DATA/caches/*/data/runs")")/go"
status=0
wait "$second" || status=$?
same "which gets its end" "$status" 0
holds "made with what the first one gave" "$(cat "$work/second.log")" '^\[1/1\] 5$'
same "the step ran once" "$(cat "$HEARTH_DATA"/caches/*/data/runs)" run
holds "and is cached for everybody" "$(hearth bake "$work/shared.json" --progress plain 2>&1)" CACHED
nothing_left "and nothing is left"

# The first asker and all of its process group end, as by ^C; the second has its own way to the context.
mkdir "$work/given"
echo given >"$work/given/file"
tar -C "$work/given" -cf "$work/given.tar" .
ask() # LOG CONTEXT: in a session of its own, as a terminal's command; a context - is the tar
{
	setpriv --pdeathsig TERM python3 - "$1" "$work/given.tar" "$HEARTH" bake "$work/ask.json" --progress plain --context "$2" <<'PY' &
import os, signal, sys
os.setsid()
signal.signal(signal.SIGINT, signal.default_int_handler)
log, tar, *command = sys.argv[1:]
os.dup2(os.open(tar, os.O_RDONLY), 0)
os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
os.dup2(1, 2)
os.execv(command[0], command)
PY
}

for how in "INT 130 - $work/given" "KILL 137 $work/given -"; do
	read -r signal code first_context second_context <<<"$how"
	spec "$work/ask.json" "$base" \
		"RUN --mount=type=bind,source=file,target=/file --mount=type=cache,id=$signal,target=/gate echo started; touch /gate/$signal; until [ -e /gate/open ]; do sleep 0.05; done; cat /file" \
		"COPY file /copied" "RUN echo $signal; cat /copied"
	ask "$work/first.$signal" "$first_context"
	first=$!
	wait_for 60 grep -qxF '[1/3] started' "$work/first.$signal" || cat "$work/first.$signal"
	ask "$work/second.$signal" "$second_context"
	second=$!
	wait_for 60 grep -qxF '[1/3] started' "$work/second.$signal" || cat "$work/second.$signal"
	kill -"$signal" -- "-$first"
	status=0
	wait "$first" || status=$?
	same "SIG$signal ends all of the first one's process group" "$status" "$code"
	touch "$(dirname "$(compgen -G "$HEARTH_DATA/caches/*/data/$signal")")/open"
	status=0
	wait "$second" || status=$?
	same "but not the second one, after SIG$signal" "$status" 0
	same "whose context gives each step its file" "$(grep -cE '^\[[13]/3\] given$' "$work/second.$signal")" 2
	[ "$status" = 0 ] || cat "$work/second.$signal"
done
nothing_left "and nothing is left of either"
finish

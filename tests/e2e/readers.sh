#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who reads what a bake says may be slow, stall, or leave: the bake is the same.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
long="i=0; while [ \$i -lt 20000 ]; do echo line \$i; i=\$((i+1)); done"
spec "$work/long.json" "$base" "RUN $long"
spec "$work/stall.json" "$base" "RUN yes nobody reads this | head -c 1000000; echo > /stalled; sleep 600"

# The reader begins when the step has its record, and so is done.
mkfifo "$work/slow"
(
	exec <"$work/slow"
	# shellcheck disable=SC2016 # for the inner shell
	wait_for 60 bash -c '[ "$(find "$1/trees" -mindepth 1 -maxdepth 1 | wc -l)" -gt 1 ]' - "$HEARTH_DATA"
	cat >"$work/read"
) &
reader=$!
spec "$work/slow.json" "$base" "RUN $long; echo > /file"
digest=$(hearth bake "$work/slow.json" --progress plain 2>"$work/slow")
wait "$reader"
holds "a reader that comes late changes nothing" "$digest" '^sha256:'
same "and gets all of the log" "$(grep -c '^\[1/1\] line' "$work/read")" 20000

digest=$(hearth bake "$work/long.json" --progress plain 2> >(head -n 1 >/dev/null))
holds "nor does one that leaves early" "$digest" '^sha256:'
nothing_left "which leaves nothing"

status=0
hearth bake "$work/long.json" --no-cache 2>"$work/said" | true || status=${PIPESTATUS[0]}
same "a digest that nobody reads is an error" "$status" 70
holds "that is said" "$(cat "$work/said")" 'write standard output: Broken pipe'
nothing_left "and leaves nothing either"
bake "$work/long.json" >/dev/null
same "and was baked" "$(cached)" 1

for progress in plain json; do
	mkfifo "$work/stalled.$progress"
	# shellcheck disable=SC2217 # that it reads nothing is the point
	sleep 600 <"$work/stalled.$progress" &
	servers+=($!)
	python3 - "$HEARTH" bake "$work/stall.json" --progress "$progress" 2>"$work/stalled.$progress" >/dev/null <<'PY' &
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
PY
	pid=$!
	# shellcheck disable=SC2016 # for the inner shell
	wait_for 60 bash -c 'test -e "$1"/machines/*/up/stalled' - "$HEARTH_DATA"
	start=${EPOCHREALTIME/./}
	kill -INT "$pid"
	status=0
	wait "$pid" || status=$?
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
	same "a bake whose display ($progress) nobody reads can be cancelled" "$status" 130
	check "soon ($ms ms)" test "$ms" -lt 15000
	nothing_left "and leaves nothing"
done
finish

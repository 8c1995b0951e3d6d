#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGINT and SIGTERM end a bake, its step and all that the step started.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
spec "$work/sleep.json" "$base" "RUN echo before" "RUN echo started; trap '' TERM; sleep 600 & sleep 601 & wait"
spec "$work/next.json" "$base" "RUN echo before" "RUN echo after"

cancel() # SIGNAL: sets status and ms
{
	# A background job of a script ignores SIGINT, and so would what it starts.
	python3 - "$HEARTH" bake "$work/sleep.json" --progress plain >"$work/out" 2>&1 <<'PY' &
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
PY
	local pid=$! start
	wait_for 30 grep -qxF '[2/2] started' "$work/out" || cat "$work/out"
	start=${EPOCHREALTIME/./}
	kill -"$1" "$pid"
	status=0
	wait "$pid" || status=$?
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
}

for signal in INT TERM; do
	cancel "$signal"
	same "SIG$signal ends with 130" "$status" 130
	check "within three seconds ($ms ms)" test "$ms" -lt 3000
	nothing_left "SIG$signal leaves nothing" 3
done
bake "$work/next.json" >/dev/null
same "what was done before is cached" "$(cached)" 1
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGINT and SIGTERM end a bake, its step and all that the step started.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
spec "$work/sleep.json" "$base" "RUN echo before" "RUN echo started; trap '' TERM; sleep 600 & sleep 601 & wait"
spec "$work/next.json" "$base" "RUN echo before" "RUN echo after"

cancel() # SIGNAL LINE ARGUMENT...: when the bake has said this line; sets status and ms
{
	local signal=$1 line=$2
	shift 2
	# A background job of a script ignores SIGINT, and so would what it starts.
	python3 - "$HEARTH" bake "$@" --progress plain >"$work/out" 2>&1 <<'PY' &
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
PY
	local pid=$! start
	wait_for 30 grep -qxF "$line" "$work/out" || cat "$work/out"
	start=${EPOCHREALTIME/./}
	kill -"$signal" "$pid"
	status=0
	wait "$pid" || status=$?
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
}

for signal in INT TERM; do
	cancel "$signal" "[2/2] started" "$work/sleep.json"
	same "SIG$signal ends with 130" "$status" 130
	check "within three seconds ($ms ms)" test "$ms" -lt 3000
	nothing_left "SIG$signal leaves nothing" 3
done
bake "$work/next.json" >/dev/null
same "what was done before is cached" "$(cached)" 1

mkdir "$work/layout"
serve flock "$work/layout" sleep 600
wait_for 10 bash -c '! flock --nonblock "$1" true' - "$work/layout"
cancel INT "[export] oci:$work/layout" "$work/next.json" --output "oci:$work/layout"
same "an export that waits for another ends with 130" "$status" 130
check "within three seconds, too ($ms ms)" test "$ms" -lt 3000
same "and has written nothing" "$(ls -A "$work/layout")" ""
finish

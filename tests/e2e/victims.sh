#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 of each program that takes part in a step, while the step runs.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
spec "$work/first.json" "$base" "RUN head -c 64 /dev/urandom | sha256sum > /one"
first=$(bake "$work/first.json")

victim() # PROGRAM: sets pids
{
	mapfile -t pids < <("$here/leftovers.py" --pids "$HEARTH_DATA" | awk -v name="$1" '$2 == name {print $1}')
	[ ${#pids[@]} != 0 ]
}

asleep() # how often the step began
{
	grep -cxF '[2/2] sleeping' "$work/out" || true
}

ended() # PID
{
	! kill -0 "$1" 2>/dev/null
}

# A worker that dies is replaced by another, so that one is killed as well, and the third.
kill_while_it_runs() # PROGRAM STEP: sets status, said and kills
{
	spec "$work/sleep.json" "$base" "RUN head -c 64 /dev/urandom | sha256sum > /one" "$2"
	"$HEARTH" bake "$work/sleep.json" --progress plain >"$work/out" 2>&1 &
	local bake=$!
	for ((kills = 0; kills < 9; kills++)); do
		wait_for 60 eval "ended $bake || [ \"\$(asleep)\" -gt $kills ]" || cat "$work/out"
		ended "$bake" && break
		victim "$1" && kill -KILL "${pids[@]}"
		wait_for 5 ended "$bake" || true
	done
	status=0
	{ wait "$bake" || status=$?; } 2>/dev/null
	said=$(cat "$work/out")
}

for program in hearth hearth-worker crun .hearth-init; do
	kill_while_it_runs "$program" "RUN echo sleeping; sleep 600; echo $program"
	check "$program was there to be killed ($kills)" test "$kills" -gt 0
	if [ "$program" != hearth ]; then
		check "the bake ends with a code ($status)" test "$status" != 0
		holds "and a sentence" "$said" '^hearth: .*step 2.*'
	fi
	if [ "$program" = crun ] || [ "$program" = .hearth-init ]; then
		same "which is not the command's" "$status" 75
		holds "and says who ended" "$said" 'the machine was killed before its command had ended'
	fi
	spec "$work/next.json" "$base" "RUN head -c 64 /dev/urandom | sha256sum > /one" "RUN echo after $program > /after"
	holds "the next bake works" "$(bake "$work/next.json")" '^sha256:'
	same "on what was there" "$(cached)" 1
	nothing_left "nothing is left of the killed $program"
done
same "the first image is what it was" "$(bake "$work/first.json")" "$first"
finish

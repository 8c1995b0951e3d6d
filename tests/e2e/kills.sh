#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 at random moments of all that writes: nothing is lost, nothing is wrong, nothing is left.
#
# SEED repeats a run; ROUNDS is how many kills have to hit something that runs.
. "$(dirname "$0")/lib.sh"

rounds=${ROUNDS:-12}
[ "${HEARTH_LONG:-0}" = 0 ] || rounds=${ROUNDS:-200}
RANDOM=${SEED:=$(($(date +%s) % 32768))}
echo "SEED=$SEED ROUNDS=$rounds"

start_registry
debian_base
push "$debian:bookworm-slim" debian:1
base=$(tiny_base)

# Steps whose layers are the same bytes in every store and round.
steps=("RUN i=0; while [ \$i -lt 300 ]; do echo \$i > /var/\$i; i=\$((i + 1)); done; touch -d @1000 /var/* /var" \
	"RUN seq 1 400000 > /var/numbers; touch -d @1000 /var/numbers /var" \
	"RUN rm /var/1?; touch -d @1000 /var")

round() # N: its spec; the environment makes every key another
{
	spec "$work/round-$1.json" "$base" "ENV ROUND=$1" "${steps[@]}"
	echo "$work/round-$1.json"
}

layers() # SPEC: diff ids, after every blob was read and compared with its name
{
	rm -rf "$work/out" "$work/copy"
	hearth bake "$1" --output "oci:$work/out:x" >/dev/null 2>&1
	skopeo --insecure-policy copy -q "oci:$work/out:x" "dir:$work/copy" >/dev/null
	skopeo inspect --config "oci:$work/out:x" | jq -c .rootfs.diff_ids
	(cd "$work/out/blobs/sha256" && for name in *; do echo "$name  $name"; done | sha256sum --check --quiet)
}

pick() # LIMIT: sets picked, a random number below it; a subshell's would not be the seed's
{
	picked=$(((RANDOM << 15 | RANDOM) % $1))
}

jobs=(bake cached copy gzip pull export import gc rm push)

prepare() # JOB ROUND: what it needs to have something to do; sets command
{
	case $1 in
	bake) command=(bake "$(round "$2")") ;;
	cached) command=(bake "$(round 0)") ;;
	copy)
		spec "$work/copy.json" "$base" "COPY . /srv/context-$2"
		command=(bake "$work/copy.json" --context "$work/context")
		;;
	gzip)
		bake "$(round "$2-gzip")" >/dev/null
		command=(bake "$(round "$2-gzip")" --compression gzip)
		;;
	pull)
		hearth rm "$registry/debian:1" >/dev/null 2>&1 || true
		command=(pull "$registry/debian:1")
		;;
	export) command=(export first:1 "oci-archive:$work/exported.tar") ;;
	import) command=(import "oci-archive:$work/first.tar" --tag "imported:$2") ;;
	gc) command=(gc --all) ;;
	rm)
		spec "$work/gone.json" "$base" "RUN head -c 3000000 /dev/urandom > /var/gone"
		bake "$work/gone.json" --no-cache --tag "gone:$2" >/dev/null
		command=(rm "gone:$2")
		;;
	push) command=(push first:1 "$registry/pushed:$2") ;;
	esac
}

# One of them, or two at once, each in a session of its own; sets pids and commands.
start() # ROUND JOB...
{
	local number=$1 job
	shift
	pids=() commands=()
	for job in "$@"; do
		prepare "$job" "$number"
		commands+=("$(printf '%q ' "${command[@]}")")
	done
	for command in "${commands[@]}"; do
		eval "exec setsid \"\$HEARTH\" $command" >>"$work/round.log" 2>&1 &
		pids+=($!)
	done
}

# Kill the commands, their groups, one of what they started, or all of it, within so many microseconds;
# counts in hits when one still ran.
kill_within() # MICROSECONDS PID...
{
	local victims started=() ways=4
	pick "$1"
	(($1 > 100000)) || ways=2 # who looks for what they started is too late for it
	shift
	victims=("$@")
	sleep "$((picked / 1000000)).$(printf '%06d' $((picked % 1000000)))"
	case $((RANDOM % ways)) in
	0) ;;
	1) victims=("${@/#/-}") ;;
	*)
		mapfile -t started < <("$here/leftovers.py" --pids "$HEARTH_DATA" | awk '/ (\.?hearth-|crun|runc)/ {print $1}')
		if ((RANDOM % 2)); then
			victims+=("${started[@]}")
		elif [ ${#started[@]} != 0 ]; then
			victims=("${started[RANDOM % ${#started[@]}]}")
		fi
		;;
	esac
	! kill -0 "$@" 2>/dev/null || hits=$((hits + 1))
	kill -KILL -- "${victims[@]}" 2>/dev/null || true
	{ wait "$@"; } 2>/dev/null || true
}

wrong() # WHAT ROUND JOB...: with what it takes to see why
{
	faults=$((faults + 1))
	echo "round $2 (${*:3}): $1"
	tail -n 5 "$work/round.log"
}

# What was killed can be done again, what was there before is there, and of what was killed nothing is left.
judge() # ROUND JOB...
{
	local command
	for command in "${commands[@]}"; do
		# Of two, the other may have removed what this one names.
		eval "hearth $command" >"$work/again" 2>>"$work/round.log" || [[ "$command" == rm* ]] || wrong "hearth $command" "$@"
	done
	[ "$(bake "$(round 0)")" = "$first" ] || wrong "another image than at first" "$@"
	[[ " ${*:2} " != *" bake "* ]] || [ "$(layers "$(round "$1")")" = "$expected" ] || wrong "other layers" "$@"
	spec "$work/sweep.json" "$base" "ENV ROUND=$1" "RUN echo this one sweeps"
	bake "$work/sweep.json" >/dev/null || wrong "no bake" "$@"
	wait_for 60 "$here/leftovers.py" "$HEARTH_DATA" || wrong "$("$here/leftovers.py" "$HEARTH_DATA")" "$@"
}

# The store is clean, the layers are what they have to be, and the pulled image runs.
sound()
{
	hearth fsck --dry-run >>"$work/round.log" 2>&1 &&
		[ "$(layers "$(round 0)")" = "$expected" ] &&
		[ "$(hearth pull "$registry/debian:1" 2>/dev/null | tail -n 1)" = "$debian_digest" ] &&
		hearth bake "$work/use.json" --no-cache >/dev/null 2>&1 &&
		grep -q first:1 <<<"$(hearth images)"
}

mkdir "$work/context"
for ((n = 0; n < 300; n++)); do
	head -c 20000 /dev/urandom >"$work/context/$n"
done
first=$(bake "$(round 0)" --tag first:1)
expected=$(layers "$(round 0)")
hearth export first:1 "oci-archive:$work/first.tar" >/dev/null 2>&1
debian_digest=$(hearth pull "$registry/debian:1" 2>/dev/null | tail -n 1)
spec "$work/use.json" "$registry/debian:1" "RUN test -x /usr/bin/apt-get && dpkg -l dpkg"

declare -A span
for job in "${jobs[@]}"; do
	for n in a b c; do # the fastest, since other work may stand in the way of one
		prepare "$job" "undisturbed-$n"
		began=${EPOCHREALTIME/./}
		hearth "${command[@]}" >/dev/null 2>&1
		took=$((${EPOCHREALTIME/./} - began))
		((took > ${span[$job]:-took})) || span[$job]=$took
	done
	echo "undisturbed: $job ${span[$job]} us"
done

faults=0 hits=0
for ((n = 1; hits < rounds && n <= 5 * rounds; n++)); do
	chosen=("${jobs[RANDOM % ${#jobs[@]}]}")
	((RANDOM % 3)) || chosen+=("${jobs[RANDOM % ${#jobs[@]}]}")
	start "$n" "${chosen[@]}"
	kill_within "${span[${chosen[0]}]}" "${pids[@]}"
	judge "$n" "${chosen[@]}"
	((n % 10)) && continue
	sound || wrong "not sound" "$n" "${chosen[@]}"
	echo "of $n kills $hits hit"
done
same "of $((n - 1)) kills $rounds hit what ran" "$hits" "$rounds"
same "what was killed can be done again, what was there before is there, and nothing is left" "$faults" 0
check "at the end fsck says clean" sound
nothing_left "nothing is left over"
finish

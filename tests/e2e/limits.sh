#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a step may use: time, memory, processes and processors. None of it is in a key.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)

limited() # LIMITS STEP: a RUN under members of the image
{
	jq -n --arg base "$base" --arg step "$2" --argjson limits "$1" \
		'{base: $base, steps: [$step]} + $limits' >"$work/limited.json"
	hearth bake "$work/limited.json" --progress plain 2>&1
}

start=$EPOCHSECONDS
refused "time that runs out" 75 'step 1.*not ended after 1\.0 s \(timeoutMs\)$' \
	limited '{"timeoutMs": 1000}' 'RUN trap "" TERM; sleep 600 & sleep 601; sleep 602'
check "ends the step soon" test $((EPOCHSECONDS - start)) -lt 60
nothing_left "and all that it started"
check "time that suffices" limited '{"timeoutMs": 60000}' 'RUN true # time'

refused "memory that runs out" 1 'step 1.*ended with exit code 137: the step reached its memory limit of 64 MB \(resources\.memoryMb\)' \
	limited '{"resources": {"memoryMb": 64}}' 'RUN dd if=/dev/zero of=/dev/null bs=200M count=1'
refused "in a tmpfs, too" 1 'step 1.*ended with exit code.*memory limit of 64 MB' \
	limited '{"resources": {"memoryMb": 64}}' 'RUN --mount=type=tmpfs,target=/t dd if=/dev/zero of=/t/x bs=1M count=200'
check "memory that suffices" limited '{"resources": {"memoryMb": 512}}' 'RUN dd if=/dev/zero of=/dev/null bs=200M count=1 # more'

refused "processes that run out" 1 'step 1.*ended with exit code [0-9]*: the step reached its limit of 16 processes \(resources\.pids\)' limited '{"resources": {"pids": 16}}' \
	'RUN i=0; while [ $i -lt 64 ]; do sleep 60 & i=$((i+1)); done; [ "$(ls -d /proc/[0-9]* | wc -l)" -gt 60 ]'
nothing_left "of which none is left"
refused "a failure below the limits, which speaks of none," 1 'ended with exit code 3$' \
	limited '{"resources": {"memoryMb": 64, "pids": 16}}' 'RUN exit 3'

holds "a tenth of a processor" "$(limited '{"resources": {"cpu": 0.1}}' \
	'RUN cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2>/dev/null')" '\] 10000'
holds "a hundredth, and less" "$(limited '{"resources": {"cpu": 0.002}}' \
	'RUN cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2>/dev/null # less')" '\] 2000'
disk='{"resources": {"diskMb": 64}}'
said=$(limited "$disk" 'RUN true # disk')
if grep -q 'diskMb does not limit' <<<"$said"; then
	echo "not tried, a limited disk: $said"
else
	refused "a disk that runs out" 1 'step 1.*ended with exit code 1: the step reached its disk limit of 64 MB \(resources\.diskMb\)' \
		limited "$disk" 'RUN dd if=/dev/zero of=/big bs=1M count=200'
	nothing_left "of which no loop device is left"
	refused "a command that passes over it" 1 'ended with exit code 0: the step reached its disk limit of 64 MB' \
		limited "$disk" 'RUN dd if=/dev/zero of=/big bs=1M count=200 2>/dev/null || true'
	refused "inodes that run out" 1 'the step reached its disk limit of 1 MB' \
		limited '{"resources": {"diskMb": 1}}' 'RUN i=0; while [ $i -lt 500 ]; do : >/$i || exit 1; i=$((i+1)); done'
	mkdir "$work/context"
	head -c 100M /dev/zero | tr '\0' x >"$work/context/big"
	refused "what is copied, too" 1 'step 1.*the step reached its disk limit of 64 MB \(resources\.diskMb\)$' \
		limited "{\"context\": \"context\", ${disk#\{}" 'COPY big /big'
	refused "a failure below the limit, which does not speak of it," 1 'ended with exit code 3$' limited "$disk" 'RUN exit 3'

	spec "$work/plain.json" "$base" 'RUN dd if=/dev/zero of=/some bs=1M count=50; chown 7:9 /some; rm /bin/id' 'RUN ls -n /some # next'
	jq '. + {reproducible: true}' "$work/plain.json" >"$work/plain.json.new"
	mv "$work/plain.json.new" "$work/plain.json"
	jq '. + {resources: {diskMb: 64}}' "$work/plain.json" >"$work/within.json"
	within=$(bake "$work/within.json")
	holds "a disk that suffices, and the step on it" "$(cat "$work/bake.log")" '^\[2/2\].* 7 +9 +52428800 .*/some'
	nothing_left "from which nothing is left mounted"
	same "is the image that it is without a limit" "$within" \
		"$(HEARTH_DATA=$work/other bake "$work/plain.json")"

	limited "$disk" 'RUN echo begun; sleep 60' >"$work/said" &
	wait_for 60 grep -q '] begun' "$work/said"
	mapfile -t pids < <("$here/leftovers.py" --pids "$HEARTH_DATA" | awk '/ \.?hearth/ {print $1}')
	kill -KILL "${pids[@]}" 2>/dev/null || true
	wait $! || true
	check "whose end was not foreseen is swept" limited "$disk" 'RUN true # swept'
	nothing_left "and had its loop device freed"

	without_loops() { unshare -m sh -c 'mount --bind /dev/null /dev/loop-control && exec "$@"' sh "$HEARTH" "$@"; }
	spec "$work/whole.json" "$base" 'RUN dd if=/dev/zero of=/big bs=1M count=70 && echo whole'
	jq ". + $disk" "$work/whole.json" >"$work/unlimited.json"
	said=$(without_loops bake "$work/unlimited.json" --progress plain 2>&1)
	holds "a host without loop devices says that it does not limit the disk" "$said" 'warning: resources\.diskMb does not limit this step: /dev/loop-control: '
	holds "and goes on" "$said" '\] whole'
fi
holds "a step under another limit is the same step" "$(limited '{"resources": {"memoryMb": 64, "pids": 9, "cpu": 3, "diskMb": 9}, "timeoutMs": 5}' \
	'RUN true # time')" CACHED

own_disk 160M
spec "$work/large.json" "$base" 'RUN dd if=/dev/urandom of=/big bs=1M count=70'
jq '. + {resources: {diskMb: 80}}' "$work/large.json" >"$work/full.json"
head -c 100M /dev/zero >"$work/mnt/filler"
refused "a disk that is full below its limit is a full disk" 74 'space|full' hearth bake "$work/full.json"
rm "$work/mnt/filler"
finish

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
refused "time that runs out" 75 'step 1.*not ended after 1\.0 s' \
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
holds "a step under another limit is the same step" "$(limited '{"resources": {"memoryMb": 64, "pids": 9, "cpu": 3}, "timeoutMs": 5}' \
	'RUN true # time')" CACHED
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - everything that judges this tree, packages included.
#
#	tests/run.sh [--long] [STAGE...]
#
# Stages, in order: structure unit e2e asan tsan fuzz tidy; --long adds analyze
# and bench, and makes the others larger. Tests that need root get it by sudo.
# The last line is "N passed, N failed, N skipped"; with TESTS_MUST_RUN=1 what
# was skipped has failed.
set -euo pipefail
exec </dev/null

ALL=(structure unit e2e asan tsan fuzz tidy)
LONG=(analyze bench)
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
jobs=$(nproc)
reports=$root/build/reports
long=0 passed=0 failed=0 skipped=0 child=
summary=()

usage()
{
	sed -n '3,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
}

# As the user where there is no sudo: what needs root then skips itself.
sudo=()
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
	sudo=(sudo "--preserve-env=TESTS_MUST_RUN,HEARTH_LONG")
fi

# Run in a session of its own, so that an interrupted run can end all of it.
run()
{
	setsid "$@" &
	child=$!
	local status=0
	wait "$child" || status=$?
	child=
	return "$status"
}

stop()
{
	trap - EXIT INT TERM
	[ -z "$child" ] || "${sudo[@]}" pkill -TERM -s "$child" || true
	give_back
	exit "${1:-130}"
}

give_back() # what root made in build/ belongs to the user
{
	[ "$(id -u)" = 0 ] || [ ! -d build ] || "${sudo[@]}" chown -R "$(id -u):$(id -g)" build || true
}

count() # NAME PASSED FAILED SKIPPED
{
	passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
	[ "$3" = 0 ] || summary+=("failed: $1")
	[ "$4" = 0 ] || summary+=("skipped: $1 ($4)")
}

check() # NAME COMMAND...: one check that is not a ctest
{
	local name=$1
	shift
	if "$@"; then count "$name" 1 0 0; else count "$name" 0 1 0; fi
}

# A user's compiler may warn of what ours does not; ours may not warn at all.
build() # PRESET [TARGET...]
{
	local preset=$1 strict=()
	shift
	[ "$preset" != release ] || strict=(-D WERROR=ON)
	cmake --preset "$preset" "${strict[@]}" >"$reports/configure-$preset.log" 2>&1 ||
		{ cat "$reports/configure-$preset.log"; return 1; }
	run cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"} >"$reports/build-$preset.log" 2>&1 ||
		{ grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking)' "$reports/build-$preset.log"; return 1; }
}

attribute() # NAME REPORT: of the report's test suite
{
	sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1
}

tests() # NAME PRESET CTEST-OPTION...: run and count what matches
{
	local name=$1 preset=$2 report=$reports/$1.xml total bad skip
	shift 2
	rm -f "$report"
	run "${sudo[@]}" ctest --preset "$preset" --output-junit "$report" "$@" || true
	total=$(attribute tests "$report" 2>/dev/null) bad=$(attribute failures "$report" 2>/dev/null)
	skip=$(($(attribute skipped "$report" 2>/dev/null) + $(attribute disabled "$report" 2>/dev/null)))
	if [ "${total:-0}" = 0 ]; then
		echo "$name: no test was found"
		count "$name" 0 1 0
		return
	fi
	count "$name" $((total - bad - skip)) "$bad" "$skip"
}

built() # NAME PRESET [TARGET...]: build, or count a failure
{
	local name=$1
	shift
	build "$@" && return
	count "$name: build" 0 1 0
	return 1
}

stage_structure()
{
	built structure dev || return 0
	check "structure: headers alone" build dev all_verify_interface_header_sets
	tests structure dev -L '^tree$'
}

stage_unit()
{
	built unit dev || return 0
	tests unit dev -L '^unit$' -j "$jobs"
}

# Optimised, because a debug build hides what is slow.
stage_e2e()
{
	built e2e release || return 0
	tests e2e release -L '^e2e$'
}

stage_asan()
{
	built asan asan || return 0
	tests asan asan -L '^unit$' -j "$jobs"
	if [ "$long" = 1 ]; then
		tests asan-e2e asan -L '^e2e$'
	else
		tests asan-e2e asan -L '^smoke$'
	fi
}

stage_tsan()
{
	built tsan tsan || return 0
	if [ "$long" = 1 ]; then
		tests tsan tsan -L '^unit$' -j "$jobs"
	else
		tests tsan tsan -L '^unit$' -R '^(layers|sandbox)/' -j "$jobs"
	fi
}

stage_fuzz()
{
	built fuzz fuzz || return 0
	tests fuzz fuzz -L '^fuzz$' -j "$jobs"
}

ours() # PATTERN...: files of this repository, NUL after each
{
	git -c safe.directory="$root" ls-files -z -co --exclude-standard -- "$@"
}

# The compilers know formats and uninitialised variables better than cppcheck does.
stage_tidy()
{
	if ! cmake --preset tidy >"$reports/configure-tidy.log" 2>&1; then
		cat "$reports/configure-tidy.log"
		count "tidy: configure" 0 1 0
		return
	fi
	check "tidy: shellcheck" xargs -0 shellcheck -x -S warning < <(ours '*.sh' .ci/run ':!tests/golden')
	ours '*.c' | tr '\0' '\n' >"$reports/sources"
	check "tidy: cppcheck" run cppcheck --quiet -j "$jobs" \
		--enable=warning,performance,portability --error-exitcode=1 --inline-suppr \
		--suppress=memleak --suppress=resourceLeak --suppress=missingIncludeSystem \
		--suppress=readdirCalled --suppress=invalidFunctionArg --suppress=invalidFunctionArgBool \
		--suppress=invalidPrintfArgType_uint --suppress=uninitvar --library=posix \
		--library="$root/tests/tree/cppcheck.cfg" --std=c11 -D_GNU_SOURCE -D__x86_64__ \
		-I "$root" --file-list="$reports/sources"
	jq -j --arg root "$root/" '.[].file | select(startswith($root) and (contains("/build/") | not)) | . + "\u0000"' \
		build/tidy/compile_commands.json | sort -zu >"$reports/units"
	check "tidy: clang-tidy" run xargs -0 -a "$reports/units" -P "$jobs" -n 1 clang-tidy-14 --quiet -p build/tidy \
		2>"$reports/tidy.log"
}

# Its findings are read by a person: only a build that breaks is a failure.
stage_analyze()
{
	check "analyze" build analyze
	grep -E 'warning: .*\[-Wanalyzer' "$reports/build-analyze.log" || true
}

stage_bench()
{
	built bench release || return 0
	check "bench" run "${sudo[@]}" tests/bench/bench.py
}

stages=()
for argument in "$@"; do
	case $argument in
	--help | -h) usage && exit 0 ;;
	--long) long=1 ;;
	*)
		[[ " ${ALL[*]} ${LONG[*]} " == *" $argument "* ]] ||
			{ echo "run: no stage '$argument'; there are: ${ALL[*]} ${LONG[*]}" >&2; exit 64; }
		stages+=("$argument")
		;;
	esac
done
if [ ${#stages[@]} = 0 ]; then
	stages=("${ALL[@]}")
	[ "$long" = 0 ] || stages+=("${LONG[@]}")
fi
export HEARTH_LONG=$long

trap 'stop $?' EXIT
trap 'stop 130' INT
trap 'stop 143' TERM
mkdir -p "$reports"
sets=(build run test)
[[ " ${stages[*]} " != *" bench "* ]] || sets+=(bench)
SECONDS=0
scripts/setup.sh "${sets[@]}"
echo "== setup: $SECONDS s"
for stage in "${stages[@]}"; do
	SECONDS=0
	echo "== $stage"
	"stage_$stage"
	echo "== $stage: $SECONDS s"
done

trap - EXIT INT TERM
give_back
if [ "${TESTS_MUST_RUN:-0}" = 1 ] && [ "$skipped" != 0 ]; then
	echo "TESTS_MUST_RUN: what was skipped has failed"
	failed=$((failed + skipped)) skipped=0
fi
[ ${#summary[@]} = 0 ] || printf '%s\n' "${summary[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]

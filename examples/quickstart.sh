#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quickstart.sh - from a fresh Debian 12 to a baked agent.
#
# Installs what it misses, builds hearth, bakes examples/agent.json, bakes it
# again from the cache, then edits its second step and bakes once more. All
# that it makes is in build/quickstart; it can be run again, and removes there
# only what a run before has made.
set -euo pipefail

case ${1:-} in
'') ;;
--help | -h) sed -n '3,/^set/{/^#/s/^# \{0,1\}//p}' "$0" && exit 0 ;;
*) echo "quickstart: it takes no arguments; see --help" >&2 && exit 64 ;;
esac

root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/quickstart
name=docker.io/library/debian:bookworm-slim
server=
cd "$root"

say()
{
	if [ -t 1 ]; then printf '\n\033[1m== %s\033[0m\n' "$*"; else printf '\n== %s\n' "$*"; fi
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

hearth()
{
	as_root env HEARTH_DATA="$work/store" "$root/build/release/bin/hearth" "$@"
}

finish()
{
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
}
trap finish EXIT

# An empty directory in $work. One that is there goes if it is empty, or the
# very directory (device and inode) that a run before has noted as its own.
fresh() # NAME [AS_ROOT]
{
	local dir=$work/$1 note=$work/.$1.made
	shift
	if [ -e "$dir" ] || [ -L "$dir" ]; then
		if [ "$(stat -c %d:%i "$dir")" = "$(cat "$note" 2>/dev/null)" ]; then
			"$@" rm -rf --one-file-system "$dir"
		elif ! "$@" rmdir "$dir" 2>/dev/null; then
			echo "quickstart: $dir was made by something else: move it away" >&2
			exit 75
		fi
	fi
	"$@" mkdir -m 0700 "$dir"
	stat -c %d:%i "$dir" >"$note"
}

build()
{
	local log=$work/build.log
	local programs=(hearth hearth-worker hearth-puller hearth-daemon hearth-agent share)
	{ cmake --preset release && cmake --build --preset release --target "${programs[@]}"; } >"$log" 2>&1 ||
		{ tail -n 30 "$log"; echo "quickstart: the build failed; all of it is in $log" >&2; exit 70; }
}

reaches_hub()
{
	timeout 8 python3 - 2>/dev/null <<'PY'
import socket
socket.create_connection(("registry-1.docker.io", 443), 5)
PY
}

choose_base() # sets base
{
	base=()
	if reaches_hub && hearth pull "$name"; then
		return
	fi
	echo "$name cannot be pulled from here: making a Debian base with mmdebstrap instead."
	as_root scripts/debian-base.sh "$work/base"
	base=(--base "oci:$work/base:bookworm-slim")
	echo "The base is ${base[1]}"
}

serve_handbook() # a repository of our own at http://git.example.test/handbook.git; sets port
{
	local git=$work/git
	fresh git
	git init -q --bare -b main "$git/handbook.git"
	git clone -q "$git/handbook.git" "$git/checkout" 2>/dev/null
	printf '# Handbook\n\nKeep the hearth warm.\n' >"$git/checkout/README.md"
	git -C "$git/checkout" add README.md
	GIT_COMMITTER_DATE=2026-01-01T00:00:00Z git -C "$git/checkout" -c user.name=hearth \
		-c user.email=hearth@example.test commit -q --date 2026-01-01T00:00:00Z -m 'handbook: begin'
	git -C "$git/checkout" push -q origin HEAD:main
	setpriv --pdeathsig TERM examples/serve-git.py "$git" "$git/port" </dev/null &
	server=$!
	while [ ! -e "$git/port" ]; do
		kill -0 "$server"
		sleep 0.05
	done
	port=$(cat "$git/port")
}

bake() # SPEC: sets digest and ms
{
	local start=${EPOCHREALTIME/./}
	digest=$(hearth bake "$1" "${base[@]}" --add-host "git.example.test=127.0.0.1:$port" | tail -n 1)
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
}

started=$SECONDS
say "Packages"
scripts/setup.sh build run example
mkdir -p "$work"
say "Building hearth (log in build/quickstart/build.log)"
build
fresh store as_root

say "A base: $name"
choose_base
say "A repository to clone: http://git.example.test/handbook.git"
serve_handbook
echo "It is served on 127.0.0.1:$port, and --add-host tells the steps so."

say "First bake of examples/agent.json"
cp examples/agent.json "$work/agent.json"
bake "$work/agent.json"
first=$digest
echo "$digest in $ms ms"

say "The same again: every step is CACHED"
bake "$work/agent.json"
echo "$digest in $ms ms"
[ "$digest" = "$first" ] || { echo "quickstart: the digest changed" >&2; exit 70; }

say "The second step, edited: the first stays CACHED, the second runs"
sed 's|/workspace"$|/workspace \&\& git -C /workspace log --oneline"|' "$work/agent.json" >"$work/edited.json"
diff -u "$work/agent.json" "$work/edited.json" || true
bake "$work/edited.json"
echo "$digest in $ms ms"

say "What there is now"
hearth images
hearth history "$digest"
say "Done in $((SECONDS - started)) s. To go on, paste:"
sudo=
[ "$(id -u)" = 0 ] || sudo='sudo '
cat <<TEXT
  hearth="${sudo}env HEARTH_DATA=$work/store $root/build/release/bin/hearth"
  \$hearth images
  \$hearth inspect $digest
  \$hearth history $digest
  \$hearth logs $digest
  \$hearth bake $work/edited.json ${base[*]} --output oci:$work/image
  umoci stat --image $work/image:latest
  \$hearth doctor
  \$hearth serve
TEXT

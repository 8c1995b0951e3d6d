# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# lib.sh - what every case stands on; sourced first.
#
# A case is a script of sentences: check, refused and same print one line each,
# and the case fails if one of them did. It works in $work, its data directory
# is $HEARTH_DATA, and both are gone when it ends. HEARTH names the program and
# HEARTH_E2E a directory in the build tree; ctest sets them.
set -euo pipefail
exec </dev/null

: "${HEARTH:?is the hearth program}" "${HEARTH_E2E:?is a directory for what tests make}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
bad=0 good=0
servers=()

skip() # REASON
{
	echo "skipped: $*"
	exit 125
}

[ "$(id -u)" = 0 ] || skip "needs root"
mkdir -p "$HEARTH_E2E"
work=$HEARTH_E2E/$(basename "$0" .sh).$$ # lower case: podman makes an image's name of it
mkdir "$work"
export HEARTH_DATA=$work/data
unset HEARTH_URL HEARTH_TOKEN HEARTH_CONFIG HEARTH_LOG HEARTH_MAP_BYTES SOURCE_DATE_EPOCH NOTIFY_SOCKET
# Nor does what the caller has set reach the registries, clients and proxies of others.
for name in $(compgen -e); do
	case $name in
	REGISTRY_* | DOCKER_* | CONTAINER_* | CONTAINERS_* | BUILDAH_* | STORAGE_* | XDG_*_HOME | XDG_RUNTIME_DIR | \
		*_proxy | *_PROXY) unset "$name" ;;
	esac
done

hearth()
{
	"$HEARTH" "$@"
}

# Helpers die with the case, however that ends.
serve() # COMMAND...
{
	setpriv --pdeathsig TERM "$@" >>"$work/servers.log" 2>&1 &
	servers+=($!)
}

clean_up()
{
	local status=$?
	trap - EXIT
	[ ${#servers[@]} = 0 ] || kill "${servers[@]}" 2>/dev/null || true
	wait
	umount -q "$work"/mnt* 2>/dev/null || true
	[ "${HEARTH_KEEP:-}" = 1 ] || rm -rf "$work"
	exit "$status"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

ok() # SENTENCE
{
	good=$((good + 1))
	echo "ok: $*"
}

not_ok() # SENTENCE [DETAIL]
{
	bad=$((bad + 1))
	echo "FAILED: $1"
	[ -z "${2:-}" ] || sed 's/^/    /' <<<"$2"
}

check() # SENTENCE COMMAND...: the command succeeds
{
	local sentence=$1 said
	shift
	if said=$("$@" 2>&1); then ok "$sentence"; else not_ok "$sentence" "$said"; fi
}

same() # SENTENCE A B
{
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "$(diff <(echo "$2") <(echo "$3") | head -n 40)"; fi
}

holds() # SENTENCE TEXT PHRASE: TEXT has a line in which the regular expression is found
{
	if grep -qE -- "$3" <<<"$2"; then ok "$1"; else not_ok "$1" "no '$3' in: $2"; fi
}

refused() # SENTENCE CODE[|CODE] PHRASE COMMAND...: fails with this exit code, and says so
{
	local sentence=$1 code=$2 phrase=$3 said status=0
	shift 3
	said=$("$@" 2>&1) || status=$?
	if [[ ! "|$code|" == *"|$status|"* ]]; then
		not_ok "$sentence" "exit $status instead of $code: $said"
	elif ! grep -qiE -- "$phrase" <<<"$said"; then
		not_ok "$sentence" "no '$phrase' in: $said"
	else
		ok "$sentence"
	fi
}

wait_for() # SECONDS COMMAND...: until it succeeds; a minute is what a busy machine may take
{
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -le "$end" ] || return 1
		sleep 0.05
	done
}

nothing_left() # SENTENCE
{
	# A step's worker ends by itself when nobody listens, but it takes a moment.
	wait_for 60 "$here/leftovers.py" "$HEARTH_DATA" || true
	check "$1" "$here/leftovers.py" "$HEARTH_DATA"
}

finish()
{
	echo "$good ok, $bad failed"
	[ "$bad" = 0 ] && [ "$good" != 0 ]
}

# JSON of an image: spec FILE BASE STEP...
spec()
{
	local file=$1 base=$2
	shift 2
	jq -n --arg base "$base" '{base: $base, steps: $ARGS.positional}' --args "$@" >"$file"
}

# The last line of standard output, which is the image's digest.
bake() # ARGUMENT...
{
	hearth bake "$@" 2>"$work/bake.log" | tail -n 1 || { tail -n 30 "$work/bake.log" >&2; return 1; }
}

cached() # N: how many steps of the last bake were
{
	grep -cE '^\[[0-9]+/[0-9]+\] CACHED' "$work/bake.log" || true
}

tiny_base() # a base of busybox alone, as oci:...
{
	[ -d "$work/tiny" ] || "$here/image.py" "$work/tiny:latest" tiny >/dev/null
	echo "oci:$work/tiny:latest"
}

unpack() # LAYOUT:TAG BUNDLE: by umoci, which reads no zstd; the files are in BUNDLE/rootfs
{
	rm -rf "$work/as-gzip" "$2"
	skopeo --insecure-policy copy -q --dest-compress-format gzip "oci:$1" "oci:$work/as-gzip:x"
	umoci unpack --image "$work/as-gzip:x" "$2" >/dev/null
}

# What each tool makes for the steps' own sake, and mounts over, is nobody's content.
listing() # ROOT [OPTION...]: its files as text
{
	"$here/listing.py" "$@" --without etc/hosts --without etc/resolv.conf --without etc/hostname --without run/.containerenv
}

own_storage() # of podman, buildah and skopeo: the host's containers are not touched; sets podman
{
	cat >"$work/storage.conf" <<CONF
[storage]
driver = "vfs"
runroot = "$work/run"
graphroot = "$work/containers"
CONF
	export CONTAINERS_STORAGE_CONF=$work/storage.conf BUILDAH_ISOLATION=chroot
	# shellcheck disable=SC2034 # for the cases
	podman=(podman --cgroup-manager cgroupfs)
}

own_disk() # SIZE: an ext4 at $work/mnt, and the data directory on it
{
	truncate -s "$1" "$work/disk"
	mkfs.ext4 -q -m 0 "$work/disk"
	mkdir "$work/mnt"
	mount -o loop "$work/disk" "$work/mnt"
	export HEARTH_DATA=$work/mnt/data
}

debian_base() # made once a build tree; sets debian to a layout
{
	debian=$HEARTH_E2E/debian
	"$root/scripts/debian-base.sh" "$debian"
}

free_port() # that no connection takes before its server does: the kernel gives those higher ones
{
	python3 - <<'PY'
import random, socket
while True:
    try:
        with socket.create_server(("127.0.0.1", random.randrange(10000, 32000))) as server:
            print(server.getsockname()[1])
            break
    except OSError:
        pass
PY
}

serve_files() # DIRECTORY: over HTTP on loopback; sets port
{
	port=$(free_port)
	serve python3 -m http.server --bind 127.0.0.1 --directory "$1" "$port"
	wait_for 60 curl -fsS "http://127.0.0.1:$port/"
}

start_registry() # sets registry to HOST:PORT; blobs lie in $work/registry
{
	registry=127.0.0.1:$(free_port)
	cat >"$work/registry.yml" <<YAML
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $work/registry}, delete: {enabled: true}}
http: {addr: "$registry"}
YAML
	serve docker-registry serve "$work/registry.yml"
	wait_for 60 curl -fsS "http://$registry/v2/" || { cat "$work/servers.log"; exit 1; }
}

push() # LAYOUT:TAG NAME: to the registry
{
	skopeo --insecure-policy copy -q --dest-tls-verify=false "oci:$1" "docker://$registry/$2"
}

blob_file() # DIGEST: where the registry keeps it
{
	local hex=${1#sha256:}
	echo "$work/registry/docker/registry/v2/blobs/sha256/${hex:0:2}/$hex/data"
}

start_git() # serves $work/git/handbook.git; sets git_port
{
	local checkout=$work/git/checkout
	git init -q --bare -b main "$work/git/handbook.git"
	git clone -q "$work/git/handbook.git" "$checkout" 2>/dev/null
	printf '# Handbook\n' >"$checkout/README.md"
	git -C "$checkout" add README.md
	git -C "$checkout" -c user.name=t -c user.email=t@example.test commit -q -m 'handbook: begin'
	git -C "$checkout" push -q origin HEAD:main
	serve "$root/examples/serve-git.py" "$work/git" "$work/git/port"
	wait_for 60 test -e "$work/git/port"
	# shellcheck disable=SC2034 # for the cases
	git_port=$(cat "$work/git/port")
}

start_daemon() # ARGUMENT...: sets daemon (its pid), url and token; listen may say where
{
	: >"$work/daemon.log"
	setpriv --pdeathsig TERM "$HEARTH" serve --listen "${listen:-127.0.0.1:0}" "$@" 2>"$work/daemon.log" &
	daemon=$!
	servers+=("$daemon")
	wait_for 20 grep -q listening "$work/daemon.log" || { cat "$work/daemon.log"; exit 1; }
	url=$(grep -oE 'url=[^ ]*' "$work/daemon.log" | cut -d= -f2)
	token=$(cat "$HEARTH_DATA/admin.token")
}

stop_daemon() # sets status
{
	kill "$daemon"
	status=0
	wait "$daemon" || status=$?
}

ask() # PATH [CURL OPTION...]: the body, and the status in a line behind it
{
	local path=$1
	shift
	curl -sS -m 30 -w '\n%{http_code}\n' -H "Authorization: Bearer ${as:-$token}" "$@" "$url$path"
}

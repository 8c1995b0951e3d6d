#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh - the Debian 12 packages of this project, installed where missing.
#
#	scripts/setup.sh SET...      sets: build run example test bench
#
# When nothing is missing it changes nothing and needs no network. No service
# is started by a package installed here.
set -euo pipefail

build=(gcc libc6-dev cmake ninja-build pkg-config libarchive-dev libcurl4-openssl-dev libssl-dev
	libjansson-dev liblmdb-dev libmicrohttpd-dev libzstd-dev libisal-dev libseccomp-dev
	libnftables-dev libcap-dev libcmocka-dev)
run=(crun ca-certificates e2fsprogs)
example=(git python3 mmdebstrap umoci jq)
test=("${example[@]}" runc clang-14 clang-tidy-14 clang-format-14 libclang-rt-14-dev cppcheck
	shellcheck universal-ctags binutils buildah skopeo podman docker.io containerd docker-registry
	busybox-static attr
	libcap2-bin iproute2 procps nftables zstd xz-utils isal uidmap openssl curl strace nodejs
	node-typescript systemd chromium)
bench=("${test[@]}" nginx-light time wrk)

missing_of() # PACKAGE...: those that are not installed
{
	local known
	known=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
	for package in "$@"; do
		grep -qx "installed $package" <<<"$known" || echo "$package"
	done
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Debian asks this program before it starts a newly installed daemon.
hold_services()
{
	local policy=/usr/sbin/policy-rc.d
	[ -e "$policy" ] && return
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
	as_root chmod 755 "$policy"
	trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
}

install_packages() # PACKAGE...
{
	local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
	if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
		echo "setup: as root, run: apt-get install $*" >&2
		exit 69
	fi
	hold_services
	as_root "${apt[@]}" update
	as_root "${apt[@]}" install --no-install-recommends "$@"
}

wanted=()
for set in "$@"; do
	case $set in
	build) wanted+=("${build[@]}") ;;
	run) wanted+=("${run[@]}") ;;
	example) wanted+=("${example[@]}") ;;
	test) wanted+=("${test[@]}") ;;
	bench) wanted+=("${bench[@]}") ;;
	--help | -h) sed -n '3,/^set/{/^#/s/^# \{0,1\}//p}' "$0" && exit 0 ;;
	*) echo "setup: unknown set $set; see --help" >&2 && exit 64 ;;
	esac
done
mapfile -t missing < <(missing_of "${wanted[@]}")
[ ${#missing[@]} = 0 ] && exit 0
echo "setup: installing ${missing[*]}"
install_packages "${missing[@]}" </dev/null

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The operator's word, in the configuration: where images and hosts are, and for how long a bake may go on.
. "$(dirname "$0")/lib.sh"

start_registry
base=$(tiny_base)
push "$work/tiny:latest" team/tiny:1
push "$work/tiny:latest" hub/team/tiny:2
name=images.example.test/team/tiny
configure() # JQ-PROGRAM
{
	jq -n --arg registry "$registry" "$1" >"$work/hearth.json"
}
export HEARTH_CONFIG=$work/hearth.json

refused "what nobody knows is not found" 69 "images.example.test" hearth pull "$name:1" --config <(echo '{}')
configure '{registry: {mirrors: {"images.example.test":
	["http://127.0.0.1:1", "http://\($registry)/", "http://\($registry)/hub"], "other.example.test": ["http://\($registry)"]}}}'
digest=$(hearth pull "$name:1" 2>/dev/null)
same "one mirror after the other is asked" "$digest" "$(jq -r '.manifests[0].digest' "$work/tiny/index.json")"
holds "and the image has its own name" "$(hearth images)" "^$name:1 "
check "no other one" bash -c '! grep -q 127.0.0.1' - <(hearth images)
check "a mirror's place may be a path" hearth pull "$name:2"
check "a digest is asked for, too" hearth pull "$name@$digest"
refused "what no mirror has, the registry is asked for, and both answers are told" 69 \
	"pull $name:3.*before that, pull 127.0.0.1:1/team/tiny:3" hearth pull "$name:3"
spec "$work/mirrored.json" "other.example.test/team/tiny:1" "COPY --from=$name:2 /bin/busybox /copied" "RUN cmp /copied /bin/busybox"
check "bases and images to copy from come from mirrors" bake "$work/mirrored.json"
check "so does what is copied" hearth copy "other.example.test/hub/team/tiny:2" "oci:$work/out"

# A host that is neither loopback nor trusted, in a network of its own.
cat >"$work/apart.sh" <<SH
set -eu
ip link set lo up
ip addr add 10.77.0.1/32 dev lo
sed 's/127.0.0.1/10.77.0.1/' "$work/registry.yml" >"$work/apart.yml"
setpriv --pdeathsig TERM docker-registry serve "$work/apart.yml" >/dev/null 2>&1 &
until curl -fsS "http://10.77.0.1:${registry#*:}/v2/" >/dev/null 2>&1; do sleep 0.05; done
"\$@"
SH
apart() { unshare --net bash "$work/apart.sh" "$HEARTH" "$@"; }
there=10.77.0.1:${registry#*:}
configure '{}'
refused "plain HTTP is spoken to nobody elsewhere" 69 "10.77.0.1" apart pull "$there/team/tiny:1"
configure '{registry: {insecure: ["10.77.0.1:\($registry | split(":")[1])"]}}'
check "but where the operator wants it" apart pull "$there/team/tiny:1"
check "to push, too" apart push "$there/team/tiny:1" "$there/pushed:1"

mkdir "$work/www"
echo served >"$work/www/page"
serve_files "$work/www"
configure "{registry: {mirrors: {\"images.example.test\": [\"http://127.0.0.1:$port/hub\"]}}}"
refused "a mirror that has nothing" 69 "hub/team/tiny:1: 1 not found" hearth pull "$name:1" --data "$work/none"
holds "is told whose image it was asked for" "$(cat "$work/servers.log")" '/v2/hub/team/tiny/manifests/1[?]ns=images.example.test '
configure "{egress: {hosts: {\"pages.example.test\": \"127.0.0.1:$port\"}}}"
spec "$work/page.json" "$base" 'RUN wget -q -O - http://pages.example.test/page | grep -q served'
check "a host has its place from the configuration" bake "$work/page.json"
refused "the command's goes before it" 1 "step 1" hearth bake "$work/page.json" --no-cache --add-host pages.example.test=127.0.0.1:1

spec "$work/true.json" "$base" 'RUN true'
configure '{runtime: "/nowhere/runtime"}'
refused "the runtime is the operator's" 69 "/nowhere/runtime" hearth bake "$work/true.json" --no-cache
check "unless the command names one" hearth bake "$work/true.json" --no-cache --runtime crun
configure '{bakes: {timeoutMs: 500}}'
spec "$work/long.json" "$base" 'RUN sleep 600'
refused "a bake has its time" 75 "bakes.timeoutMs" hearth bake "$work/long.json"
nothing_left "nothing is left over"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A mirror without limits on a small disk.
. "$(dirname "$0")/lib.sh"

own_disk 164M
mkdir "$work/up"
serve "$here/upstream.py" "$work/up" $((8 * 1024 * 1024))
wait_for 60 test -e "$work/up/port"
jq -n --arg odd "http://127.0.0.1:$(cat "$work/up/port")" '{mirror: {upstreams: {"odd.example": {url: $odd}}}}' >"$work/mirror.json"
start_daemon --config "$work/mirror.json"
fetch() # NUMBER: its blob, which is the one that its manifest names
{
	local digest
	digest=$(curl -sS --fail -H "Authorization: Bearer $token" "$url/v2/odd.example/n-$1/manifests/1" | jq -r .config.digest)
	curl -sS --fail -H "Authorization: Bearer $token" "$url/v2/odd.example/n-$1/blobs/$digest" | sha256sum | grep -q "${digest#sha256:}"
}
requests() { grep -c "GET /v2/n-$1/blobs/" "$work/up/requests" || true; } # NUMBER

for n in $(seq 20); do
	fetch "$n" || break
done
same "what was used longest ago goes for what comes" "$n" 20
before=$(requests 20)
check "what came last is here" fetch 20
same "and is not got again" "$(requests 20)" "$before"
check "what has gone comes again" fetch 1
check "from its upstream" test "$(requests 1)" -gt 1
dd if=/dev/zero of="$work/mnt/filler" bs=1M 2>/dev/null || true
dd if=/dev/zero of="$work/mnt/filler" bs=4k oflag=append conv=notrunc 2>/dev/null || true
check "also where others take all that is left of the disk" fetch 21
stop_daemon
check "the store is whole" hearth fsck
nothing_left "nothing is left of it"
finish

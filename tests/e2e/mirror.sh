#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A daemon before a real registry, and before one that misbehaves as it is told (upstream.py).
. "$(dirname "$0")/lib.sh"

size=$((8 * 1024 * 1024))
tiny_base >/dev/null
start_registry
push "$work/tiny:latest" acme/tiny:1
mkdir "$work/up"
echo 0 >"$work/up/seconds"
serve "$here/upstream.py" "$work/up" "$size"
mkdir "$work/tls"
for name in cert other; do
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$name" \
		-addext subjectAltName=IP:127.0.0.1 -keyout "$work/$name.key" -out "$work/$name.pem" 2>/dev/null
done
serve "$here/upstream.py" "$work/tls" 4096 "$work/cert.pem" "$work/cert.key"
wait_for 60 test -e "$work/up/port" -a -e "$work/tls/port"
jq -n --arg real "http://$registry" --arg odd "http://127.0.0.1:$(cat "$work/up/port")" \
	--arg tls "https://127.0.0.1:$(cat "$work/tls/port")" --arg work "$work" '{registry: {anonymous: ["docker.io/*"]}, mirror: {default: "docker.io", upstreams: {
	"docker.io": {url: $real, tagTtlMs: 0, listen: "127.0.0.1:0"}, "odd.example": {url: $odd, tagTtlMs: 3600000},
	"small.example": {url: $odd, maxBytes: 12000000}, "gone.example": {url: "http://127.0.0.1:1/x"},
	"tls.example": {url: $tls, ca: "\($work)/cert.pem"}, "alien.example": {url: $tls, ca: "\($work)/other.pem"}}}}' >"$work/mirror.json"

start() { start_daemon --config "$work/mirror.json"; }
start
get() # PATH [CURL OPTION...]: the body
{
	curl -sS -m 60 --fail -H "Authorization: Bearer $token" "${@:2}" "$url$1"
}
status_of() # PATH [CURL OPTION...]
{
	curl -sS -m 60 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "${@:2}" "$url$1"
}
pull() # NAME [OPTION...]: by a real client
{
	rm -rf "$work/pulled"
	skopeo --insecure-policy copy -q --src-tls-verify=false --src-creds "x:$token" "${@:2}" "docker://${url#http://}/$1" "oci:$work/pulled:x"
}
sha() { sha256sum | sed 's/ .*//; s/^/sha256:/'; }
requests() { grep -c "$1" "$work/up/requests" || true; } # PATTERN: how many came to the upstream
blob_of() # NAME: what its manifest names
{
	[ -e "$work/blob-$1" ] || get "/v2/odd.example/$1/manifests/1" | jq -r .config.digest >"$work/blob-$1"
	cat "$work/blob-$1"
}
odd() { echo "/v2/odd.example/$1/blobs/$(blob_of "$1")"; }

check "an image comes by its upstream's name" pull docker.io/acme/tiny:1
check "and by a name of nobody else's" pull acme/tiny:1
hub=$(sed -nE 's/.*mirror has an address upstream=docker.io at=//p' "$work/daemon.log")
check "and by its upstream's own address" env url="$hub" bash -c "$(declare -f pull); work=$work token=$token; pull acme/tiny:1"
digest=$(jq -r '.manifests[0].digest' "$work/tiny/index.json")
same "the bytes are the upstream's" "$(get "/v2/acme/tiny/manifests/1?ns=docker.io" | sha)" "$digest"
same "who is no upstream is not asked" "$(status_of "/v2/acme/tiny/manifests/1?ns=quay.io")" 403
same "nobody pushes to it" "$(status_of /v2/docker.io/acme/tiny/blobs/uploads/ -X POST)" 403
same "what the upstream has not is not here" "$(status_of /v2/docker.io/acme/none/manifests/1)" 404
same "its tags are listed" "$(get /v2/docker.io/acme/tiny/tags/list | jq -c .tags)" '["1"]'

# A name of ours and one of nobody's, to somebody who may read the upstream alone.
bake <(jq -n '{base: "scratch"}') --tag localhost/acme/ours:1 >/dev/null
told() # CREDENTIALS WHO PATH [CURL OPTION...]: all of the answer, without the name and the time
{
	curl -sS -m 60 -i ${1:+-u "x:$1"} "${@:4}" "$url/v2/acme/$2/$3" | grep -vi '^date:' | sed "s/acme.$2/NAME/g"
}
puller=$(hearth token create --name puller --scope 'pull:docker.io/*' 2>/dev/null)
for path in manifests/1 "manifests/$digest" tags/list "referrers/$digest" "blobs/$digest"; do
	said=$(told "" ours "$path")
	holds "who is nobody is not told of ours: $path" "$said" '^HTTP/1.1 401'
	same "nor which are not: $path" "$said" "$(told "" none "$path")"
	said=$(told "$puller" ours "$path")
	holds "nor is he who may read the upstream alone: $path" "$said" '^HTTP/1.1 403'
	same "in either case: $path" "$said" "$(told "$puller" none "$path")"
done
same "nor by a HEAD" "$(told "" ours manifests/1 -I)" "$(told "" none manifests/1 -I)"
holds "of what the upstream has he is" "$(told "" tiny manifests/1)" '^HTTP/1.1 200'
holds "also what it has not" "$(told "" tiny manifests/2)" '^HTTP/1.1 404'
same "who may read all is told of what there is not" "$(status_of /v2/acme/none/manifests/1)" 404

same "32 who ask at once are one request" \
	"$(path=$(odd paced-1); for _ in $(seq 32); do get "$path" | sha & done | sort -u; wait)" "$(blob_of paced-1)"
same "and it was one" "$(requests 'GET /v2/paced-1/blobs/')" 1
same "a range of what is on its way is served" "$(get "$(odd held-1)" -r 0-99 | wc -c)" 100
touch "$work/up/go"
same "then the rest" "$(get "$(odd held-1)" | sha)" "$(blob_of held-1)"
same "of one request as well" "$(requests 'GET /v2/held-1/blobs/')" 1
for name in cut reset away; do
	same "a blob comes whole: $name" "$(get "$(odd $name-1)" | sha)" "$(blob_of $name-1)"
done
unsaid() # NAME: its blob, of which no manifest is here
{
	curl -sS "http://127.0.0.1:$(cat "$work/up/port")/v2/$1/manifests/1" | jq -r .config.digest
}
digest=$(unsaid chunks-1)
same "and so does one whose length nobody says" "$(get "/v2/odd.example/chunks-1/blobs/$digest" -D "$work/headers" | sha)" "$digest"
holds "in chunks" "$(cat "$work/headers")" "^[Tt]ransfer-[Ee]ncoding: chunked"
holds "what was cut goes on by a range" "$(cat "$work/up/requests")" 'GET /v2/cut-1/blobs/[^ ]* bytes='
for sentence in "wrong bytes are cut off" "and are not kept"; do
	refused "$sentence" '18|22' 'curl' get "$(odd flip-1)" -o "$work/flipped"
done
path=/v2/odd.example/chunks-flip-1/blobs/$(unsaid chunks-flip-1)
for sentence in "so are wrong bytes in chunks" "which are not kept either"; do
	refused "$sentence" '18|22|56' 'curl' get "$path" -o "$work/flipped"
done
same "an upstream that cannot be reached is 503" "$(status_of /v2/gone.example/a/manifests/1)" 503

same "an upstream has the certificate that its own authority vouches for" "$(status_of /v2/tls.example/a/manifests/1)" 200
same "and nobody else's" "$(status_of /v2/alien.example/a/manifests/1)" 503
holds "which is said" "$(hearth mirror status)" '^alien.example: its certificate is not trusted'
same "who is trusted is so still" "$(status_of /v2/tls.example/b/manifests/1)" 200

metric() { get /metrics | sed -nE "s/^$1 (.*)/\1/p"; }
holds "it counts what it was asked for" "$(metric 'hearth_mirror_upstream_requests_total\{upstream="gone.example"\}')" '^[1-9]'
holds "and what it gave" "$(metric 'hearth_mirror_served_bytes_total\{upstream="odd.example"\}')" '^[0-9]{8,}$'

kill "${servers[0]}"
check "without its upstream an image is here still" pull docker.io/acme/tiny:1
stop_daemon
start
check "and after a start" pull docker.io/acme/tiny:1

begin() # NAME: its first half has come, and more is wanted
{
	local path
	path=$(odd "$1")
	rm "$work/up/go"
	get "$path" -o "$work/part-$1" 2>/dev/null &
	asking=$!
	wait_for 60 test -s "$work/part-$1"
}
begin held-2
kill -KILL "$daemon"
wait "$asking" "$daemon" 2>/dev/null || true
touch "$work/up/go"
start
same "killed in the middle of a blob, it begins anew" "$(get "$(odd held-2)" | sha)" "$(blob_of held-2)"
same "and nothing is left of the first" "$(find "$HEARTH_DATA/tmp" -type f | wc -l)" 0

begin held-3
stop_daemon
same "stopped in the middle of a blob, it ends well" "$status" 0
wait "$asking" || true
touch "$work/up/go"
start

for n in 1 2; do
	get "/v2/small.example/other-$n/manifests/1" | jq -r .config.digest >"$work/other-$n"
	get "/v2/small.example/other-$n/blobs/$(cat "$work/other-$n")" -o /dev/null
done
gone() { [ "$(metric 'hearth_mirror_held_bytes\{upstream="small.example"\}')" -lt 12000000 ] && [ "$(metric 'hearth_mirror_held_bytes\{upstream="small.example"\}')" -gt 1000000 ]; }
check "over its size, what was used longest ago goes" wait_for 60 gone
same "the other is here still" "$(get "/v2/small.example/other-2/blobs/$(cat "$work/other-2")" | sha)" "$(cat "$work/other-2")"
same "without being fetched again" "$(requests 'GET /v2/other-2/blobs/')" 1
stop_daemon
check "the store is whole" hearth fsck
jq '.mirror.upstreams["small.example"].maxBytes = 1000000' "$work/mirror.json" >"$work/less.json"
collect() { HEARTH_CONFIG=$work/less.json hearth gc --json "$@"; }
same "gc tells what of a mirror's images would go" "$(collect --dry-run | jq '.mirroredBytes > 8000000')" true
same "and by hand they go as well" "$(collect | jq '.mirroredBytes > 8000000 and .blobs > 0')" true
same "once" "$(collect | jq .mirroredBytes)" 0
nothing_left "nothing is left of it"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who may pull what from /v2/, as curl and real clients are told; and blobs, whole and in part, over TLS.
. "$(dirname "$0")/lib.sh"

v2() # PATH [CURL OPTION...]: status, headers, and the body in $work/got, by ${as:-nobody}
{
	curl -sSk -m 60 -D - -o "$work/got" ${as:+-u "any:$as"} "${@:2}" "$url/v2/$1" | tr -d '\r'
}
code() { v2 "$@" | sed -n '1s/^[^ ]* \([0-9]*\).*/\1/p'; }
maker() { hearth token create --name "$1" "${@:2}" 2>/dev/null; }

mkdir "$work/context"
head -c 12M /dev/urandom >"$work/context/large"
bake <(jq -n '{base: "scratch", steps: ["COPY large /large"]}') --context "$work/context" --tag localhost/open/app:1 >/dev/null
hearth tag localhost/open/app:1 localhost/closed/app:1 >/dev/null 2>&1
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
	-keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
jq -n --arg d "$work" '{tls: {cert: "\($d)/cert.pem", key: "\($d)/key.pem"}, registry: {anonymous: ["open/*"]}}' >"$work/hearth.json"
start_daemon --config "$work/hearth.json"
host=${url#https://}
puller=$(maker puller --scope 'pull:closed/*')
export REGISTRY_AUTH_FILE=$work/auth.json DOCKER_CONFIG=$work/docker

# Who says nothing, and who says something wrong.
said=$(v2 "")
holds "a ping asks for a token" "$said" '^HTTP/1.1 401'
holds "and says where there is one" "$said" "^WWW-Authenticate: Bearer realm=\"https://$host/v2/token\",service=\"hearth\"$"
holds "old clients know by this that it is a registry" "$said" '^Docker-Distribution-Api-Version: registry/2.0$'
holds "in the registry's own words" "$(cat "$work/got")" '^\{"errors":\[\{"code":"UNAUTHORIZED","message":"[^"]+","detail":null\}\]\}$'
same "what is open is pulled by anybody" "$(code open/app/manifests/1)" 200
same "what is not is not" "$(code closed/app/manifests/1)" 401
same "whether it is there or not" "$(code closed/none/manifests/1)" 401
same "and nobody pushes" "$(code open/app/blobs/uploads/ -X POST)" 401
same "wrong credentials are refused even for what is open" "$(as=wrong code open/app/manifests/1)" 401
same "a token opens its repositories" "$(as=$puller code closed/app/manifests/1)" 200
same "and no others" "$(as=$puller code other/manifests/1)" 403
same "where it may pull it may not push" "$(as=$puller code closed/app/manifests/1 -X PUT -d '{}')" 403
same "another page's Host is nobody's" "$(as=$token code open/app/manifests/1 -H 'Host: evil.example')" 403
holds "what is no path is told in the same words" "$(as=$token v2 Open/App/manifests/1 >/dev/null; cat "$work/got")" NAME_INVALID
# An escaped / is no separator, and nothing is tidied up in a path.
for path in open%2fapp/manifests/1 open/app/../app/manifests/1 open//app/manifests/1 open/./app/manifests/1 \
	open%252fapp/manifests/1 open/app%00/manifests/1 open/app%c0%af/manifests/1; do
	same "$path has no name in it" "$(as=$token code "$path" --path-as-is)" 400
	holds "as the registry says it" "$(cat "$work/got")" '"code":"NAME_INVALID"'
done
same "what need not be escaped may be" "$(code %6fpen/app/manifests/1)" 200
holds "a method's name has no / either" "$(as=$token ask /v1/agents%2flist -k)" '"code":"UnknownMethod"'
holds "nor has it parts" "$(as=$token ask /v1/x/../agents.list -k --path-as-is)" '"code":"UnknownMethod"'
holds "a query is in order" "$(as=$token ask '/v1/agents.list?limit=%2' -k)" '"code":"InvalidArgument"'

# Tokens for tokens.
access() { curl -sSk ${as:+-u "any:$as"} "$url/v2/token?service=hearth&scope=repository:closed/app:$1" | jq -r .token; }
bearer() { code "$1" -H "Authorization: Bearer $2" "${@:3}"; }
narrow=$(as=$token access pull)
same "an access token is for what was asked" "$(bearer closed/app/manifests/1 "$narrow")" 200
same "and for nothing more" "$(bearer open/app/manifests/1 "$narrow" -X PUT -d '{}')" 401
same "nor is it a token of the API" "$(curl -sSk -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $narrow" "$url/v1/server.info")" 401
brief=$(as=$puller access pull,push,delete)
same "asking for more than one may is no error" "$(bearer closed/app/manifests/1 "$brief")" 200
hearth token revoke "$(hearth token list --json | jq -r '.[] | select(.name == "puller").id')"
same "a revoked token takes it along" "$(bearer closed/app/manifests/1 "$brief")" 401
puller=$(maker puller --scope 'pull:closed/*')

same "a manifest is deleted" "$(as=$token code closed/app/manifests/1 -X DELETE)" 202
holds "which is logged" "$(cat "$work/daemon.log")" 'request answered verb=DELETE path=/v2/closed/app/manifests/1 status=202 us=[0-9]+ token=tok_'
same "and is so at once" "$(as=$token code closed/app/manifests/1)" 404
hearth tag localhost/open/app:1 localhost/closed/app:1 >/dev/null 2>&1

# Real clients.
client() { skopeo --insecure-policy "$@"; }
if command -v skopeo >/dev/null; then
	check "skopeo pulls what is open without a login" client copy -q --src-tls-verify=false "docker://$host/open/app:1" "dir:$work/open"
	refused "and nothing else" 1 "unauthorized|authentication required|denied|log in" client inspect --tls-verify=false "docker://$host/closed/app:1"
	refused "a wrong password is no login" 1 "invalid username/password" skopeo login --tls-verify=false -u me -p wrong "$host"
	check "a token is one" skopeo login --tls-verify=false -u me -p "$puller" "$host"
	check "which pulls" client copy -q --src-tls-verify=false "docker://$host/closed/app:1" "dir:$work/closed"
	check "the same bytes" cmp "$work/closed/manifest.json" "$work/open/manifest.json"
fi
if command -v podman >/dev/null; then
	check "podman logs in, too" podman login --tls-verify=false -u me -p "$puller" "$host"
	refused "and not by a wrong password" 125 "invalid username/password" podman login --tls-verify=false -u me -p wrong "$host"
fi

check "hearth logs in" hearth login --username me --password-stdin "$host" --ca-file "$work/cert.pem" <<<"$puller"

# Blobs.
layer=$(as=$token v2 open/app/manifests/1 >/dev/null; jq -r '.layers[0].digest' "$work/got")
size=$(jq -r '.layers[0].size' "$work/got")
blob=open/app/blobs/$layer
said=$(v2 "$blob")
cp "$work/got" "$work/whole"
same "a blob is what its digest says" "$(sha256sum <"$work/whole" | cut -d' ' -f1)" "${layer#sha256:}"
holds "which is told" "$said" "^Docker-Content-Digest: $layer$"
holds "without a parameter to its type" "$said" '^Content-Type: application/octet-stream$'
same "nor any encoding" "$(v2 "$blob" --compressed | grep -ci content-encoding)" 0
said=$(v2 "$blob" -I)
holds "a HEAD says how long it is" "$said" "^Content-Length: $size$"
part() # FIRST LAST RANGE: what is sent for it is that part
{
	said=$(v2 "$blob" -H "Range: bytes=$3")
	holds "bytes=$3 is a part" "$said" "^Content-Range: bytes $1-$2/$size$"
	same "of so many bytes" "$(stat -c %s "$work/got")" $(($2 - $1 + 1))
	check "which are those" cmp "$work/got" <(tail -c +$(($1 + 1)) "$work/whole" | head -c $(($2 - $1 + 1)))
}
part 500 1499 500-1499
part 3000000 $((size - 1)) 3000000-
part $((size - 500)) $((size - 1)) -500
part $((size - 10)) $((size - 1)) $((size - 10))-$((size + 10))
for range in 500-0 $size- $((size + 1))-$((size + 2)); do
	said=$(v2 "$blob" -H "Range: bytes=$range")
	holds "bytes=$range is none" "$said" '^HTTP/1.1 416'
	holds "and the size is told" "$said" "^Content-Range: bytes \*/$size$"
done
head -c 5000000 "$work/whole" >"$work/resumed"
curl -sSk -C - -o "$work/resumed" "$url/v2/$blob"
check "a pull is resumed where it was cut" cmp "$work/resumed" "$work/whole"
same "several ranges are the whole" "$(code "$blob" -H 'Range: bytes=1-2,5-6')" 200
same "what is had already is not sent" "$(code "$blob" -H "If-None-Match: \"$layer\"")" 304
same "a blob of another repository is not given" "$(as=$token code "other/blobs/$layer")" 404
same "a digest that is none is said to be that" "$(as=$token code open/app/blobs/sha256:x)" 400
for _ in 1 2 3 4; do
	curl -sSk -m 60 "$url/v2/$blob" 2>/dev/null | head -c 100000 >/dev/null || true # and leaves
done
check "who leaves in the middle holds up nobody" cmp <(curl -sSk "$url/v2/$blob") "$work/whole"
page=$(as=$token ask /metrics -k)
holds "requests are counted" "$page" '^hearth_registry_requests_total\{kind="blob"\} [1-9]'
holds "and what was sent" "$page" '^hearth_registry_sent_bytes_total [1-9][0-9]{7,}$'
stop_daemon
same "it stops as it should" "$status" 0
nothing_left "nothing is left over"
finish

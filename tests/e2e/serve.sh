#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon's front door: health, tokens, methods, bad input, its end. curl is the judge.
. "$(dirname "$0")/lib.sh"

preflight() # ORIGIN [CURL OPTION...]: what a browser asks before a page of that origin may send a token
{
	curl -sSi -w '\n%{http_code}\n' -X OPTIONS -H "Origin: $1" -H 'Access-Control-Request-Method: POST' \
		-H 'Access-Control-Request-Headers: authorization,content-type' "${@:2}" "$url/v1/agents.sync" | tr -d '\r'
}

start_daemon
same "it says that it serves" "$(curl -sS "$url/healthz")" ok
same "and that it is ready" "$(curl -sS "$url/readyz")" ready
same "the token of this host is its user's alone" "$(stat -c %a "$HEARTH_DATA/admin.token")" 600
same "the socket, too" "$(stat -c %a "$HEARTH_DATA/run/hearth.sock")" 600
holds "a method answers" "$(ask /v1/server.info)" '"version":"[0-9]'
holds "by POST as well" "$(ask /v1/server.info -d '{}')" '"version":"[0-9]'
holds "and by the socket, whatever the Host is" \
	"$(url=http://any.name ask /v1/server.info --unix-socket "$HEARTH_DATA/run/hearth.sock")" '"version"'
etag=$(curl -sSi -H "Authorization: Bearer $token" "$url/v1/server.info" | tr -d '\r' | sed -n 's/^ETag: //p')
holds "what is known already is not sent again" "$(ask /v1/server.info -H "If-None-Match: $etag")" '^304$'
holds "and what is not, is" "$(ask /v1/server.info -H 'If-None-Match: "x"')" '^200$'
same "a connection is kept" "$(curl -sS -w '%{num_connects}' -o /dev/null -o /dev/null \
	-H "Authorization: Bearer $token" "$url/v1/server.info" "$url/v1/server.info")" 10

# Who may.
holds "nobody asks without a token" "$(curl -sSi "$url/v1/server.info")" '^HTTP/1.1 401'
holds "and is told how" "$(curl -sSi "$url/v1/server.info")" '^WWW-Authenticate: Bearer'
holds "metrics are a method like others" "$(curl -sSi "$url/metrics")" '^HTTP/1.1 401'
holds "another word is no token" "$(as=hth_no ask /v1/server.info)" '"Unauthorized"'
reader=$(hearth token create --scope read --name pollers 2>/dev/null)
holds "a token reads" "$(as=$reader ask /v1/server.info)" '^200$'
said=$(as=$reader ask /v1/tokens.list)
holds "but does no more than its scope" "$said" '^403$'
holds "and is told what it needs" "$said" 'Forbidden.*scope admin.*has read'
page=$(ask '/v1/tokens.list?limit=1' | head -n 1)
same "a list comes in pages" "$(jq -c '[.items[].name]' <<<"$page")" '["pollers"]'
next=$(jq -r .next <<<"$page")
same "each behind the other" "$(ask "/v1/tokens.list?limit=1&cursor=$next" | head -n 1 | jq -c '[[.items[].name], .next]')" \
	'[["admin.token"],null]'
holds "and a cursor is one that a page gave" "$(ask '/v1/tokens.list?cursor=x')" '"path":"cursor"'
id=$(hearth token list --json | jq -r '.[] | select(.name == "pollers").id')
hearth token revoke "$id"
holds "a token that was revoked by another process is refused at once" "$(as=$reader ask /v1/server.info)" '^401$'
watcher=$(hearth token create --scope read --name watchers 2>/dev/null)
curl -sSN -m 60 -H "Authorization: Bearer $watcher" "$url/v1/events.stream" >"$work/watched" 2>/dev/null &
watching=$!
wait_for 60 grep -q : "$work/watched"
hearth token revoke "$(hearth token list --json | jq -r '.[] | select(.name == "watchers").id')"
hearth call agents.sync '{"slug": "seen", "model": {}, "system": ""}' >/dev/null
status=0
wait "$watching" || status=$?
same "a stream ends with its token, and not as if it were whole" "$status" 18
same "before it says any more" "$(grep -c event: "$work/watched")" 0
refused "and is not revoked twice" 66 "no token" hearth token revoke "$id"
holds "a page of another origin is turned away" "$(ask /v1/server.info -H 'Host: evil.example')" '^403$'
holds "a preview's, too" "$(ask /v1/server.info -H 'Host: grt_1.preview.localhost:7460')" '^403$'
holds "one that names no host is told so" "$(ask /v1/server.info -H 'Host:')" '"code":"InvalidArgument","message":"Host is missing"'
holds "by the registry in its own words" "$(ask /v2/ -H 'Host:')" '"errors":\[\{"code":"UNSUPPORTED","message":"Host is missing"'

# The command line asks it, too.
holds "a command asks the daemon of its data directory" "$(hearth call server.info)" '"version":"[0-9]'
holds "the answer comes as it is, where it is asked for so" "$(hearth call --raw server.info '{}')" '^\{"data"'
refused "what the daemon refuses ends with its code" 64 "no such parameter; did you mean id" hearth call tokens.revoke '{"ib":"x"}'
refused "and what is not there, too" 66 "no token" hearth call tokens.revoke '{"id":"tok_x"}'
far=$(HEARTH_URL=$url/ HEARTH_TOKEN=$token hearth call tokens.create '{"scopes":["operate"]}' | jq -r .token)
holds "a daemon elsewhere is asked by its address" "$(HEARTH_URL=$url HEARTH_TOKEN=$far hearth call server.info)" '"version"'
holds "or by its socket, as the client does" \
	"$(HEARTH_URL=unix:$HEARTH_DATA/run/hearth.sock HEARTH_TOKEN=$far hearth call server.info)" '"version"'
refused "another scheme is none" 64 "or unix:/PATH" env HEARTH_URL=ftp://x HEARTH_TOKEN=x "$HEARTH" call server.info
refused "with what the token may" 77 "scope admin" env HEARTH_URL="$url" HEARTH_TOKEN="$far" "$HEARTH" call tokens.list
refused "a token is needed there" 77 "HEARTH_TOKEN is not" env HEARTH_URL="$url" "$HEARTH" call server.info
refused "where nobody listens is said" 75 "of http://127.0.0.1:1: .*hearth serve" env HEARTH_URL=http://127.0.0.1:1 HEARTH_TOKEN=x "$HEARTH" call server.info
refused "and where nobody serves" 75 "hearth serve" hearth call --data "$work/none" server.info

# Bad input.
holds "an unknown method says which is near" "$(ask /v1/server.inof)" 'UnknownMethod.*did you mean server.info'
holds "what is not there is not found" "$(ask /nothing)" '"NotFound"'
holds "what writes is not got" "$(ask /v1/tokens.create)" '^405$'
holds "malformed JSON is refused" "$(ask /v1/tokens.create -d '{')" '^400$'
holds "JSON that is not UTF-8, too" "$(ask /v1/tokens.create --data-binary $'{"name":"\xff"}')" '^400$'
head -c 200000 /dev/zero | tr '\0' '[' >"$work/deep"
holds "and deep JSON" "$(ask /v1/tokens.create --data-binary "@$work/deep")" '^400$'
head -c 2000000 /dev/zero >"$work/huge"
holds "a body that is too large is refused" "$(ask /v1/tokens.create --data-binary "@$work/huge")" '^413$'
holds "before it is sent, where it asks" \
	"$(ask /v1/tokens.create -H 'Expect: 100-continue' --data-binary "@$work/huge")" '^413$'
holds "or when it is, in chunks" \
	"$(ask /v1/tokens.create -H 'Transfer-Encoding: chunked' -H 'Expect:' --data-binary "@$work/huge")" '^413$'
holds "an unknown parameter says where" "$(ask /v1/tokens.revoke -d '{"id":"tok_x","x":1}')" '"path":"x"'
holds "a header that is too long is refused" "$(ask /v1/server.info -H "X: $(head -c 40000 /dev/zero | tr '\0' x)")" '^4(31|13)$'
holds "a browser's page of another origin may not ask" "$(preflight http://ui.example)" '^403$'
holds "after all that it serves as before" "$(ask /v1/server.info)" '^200$'
holds "and has counted it" "$(ask /metrics)" '^hearth_unauthorized_total [1-9]'

# Beginning and end.
refused "a second daemon is refused" 75 "another daemon" hearth serve --listen 127.0.0.1:0
stop_daemon
same "it ends as it should" "$status" 0
check "and takes its socket with it" test ! -e "$HEARTH_DATA/run/hearth.sock"
start_daemon
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
start_daemon
holds "a socket that a killed one left is replaced" \
	"$(url=http://x ask /v1/server.info --unix-socket "$HEARTH_DATA/run/hearth.sock")" '^200$'
refused "an address that is taken is said" 75 "another program listens" \
	env HEARTH_DATA="$work/other" "$HEARTH" serve --listen "${url#http://}"
stop_daemon

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
	-keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
jq -n --arg d "$work" '{tls: {cert: "\($d)/cert.pem", key: "\($d)/key.pem"}, origins: ["https://ui.example"]}' >"$work/hearth.json"
start_daemon --config "$work/hearth.json" --host hearth.test
holds "with a certificate it speaks TLS" "$(url=https://localhost:${url##*:} ask /v1/server.info --cacert "$work/cert.pem")" '^200$'
holds "and has the names that it was given" "$(ask /v1/server.info -k -H 'Host: hearth.test')" '^200$'
from() { ask "$1" -k -D - -H "Origin: $2" "${@:3}" | tr -d '\r'; }
holds "pages of origins that the configuration lists may ask, without a token" "$(preflight https://ui.example -k)" '^204$'
holds "and send one" "$(preflight https://ui.example -k)" '^Access-Control-Allow-Headers: Authorization'
holds "they may read an answer" "$(from /v1/server.info https://ui.example)" '^Access-Control-Allow-Origin: https://ui.example$'
holds "its ETag, too" "$(from /v1/server.info https://ui.example)" '^Access-Control-Expose-Headers: ETag'
holds "and an error" "$(as=hth_no from /v1/server.info https://ui.example)" '^Access-Control-Allow-Origin: https://ui.example$'
holds "even one before any method is asked" "$(from /v1/tokens.create https://ui.example --data-binary "@$work/huge")" '^Access-Control-Allow-Origin'
same "others read nothing" "$(from /v1/server.info https://evil.example | grep -ci '^access-control')" 0
holds "nor may they ask" "$(preflight https://evil.example -k)" '^403$'
holds "not even a listed page by another name of the daemon" "$(preflight https://ui.example -k -H 'Host: evil.example')" '^403$'
stop_daemon
printf 'no certificate' >"$work/cert.pem"
refused "what is no certificate is said" 69 "serve HTTP" hearth serve --listen 127.0.0.1:0 --config "$work/hearth.json"
nothing_left "nothing is left over"
finish

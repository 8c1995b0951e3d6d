#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Images go to a registry, with and without a password, and others read them there.
. "$(dirname "$0")/lib.sh"
command -v docker-registry >/dev/null || skip "needs docker-registry"

start_registry
base=$(tiny_base)
spec "$work/a.json" "$base" "RUN echo pushed > /a" "ENV A=b"
digest=$(bake "$work/a.json" --tag "$registry/acme/agent:1")

said=$(hearth push "$registry/acme/agent:1" 2>"$work/push.log")
same "a push prints the image's digest" "$said" "$digest"
holds "and what it sent" "$(cat "$work/push.log")" '^\[push\] done sha256:'
seen() { skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$registry/$1"; }
same "another tool finds it there" "$(seen acme/agent:1)" "$digest"
again=$(hearth push "$registry/acme/agent:1" --json 2>"$work/push.log")
same "pushed again it is the same" "$(jq -r .digest <<<"$again")" "$digest"
holds "and nothing is sent" "$(cat "$work/push.log")" manifestHeld
check "not a single blob" bash -c '! grep -q "done sha256" "$1"' - "$work/push.log"
hearth push "$digest" "$registry/other/name:2" >/dev/null 2>&1
same "by its digest it goes where it is told to" "$(seen other/name:2)" "$digest"
hearth push "$registry/acme/agent:1" "$registry/acme/agent:json" --progress json >/dev/null 2>"$work/events"
holds "programs hear of it, too" "$(jq -r .event "$work/events")" '^pushDone$'
HEARTH_DATA=$work/fresh hearth pull "$registry/acme/agent:1" >"$work/pulled" 2>/dev/null
same "what was pushed can be pulled" "$(cat "$work/pulled")" "$digest"

refused "a digest alone does not say where to" 64 "where to" hearth push "$digest"
refused "a layout is no registry" 64 "no registry" hearth push "$digest" "oci:$work/x"
refused "nor is the store, whose names are ours" 64 "localhost/a:1 is a name of the daemon's registry" hearth push "$digest" localhost/a:1
refused "from which nothing is pulled" 64 "hearth images" hearth pull localhost/a:1
refused "and nothing copied that it has not" 66 "hearth images" hearth copy localhost/absent:1 "oci:$work/x"
refused "nor is that a base" '66|69|77' "nor is it here: hearth images" hearth bake <(jq -n '{base: "localhost/absent:1"}')
refused "what is not here is not found" 66 "no image" hearth push "$registry/acme/absent:1"
refused "nobody listens there" 69 "push 127.0.0.1:1/a" hearth push "$digest" 127.0.0.1:1/a:1
refused "a password needs a name" 64 "go together" hearth push "$digest" "$registry/a:1" --password-stdin

# Several names at once, and what is about an image
said=$(hearth push "$digest" "$registry/many/a:1" "$registry/many/b:1" "$registry/many/a:2" "$registry/many/a:3" --json 2>"$work/push.log")
same "an image goes to several names" "$(jq -r '.references | length' <<<"$said")" 4
same "which all stand for it" "$(for name in a:1 a:2 a:3 b:1; do seen "many/$name"; done | sort -u)" "$digest"
sent() { grep -oE '^\[push\] done sha256:[0-9a-f]*' "$work/push.log" | sort "$@" | wc -l; }
same "and its blobs went to each repository once" "$(sent)" "$((2 * $(sent -u)))"
refused "a password is for one registry" 64 "several registries" \
	hearth push "$digest" "$registry/a:1" "localhost:1/a:1" --username me --password-stdin
printf '{}' >"$work/empty"
empty=sha256:$(sha256sum <"$work/empty" | cut -d' ' -f1)
place=$(curl -fsS -o /dev/null -D - -X POST "http://$registry/v2/many/a/blobs/uploads/" | tr -d '\r' | sed -n 's/^Location: //p')
curl -fsS -X PUT -H "Content-Type: application/octet-stream" --data-binary @"$work/empty" "$place&digest=$empty"
manifest=application/vnd.oci.image.manifest.v1+json
jq -nj --arg type "$manifest" --arg empty "$empty" --arg image "$digest" '{schemaVersion: 2, mediaType: $type, artifactType: "test/signature",
	config: {mediaType: "application/vnd.oci.empty.v1+json", digest: $empty, size: 2}, layers: [], subject: {mediaType: $type, digest: $image, size: 1}}' >"$work/signature"
signature=sha256:$(sha256sum <"$work/signature" | cut -d' ' -f1)
jq -nj --arg type "$manifest" --arg digest "$signature" --argjson size "$(stat -c %s "$work/signature")" '{schemaVersion: 2,
	mediaType: "application/vnd.oci.image.index.v1+json", manifests: [{mediaType: $type, digest: $digest, size: $size, artifactType: "test/signature"}]}' >"$work/list"
curl -fsS -X PUT -H "Content-Type: $manifest" --data-binary @"$work/signature" "http://$registry/v2/many/a/manifests/$signature"
curl -fsS -X PUT -H "Content-Type: application/vnd.oci.image.index.v1+json" --data-binary @"$work/list" "http://$registry/v2/many/a/manifests/${digest/:/-}"
same "a copy takes along what is about the image" "$(HEARTH_DATA=$work/fresh hearth copy "$registry/many/a:1" "$registry/signed/a:1" --referrers 2>/dev/null)" "$digest"
about() { curl -fsS -H "Accept: application/vnd.oci.image.index.v1+json" "http://$registry/v2/$1/manifests/${digest/:/-}" | jq -r '.manifests[].digest'; }
same "and lists it there" "$(about signed/a)" "$signature"
same "which is there" "$(curl -fsS -H "Accept: $manifest" "http://$registry/v2/signed/a/manifests/$signature")" "$(cat "$work/signature")"
hearth push "$(HEARTH_DATA=$work/data bake <(jq -n '{base: "scratch"}'))" "$registry/many/a:other" >/dev/null 2>&1
said=$(HEARTH_DATA=$work/fresh hearth copy "$registry/many/a" "$registry/moved/all" --all-tags --referrers 2>/dev/null)
same "a copy of all tags says what each is" "$(sort <<<"$said")" \
	"$(for tag in 1 2 3 other; do echo "$tag $(seen "many/a:$tag")"; done)"
same "and has them there" "$(seen moved/all:other)" "$(seen many/a:other)"
same "with what is about them" "$(about moved/all)" "$signature"
refused "a tag is not all of them" 64 "without a tag" hearth copy "$registry/many/a:1" "$registry/moved/all" --all-tags
refused "a layout has no place for it" 64 "only a registry" hearth copy "$registry/many/a:1" "oci:$work/x" --referrers

# A bake pushes, too
jq --arg a "$registry/baked/one:1" '. + {push: [$a]}' "$work/a.json" >"$work/p.json"
same "a bake pushes to what its spec names" "$(bake "$work/p.json" --push "$registry/baked/two:1")" "$digest"
same "which is there" "$(seen baked/one:1)" "$digest"
same "and to what the command names" "$(seen baked/two:1)" "$digest"
refused "a name that cannot be pushed to is refused before the bake" 64 "push: oci:x is no registry" \
	hearth bake "$work/p.json" --push oci:x
refused "one that fails says which did not" 69 "$digest is pushed to $registry/baked/one:1, $registry/baked/three:1: push 127.0.0.1:1/x:1" \
	hearth bake "$work/p.json" --push 127.0.0.1:1/x:1 --push "$registry/baked/three:1"
same "and the rest is there" "$(seen baked/three:1)" "$digest"

# A tag moves: a bake stays with what it has until it is told to ask.
hearth push "$digest" "$registry/moved/base:1" >/dev/null 2>&1
spec "$work/on.json" "$registry/moved/base:1" "RUN cat /a"
of_another() { HEARTH_DATA=$work/another bake "$work/on.json" "$@"; }
old=$(of_another)
spec "$work/b.json" "$base" "RUN echo moved > /a"
moved=$(bake "$work/b.json")
hearth push "$moved" "$registry/moved/base:1" >/dev/null 2>&1
same "a base whose tag moved stays what it was" "$(of_another)" "$old"
new=$(of_another --pull)
check "--pull takes up where the tag is now" test "$new" != "$old"
holds "so the step sees that image" "$(cat "$work/bake.log")" '^\[1/1\] moved$'
same "which is the base from then on" "$(of_another)" "$new"

# All but the manifest is lost there: who holds the image does not notice.
find "$work/registry" -name data ! -path "*/${digest#sha256:}/*" -delete
same "of what is held nothing is fetched" "$(HEARTH_DATA=$work/fresh hearth pull "$registry/acme/agent:1" 2>/dev/null)" "$digest"
spec "$work/held.json" "$registry/acme/agent:1" "ENV C=d"
check "nor by a bake that asks the registry" env HEARTH_DATA="$work/fresh" "$HEARTH" bake "$work/held.json" --pull

# A registry with a password: me:secret
locked=127.0.0.1:$(free_port)
echo 'me:$2b$04$xjRrvKZIlqeSvUdcoW0bfOsoAeVJGRKZwnp1yfEDJvbKnEZjweGi6' >"$work/htpasswd"
cat >"$work/locked.yml" <<YAML
version: 0.1
log: {level: error, accesslog: {disabled: true}}
auth: {htpasswd: {realm: here, path: $work/htpasswd}}
storage: {filesystem: {rootdirectory: $work/locked}}
http: {addr: "$locked"}
YAML
serve docker-registry serve "$work/locked.yml"
wait_for 60 curl -fsS -u me:secret "http://$locked/v2/"
export DOCKER_CONFIG=$work/docker REGISTRY_AUTH_FILE=$work/auth.json
mkdir "$DOCKER_CONFIG"
to() { hearth push "$digest" "$locked/acme/agent:$1"; }
refused "without a password it is refused" 77 "credentials" to 1
with() { printf '%s\n' "$1" | hearth push "$digest" "$locked/acme/agent:2" --username me --password-stdin; }
refused "with a wrong one, too" 77 "credentials" with wrong
check "with the right one it goes" with secret
echo "{\"auths\": {\"$locked\": {\"auth\": \"bWU6c2VjcmV0\"}}}" >"$DOCKER_CONFIG/config.json"
check "or with that of Docker's file" to 3
mv "$DOCKER_CONFIG/config.json" "$REGISTRY_AUTH_FILE"
check "or of podman's" to 4
rm "$REGISTRY_AUTH_FILE"

echo "{\"auths\": {\"$locked\": {}}, \"credHelpers\": {\"$locked\": \"test\"}}" >"$DOCKER_CONFIG/config.json"
refused "a helper that is not there is named" 75 "docker-credential-test in PATH" to 5
mkdir "$work/bin"
cat >"$work/bin/docker-credential-test" <<'SH'
#!/bin/sh
cat >"${0%/*}/asked"
echo '{"Username": "me", "Secret": "secret"}'
SH
chmod +x "$work/bin/docker-credential-test"
export PATH=$work/bin:$PATH
check "a helper is asked" to 5
same "for the registry" "$(cat "$work/bin/asked")" "$locked"
check "for a pull, too" env HEARTH_DATA="$work/fresh" "$HEARTH" pull "$locked/acme/agent:5"
printf '#!/bin/sh\necho secret; exit 1\n' >"$work/bin/docker-credential-test"
printf '#!/bin/sh\necho "{\\"Username\\": \\"me\\", \\"Secret\\": \\"secret\\"}"\n' >"$work/bin/docker-credential-all"
chmod +x "$work/bin/docker-credential-all"
mv "$DOCKER_CONFIG/config.json" "$work/config.json"
echo '{"credsStore": "all"}' >"$DOCKER_CONFIG/config.json"
check "the one of all registries is asked for one that auths does not list" to 7
echo '{"credsStore": "nowhere"}' >"$DOCKER_CONFIG/config.json"
check "where that is not there, who needs no password goes on" hearth push "$digest" "$registry/acme/agent:7"
mv "$work/config.json" "$DOCKER_CONFIG/config.json"
refused "one that has nothing is no reason to go on without" 77 "docker-credential-test" to 6

# One that has something to say, and nothing to give.
warns=127.0.0.1:$(free_port)
serve python3 -c '
import http.server, sys
class Warns(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.send_response(404)
        self.send_header("Warning", "299 - \"This place moves on Friday\"")
        self.end_headers()
    do_GET = do_HEAD = do_POST = answer
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Warns).serve_forever()' "${warns#*:}"
wait_for 60 curl -sS "http://$warns/"
said=$(hearth pull "$warns/a:1" 2>&1 || true)
same "a registry's warning is told once" "$(grep WARNING <<<"$said")" "[base] WARNING $warns says: This place moves on Friday"
said=$(hearth push "$digest" "$warns/a:1" --progress json 2>&1 || true)
same "to programs and when pushing, too" "$(grep '^{' <<<"$said" | jq -r 'select(.event == "warning").text')" \
	"$warns says: This place moves on Friday"

nothing_left "nothing is left of it"
finish

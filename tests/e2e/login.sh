#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A password that a registry takes is kept where hearth, docker, podman and skopeo find it.
. "$(dirname "$0")/lib.sh"
command -v docker-registry >/dev/null || skip "needs docker-registry"

# me:secret
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
start_registry
export DOCKER_CONFIG=$work/docker XDG_RUNTIME_DIR=$work/runtime
unset REGISTRY_AUTH_FILE
mkdir "$XDG_RUNTIME_DIR"
file=$DOCKER_CONFIG/config.json

login() { printf '%s\n' "$1" | hearth login "${@:2}" --username me --password-stdin; }

# What is wrong is kept nowhere
refused "a wrong password is refused" 77 "refuses these credentials: check" login wrong "$locked"
check "and not kept" test ! -e "$file"
refused "nobody listens there" 69 "login 127.0.0.1:1" login secret 127.0.0.1:1
refused "a path is no registry" 64 "expected HOST" login secret "$locked/acme"
refused "nor is a word" 64 "expected HOST" login secret acme
refused "without a terminal there is nobody to ask" 64 "give --username" hearth login "$locked"
refused "a password needs a name" 64 "needs --username" hearth login "$locked" --password-stdin
refused "an empty one is a script's mistake" 64 "standard input is empty" login "" "$locked"

# What is right is
holds "a right one is kept" "$(login secret "$locked" 2>&1)" "^logged in to $locked: $file$"
same "for its owner alone" "$(stat -c '%a %a' "$file" "$DOCKER_CONFIG" | tr '\n' ' ')" "600 600 700 700 "
bake <(jq -n '{base: "scratch"}') --tag mine:1 >/dev/null
check "a push finds it" hearth push mine:1 "$locked/acme/a:1"
check "skopeo finds it, too" skopeo inspect --tls-verify=false "docker://$locked/acme/a:1"
check "and podman" podman login --get-login --tls-verify=false "$locked"

# The file of somebody else
jq '. + {HttpHeaders: {"X-Mine": "1"}, auths: (.auths + {"other.test": {auth: "eDp5"}})}' "$file" >"$work/theirs"
mkdir "$work/dotfiles"
cp "$work/theirs" "$work/dotfiles/config.json"
chown 1234:1234 "$work/dotfiles/config.json"
ln -sf "$work/dotfiles/config.json" "$file"
said=$(login secret "$registry" --json 2>/dev/null)
same "programs hear of it, too" "$(jq -cS . <<<"$said")" \
	"{\"files\":[\"$work/dotfiles/config.json\"],\"registry\":\"$registry\",\"user\":\"me\"}"
same "what is not ours stays" "$(jq -S 'del(.auths[$a])' --arg a "$registry" "$file")" "$(jq -S . "$work/theirs")"
check "a link stays one" test -L "$file"
same "its file stays its owner's" "$(stat -c '%u %a' "$work/dotfiles/config.json")" "1234 600"
same "nothing else is left there" "$(ls -A "$work/dotfiles")" config.json
holds "a registry that asks for none is told of" "$(login secret "$registry" 2>&1)" "kept unchecked"
echo '{"auths": [' >"$work/dotfiles/config.json"
refused "a file that is no JSON stays as it is" 64 "config.json: it is not JSON" login secret "$locked"
same "byte by byte" "$(cat "$work/dotfiles/config.json")" '{"auths": ['
cp "$work/theirs" "$work/dotfiles/config.json"
login secret "localhost:${registry#*:}" >/dev/null 2>&1 &
login secret "$registry" >/dev/null 2>&1
wait $!
same "of two who come at once neither is lost" "$(jq -c '.auths | keys' "$file")" \
	"$(jq -nc '$ARGS.positional | sort' --args "$locked" "$registry" "localhost:${registry#*:}" other.test)"

# podman's file
export REGISTRY_AUTH_FILE=$work/podman/auth.json
login secret "$locked" >/dev/null 2>&1
check "where podman's file is named, it is there, too" jq -e '.auths[$a].auth' --arg a "$locked" "$REGISTRY_AUTH_FILE"
hearth logout "$locked" 2>"$work/out"
same "a logout forgets it everywhere" "$(cat "$file" "$REGISTRY_AUTH_FILE" | grep -cF "$locked" || true)" 0
same "and says where" "$(wc -l <"$work/out")" 2
refused "a push is refused then, and says what to do" 77 "hearth login" hearth push mine:1 "$locked/acme/a:2"
holds "who is not logged in is told so" "$(hearth logout "$locked" 2>&1)" "^not logged in to $locked$"
check "one file can be named" login secret "$locked" --authfile "$work/own.json"
same "and is the only one then" "$(cat "$file" "$REGISTRY_AUTH_FILE" | grep -cF "$locked" || true)" 0
hearth logout "$locked" --authfile "$work/own.json" 2>/dev/null
same "and can be cleared" "$(jq -c .auths "$work/own.json")" '{}'
unset REGISTRY_AUTH_FILE

# A helper keeps them instead
mkdir "$work/bin"
cat >"$work/bin/docker-credential-shelf" <<'SH'
#!/bin/sh
shelf=${0%/*}/shelf
case $1 in
store) cat >"$shelf" ;;
get) cat "$shelf" ;;
erase) rm "$shelf" ;;
esac
SH
chmod +x "$work/bin/docker-credential-shelf"
rm "$file"
jq -n --arg a "$locked" '{credHelpers: {($a): "shelf"}, auths: {($a): {auth: "eDp5"}}}' >"$file"
refused "a helper that is missing is named" 75 "docker-credential-shelf in PATH" login secret "$locked"
export PATH=$work/bin:$PATH
holds "a helper is given what it keeps" "$(login secret "$locked" 2>&1)" ": docker-credential-shelf$"
same "in its own form" "$(jq -cS . "$work/bin/shelf")" "{\"Secret\":\"secret\",\"ServerURL\":\"$locked\",\"Username\":\"me\"}"
same "and the file has nothing of it" "$(jq -c '.auths[$a]' --arg a "$locked" "$file")" '{}'
check "a push asks it" hearth push mine:1 "$locked/acme/a:3"
check "a logout is told to it, too" hearth logout "$locked"
check "so that it has nothing" test ! -e "$work/bin/shelf"

# A daemon of ours: the password is a token
rm "$file"
start_daemon
ours=${url#http://}
hearth tag mine:1 localhost/mine:1
reader=$(hearth token create --scope pull:mine 2>/dev/null)
refused "a daemon refuses what is no token" 77 "refuses these credentials" login hth_wrong "$ours"
check "and takes one, with any name" login "$reader" "$ours"
same "by which tags are listed" "$(hearth tags "$ours/mine")" 1
same "by skopeo, too" "$(skopeo list-tags --tls-verify=false "docker://$ours/mine" | jq -r '.Tags[]')" 1
HEARTH_DATA=$work/fresh check "and images are pulled" hearth copy "$ours/mine:1" "oci:$work/pulled"
refused "of what it is good for alone" 77 "denied" hearth tags "$ours/other"
stop_daemon

finish

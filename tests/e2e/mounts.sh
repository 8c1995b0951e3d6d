#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# RUN --mount: caches, secrets and tmpfs, of which nothing stays in an image.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)

# One RUN on the tiny base.
run() # STEP [ARGUMENT...]
{
	local step=$1
	shift
	spec "$work/run.json" "$base" "$step"
	hearth bake "$work/run.json" --progress plain "$@" 2>&1
}

files() # IMAGE: the names that its layers above the base have
{
	rm -rf "$work/out"
	hearth bake "$work/run.json" "${given[@]}" --output "oci:$work/out" >/dev/null 2>&1
	python3 - "$work/out" <<'PY'
import json, subprocess, sys, tarfile, io, os
out = sys.argv[1]
def blob(d): return os.path.join(out, "blobs", *d.split(":"))
index = json.load(open(os.path.join(out, "index.json")))
manifest = json.load(open(blob(index["manifests"][0]["digest"])))
for layer in manifest["layers"][1:]:
    data = subprocess.run(["zstd", "-dc", blob(layer["digest"])], stdout=subprocess.PIPE, check=True).stdout
    for entry in tarfile.open(fileobj=io.BytesIO(data)):
        print(entry.name)
PY
}
given=()

# --- tmpfs
holds "a tmpfs is there, and of its size" "$(run 'RUN --mount=type=tmpfs,target=/scratch,size=1m dd if=/dev/zero of=/scratch/x bs=1M count=2 2>&1 | tail -n 1; ls -l /scratch/x | (read m l u g s r; echo "has $s")')" 'has 1048576'
same "and neither it nor its target is in the image" "$(files)" ""
holds "so does one on /dev/shm" "$(run 'RUN --mount=type=tmpfs,target=/dev/shm,size=256m df -k /dev/shm')" ' 262144 '
check "a target whose parents are missing works too" run 'RUN --mount=type=tmpfs,target=/a/b/c touch /a/b/c/x && touch /beside'
same "and stays nowhere, while what is written beside does" "$(files)" "beside"
holds "WORKDIR and variables make the target" \
	"$(spec "$work/run.json" "$base" "WORKDIR /w" "ENV D=deep" "RUN --mount=type=tmpfs,target=\$D/x touch /w/deep/x/y && echo written"
	hearth bake "$work/run.json" --progress plain 2>&1)" written

# --- caches
run 'RUN --mount=type=cache,target=/root/.cache echo one >>/root/.cache/log' >/dev/null
holds "a cache outlives its step" "$(run 'RUN --mount=type=cache,target=/root/.cache cat /root/.cache/log')" '\bone$'
same "and is in no layer" "$(files)" ""
holds "its id is its target, cleaned" "$(run 'RUN --mount=type=cache,target=/root/../root/.cache/ cat /root/.cache/log; true')" '\bone$'
holds "an id names it anywhere" "$(run 'RUN --mount=type=cache,id=/root/.cache,target=/elsewhere cat /elsewhere/log')" '\bone$'
holds "another id is another one" "$(run 'RUN --mount=type=cache,id=other,target=/c,mode=1770,uid=7,gid=8 ls -dn /c | (read m l u g r; echo $m $u $g); ls /c | wc -l')" 'drwxrwx--T 7 8'
holds "what is in it does not make a step run again" "$(run 'RUN --mount=type=cache,target=/root/.cache cat /root/.cache/log')" CACHED
refused "a read-only one cannot be written to" 1 'exit code 9' run 'RUN --mount=type=cache,id=/root/.cache,target=/c,ro touch /c/x || exit 9'

# Two steps that want one cache for themselves: the second one waits.
# shellcheck disable=SC2016 # the shell of the step expands
spec "$work/hold.json" "$base" 'RUN --mount=type=cache,id=l,target=/c,sharing=locked touch /c/held; echo held; while [ ! -e /c/go ]; do sleep 0.05; done; rm /c/held'
spec "$work/late.json" "$base" 'RUN --mount=type=cache,id=l,target=/c,sharing=locked [ ! -e /c/held ] && echo alone'
spec "$work/peek.json" "$base" 'RUN --mount=type=cache,id=l,target=/c,sharing=private [ ! -e /c/held ] && echo private'
"$HEARTH" bake "$work/hold.json" --progress plain >"$work/hold.log" 2>&1 &
holder=$!
wait_for 60 grep -q '\] held' "$work/hold.log"
"$HEARTH" bake "$work/late.json" --progress plain >"$work/late.log" 2>&1 &
late=$!
check "a locked cache is waited for, and the log says so" \
	wait_for 60 grep -q 'waiting for the cache l, which another step is using' "$work/late.log"
holds "a private one is another one meanwhile" "$(hearth bake "$work/peek.json" --progress plain 2>&1)" '\] private'
kill -INT "$late"
status=0
wait "$late" || status=$?
same "a cancel ends the waiting" "$status" 130
check "which the one that has it does not notice" kill -0 "$holder"
"$HEARTH" bake "$work/late.json" --progress plain >"$work/late.log" 2>&1 &
late=$!
wait_for 60 grep -q 'waiting for the cache' "$work/late.log"
cache=$(dirname "$(compgen -G "$HEARTH_DATA/caches/*/data/held")")
touch "$cache/go"
status=0
wait "$holder" || status=$?
same "the first one ends" "$status" 0
rm "$cache/go"
wait "$late" || status=$?
same "then the next one has it alone" "$status" 0

# A bake that is killed while its step holds one.
"$HEARTH" bake "$work/hold.json" --no-cache --progress plain >"$work/hold.log" 2>&1 &
holder=$!
wait_for 60 grep -q '\] held' "$work/hold.log"
kill -KILL "$holder"
wait "$holder" 2>/dev/null || true
nothing_left "a killed bake leaves nothing"
rm -f "$cache/held"
holds "and no lock" "$(timeout 30 "$HEARTH" bake "$work/late.json" --no-cache --progress plain 2>&1)" '\] alone'

# --- secrets
secret=hearth-e2e-$$-$RANDOM$RANDOM
printf '%s' "$secret" >"$work/token"
export E2E_TOKEN=$secret
sum=$(printf '%s' "$secret" | sha256sum | cut -d' ' -f1) # a step's text is in a record
given=(--secret "id=token,src=$work/token")
holds "a secret is a file of mode 0400 below /run/secrets" \
	"$(run 'RUN --mount=type=secret,id=token wc -c </run/secrets/token; ls -ln /run/secrets/token | (read m l u g r; echo $m $u $g)' "${given[@]}")" '^.*-r-------- 0 0'
same "of which the image has nothing" "$(files)" ""
holds "a changed value runs nothing anew" \
	"$(run 'RUN --mount=type=secret,id=token wc -c </run/secrets/token; ls -ln /run/secrets/token | (read m l u g r; echo $m $u $g)' --secret id=token,env=HOME)" CACHED
step='RUN --mount=type=secret,id=token,cache=value wc -c </run/secrets/token'
run "$step" "${given[@]}" >/dev/null
holds "with cache=value the same one runs nothing" "$(run "$step" "${given[@]}")" CACHED
holds "another one runs the step" "$(run "$step" --secret id=token,env=HOME)" '\] 5$'
holds "and so does none" "$(run "$step" 2>&1 || true)" "can't open"
holds "the first one's result is kept" "$(run "$step" "${given[@]}")" CACHED
holds "why says what differs" "$(printf other | hearth why "$work/run.json" 1 --secret id=token,src=/dev/stdin)" 'secrets: was sha256:'
check "its file may be anywhere, whose it is said" run 'RUN --mount=type=secret,id=token,target=/root/.netrc,mode=0440,uid=5 [ "$(stat -c %a:%u /root/.netrc)" = 440:5 ]' "${given[@]}"
same "and that goes, too" "$(files)" ""
check "as a variable it wins over ENV" run "RUN --mount=type=secret,id=token,env=HOME printf %s \"\$HOME\" | sha256sum | grep $sum && [ ! -e /run/secrets ]" "${given[@]}"
check "from a variable" run "RUN --mount=type=secret,id=t sha256sum /run/secrets/t | grep $sum" --secret id=t,env=E2E_TOKEN
check "by an id alone" run "RUN --mount=type=secret,id=E2E_TOKEN sha256sum /run/secrets/E2E_TOKEN | grep $sum" --secret id=E2E_TOKEN
check "one that nobody gave is not there" run 'RUN --mount=type=secret,id=absent [ ! -e /run/secrets ]'
refused "unless it is required" 66 'the secret absent is required: give --secret' run 'RUN --mount=type=secret,id=absent,required true'
check "what is cached needs none" run 'RUN --mount=type=secret,id=absent [ ! -e /run/secrets ]'
jq -n --arg base "$base" '{base: $base, steps: [], secrets: [{id: "absent", required: true}]}' >"$work/needs.json"
refused "a spec may require one, whatever is cached" 66 'absent is required by the spec' hearth bake "$work/needs.json"
refused "a file that is not there" 66 'No such file' run 'RUN true' --secret "id=x,src=$work/nowhere"
refused "a variable that is not set" 66 'E2E_NOWHERE is not set' run 'RUN true' --secret id=x,env=E2E_NOWHERE
refused "one id twice" 64 'given twice' run 'RUN true' --secret id=x,env=HOME --secret id=x,env=HOME
head -c 1048577 /dev/zero >"$work/large"
refused "more than a MiB" 65 'secret' run 'RUN true' --secret "id=x,src=$work/large"
head -c 1048576 /dev/zero >"$work/large"
holds "a MiB, of any bytes" "$(run 'RUN --mount=type=secret,id=x wc -c </run/secrets/x' --secret "id=x,src=$work/large")" 1048576
refused "but no variable is made of them" 64 'is no text' run 'RUN --mount=type=secret,id=x,env=X true' --secret "id=x,src=$work/large"

# The value is what a step tells nobody: it is in no file of ours.
absent()
{
	! grep -rqFf "$work/token" "$HEARTH_DATA" /run /tmp/hearth* 2>/dev/null &&
		! grep -rqF "$(od -An -v -tx1 "$work/token" | tr -d ' \n')" "$HEARTH_DATA" # a short log is kept as hex
}
hashed() # what anybody could make of a guess; $sum itself is in steps above
{
	local raw
	raw=$(printf %s "$sum" | sed 's/../\\x&/g')
	! LC_ALL=C grep -rqaP "$raw" "$HEARTH_DATA"
}
run "RUN --mount=type=secret,id=token,env=T --mount=type=secret,id=token,target=/t cat /t >/dev/null; exit 3" "${given[@]}" >/dev/null || true
spec "$work/printed.json" "$base" "RUN --mount=type=secret,id=token cat /run/secrets/token; echo; exit 3"
refused "what a step prints of a secret is not shown" 1 '[*][*][*]' hearth bake "$work/printed.json" "${given[@]}"
check "no secret is in the data directory, its logs and records included" absent
check "nor a hash of one that anybody could make" hashed
spec "$work/hold.json" "$base" 'RUN --mount=type=secret,id=token --mount=type=secret,id=token,env=T echo started; sleep 600'
"$HEARTH" bake "$work/hold.json" --progress plain "${given[@]}" >"$work/hold.log" 2>&1 &
holder=$!
wait_for 60 grep -q '\] started' "$work/hold.log"
told()
{
	! cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -qFf "$work/token"
}
check "nor is it while the step runs" absent
check "nor an argument of any process" told
kill -TERM "$holder"
wait "$holder" || true

# --- binds
mkdir -p "$work/context/src/deep"
echo one >"$work/context/src/a"
echo two >"$work/context/src/deep/b"
chmod 700 "$work/context/src/deep"
chown 4242:4242 "$work/context/src/a"
echo alone >"$work/context/file"
echo hidden >"$work/context/hidden"
echo hidden >"$work/context/.dockerignore"
given=(--context "$work/context")
step='RUN --mount=source=src,target=/mnt/src cat /mnt/src/a /mnt/src/deep/b; ls -n /mnt/src/a | (read m l u g r; echo "$u:$g"); touch /mnt/src/x 2>&1 || ls -ld /mnt/src/deep'
holds "a directory of the context is there, and root's" "$(run "$step" "${given[@]}")" '\] 0:0'
same "but not in the image" "$(files)" ""
holds "it is read-only" "$(run "$step # again" "${given[@]}")" 'Read-only file system'
holds "what has not changed does not run again" "$(run "$step" "${given[@]}")" CACHED
touch "$work/context/src/a" "$work/context/other"
holds "nor for a time, or for what is not mounted" "$(run "$step" "${given[@]}")" CACHED
echo three >"$work/context/src/a"
holds "what has changed does" "$(run "$step" "${given[@]}")" '\] three'
chmod 755 "$work/context/src/deep"
holds "a mode counts" "$(run "$step" "${given[@]}")" '\] drwxr-xr-x'
chmod 711 "$work/context/src"
holds "the one of the source itself, too" "$(run 'RUN --mount=source=src,target=/x stat -c "%a %u:%g" /x' "${given[@]}")" '\] 711 0:0'
check "what is written to one that is rw" run 'RUN --mount=source=src,target=/src,rw echo x >/src/a && rm -r /src/deep && touch /src/new' "${given[@]}"
same "is in no image" "$(files)" ""
same "and not in the context" "$(cd "$work/context/src" && cat a deep/b && ls)" "$(printf 'three\ntwo\na\ndeep')"
holds "a file is mounted as one" "$(run 'RUN --mount=src=file,dst=/etc/file.conf cat /etc/file.conf' "${given[@]}")" '\] alone'
same "of which nothing stays, either" "$(files)" ""
holds "all of the context, without what .dockerignore hides" "$(run 'RUN --mount=target=/ctx ls -a /ctx' "${given[@]}")" '\] file$'
check "as it is hidden" run 'RUN --mount=target=/ctx [ ! -e /ctx/hidden ]' "${given[@]}"
refused "a source that is missing" 66 'nowhere' run 'RUN --mount=source=nowhere,target=/x true' "${given[@]}"
refused "a mount of no context" 64 'a bind mount needs a context' run 'RUN --mount=source=src,target=/x true'
refused "a file on a directory" 65 'a file cannot be mounted there' run 'RUN --mount=source=file,target=/bin true' "${given[@]}"
refused "from a variable" 65 'variables are not expanded in from' run 'RUN --mount=from=$X,target=/x true'
check "a name with a wildcard is a name" eval 'echo w >"$work/context/[a]*" && run "RUN --mount=source=[a]*,target=/w cat /w" "${given[@]}"'
given=()
step="RUN --mount=from=$base,source=bin,target=/other ls -n /other/busybox; touch /other/x 2>&1; [ ! -e /other/y ] # $RANDOM"
holds "an image's directory is there, with its owners" "$(run "$step")" ' 0 +0 .*/other/busybox'
same "and not in the image" "$(files)" ""
holds "and runs once" "$(run "$step")" CACHED
spec "$work/door.json" "$base" 'RUN mkdir /door && echo in >/door/in && chown 3:4 /door && chmod 1751 /door'
bake "$work/door.json" --tag door:1 >/dev/null
holds "it is itself, with its own mode and owner" \
	"$(run 'RUN --mount=from=door:1,source=door,target=/x stat -c "%a %u:%g" /x')" '\] 1751 3:4'
step='RUN --mount=type=cache,id=seeded,from=door:1,source=door,target=/x stat -c "%a %u:%g" /x; cat /x/in; echo more >/x/in; [ ! -e /x/y ]'
holds "what fills a new cache is an image's directory" "$(run "$step")" '\] in$'
same "of which the image has nothing" "$(files)" ""
holds "as it is there" "$(run 'RUN --mount=type=cache,id=seeded,target=/x stat -c "%a %u:%g" /x')" '\] 1751 3:4'
holds "one that is there is not filled again" "$(run "$step # again")" '\] more$'
refused "a file fills none" 64 'is no directory' run 'RUN --mount=type=cache,id=seeded2,from=door:1,source=door/in,target=/x true'
holds "and leaves none half made" "$(run 'RUN --mount=type=cache,id=seeded2,from=door:1,source=door,target=/x cat /x/in')" '\] in$'
check "all of an image, to be written to, beside the context" run "RUN --mount=from=$base,target=/all,rw --mount=source=file,target=/f [ -x /all/bin/busybox ] && rm /all/bin/busybox && cat /f" --context "$work/context"
refused "a source that the image does not have" 66 'nowhere' run "RUN --mount=from=$base,source=nowhere,target=/x true"
refused "an image that is not there" 66 '.' run 'RUN --mount=from=oci:/nonexistent:x,target=/x true'

refused "an agent's socket is no mount, and what to do is said" 65 'type=ssh is refused.*--secret id=key,src=FILE' run 'RUN --mount=type=ssh git clone x'
refused "a target in /proc" 65 'nothing is mounted in /proc, /sys and /dev' run 'RUN --mount=type=tmpfs,target=/proc/x true'

# --- what else a RUN's environment has
mkdir "$work/docker"
proxies() # HOST
{
	jq -n --arg url "http://$1:3128" '{proxies: {default: {httpProxy: $url, noProxy: "a.test"}}}' >"$work/docker/config.json"
}
spec "$work/proxied.json" "$base" "ENV NO_PROXY=own" "RUN env | grep -i _proxy | sort"
proxied() # what the RUN says of it
{
	DOCKER_CONFIG=$work/docker hearth bake "$work/proxied.json" --progress plain --output "oci:$work/proxied" 2>&1
}
proxies one.test
same "Docker's proxies are there, and the image's word goes first" "$(proxied | sed -n 's/^\[2\/2\] \(.*=.*\)/\1/p' | paste -sd ' ')" \
	"HTTP_PROXY=http://one.test:3128 NO_PROXY=own http_proxy=http://one.test:3128 no_proxy=a.test"
check "and in nothing that is kept" test -z "$(skopeo inspect --config "oci:$work/proxied" | grep one.test; hearth why "$work/proxied.json" 2 --json | grep one.test)"
proxies two.test
holds "another proxy runs nothing anew" "$(proxied)" '^\[2/2\] CACHED'
echo '{"proxies": []}' >"$work/docker/config.json"
refused "what is no proxy is named" 64 'docker/config.json: proxies: expected an object' proxied

nothing_left "nothing is left"
finish

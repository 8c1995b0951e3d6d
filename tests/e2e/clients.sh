#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clients.sh - podman, buildah, skopeo, Docker and containerd log in, push, pull, mount and delete at hearth, and pull
# through it by the files of examples/mirror. All of them, their stores and daemons, are this case's own.
. "$(dirname "$0")/lib.sh"
for program in podman buildah skopeo dockerd containerd ctr docker-registry; do
	command -v "$program" >/dev/null || skip "needs $program"
done

# What is of examples/mirror, with this case's address and upstream.
example() # FILE
{
	sed "s/127\.0\.0\.1:7460/$at/g" "$root/examples/mirror/$1"
}

# An image of another registry: its host is docker.io, as hearth is told.
start_registry
"$here/image.py" --env FROM=upstream "$work/upstream:latest" tiny >/dev/null
push "$work/upstream:latest" library/busybox:1
upstream=$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$registry/library/busybox:1")

at=127.0.0.1:$(free_port)
example hearth.json | jq --arg url "http://$registry" '.mirror.upstreams["docker.io"].url = $url' >"$work/hearth.json"
listen=$at start_daemon --config "$work/hearth.json" --host hearth.test
export DOCKER_CONFIG=$work/docker REGISTRY_AUTH_FILE=$work/auth.json CONTAINERS_REGISTRIES_CONF=$work/registries.conf
export TMPDIR=$work/tmp
mkdir "$DOCKER_CONFIG" "$TMPDIR"
example registries.conf >"$CONTAINERS_REGISTRIES_CONF"
own_storage

# Baked here, and pulled by its name.
spec "$work/a.json" "$(tiny_base)" "RUN echo baked > /a" "ENV A=b"
baked=$(bake "$work/a.json" --tag localhost/baked/one:1)

# podman, skopeo and buildah.
skopeo=(skopeo --insecure-policy --registries-conf "$work/registries.conf")
buildah()
{
	command buildah --registries-conf "$work/registries.conf" "$@"
}
refused "without a login nothing is shown" 1 "unauthorized|authentication required" "${skopeo[@]}" inspect "docker://$at/baked/one:1"
refused "a wrong password is refused" 125 "invalid username/password|unauthorized" \
	bash -c "echo hth_wrong | podman login -u me --password-stdin $at"
check "podman logs in" bash -c "podman login -u me --password-stdin $at <<<'$token'"
same "skopeo finds what was baked" "$("${skopeo[@]}" inspect --format '{{.Digest}}' "docker://$at/baked/one:1")" "$baked"
same "and its tags" "$("${skopeo[@]}" list-tags "docker://$at/baked/one" | jq -c .Tags)" '["1"]'
check "podman pulls it" "${podman[@]}" pull -q "$at/baked/one:1"
holds "and has its environment" "$("${podman[@]}" image inspect --format '{{.Config.Env}}' "$at/baked/one:1")" ' A=b]$'
check "podman pushes it under another name" "${podman[@]}" push -q "$at/baked/one:1" "$at/podman/one:1"
same "hearth lists that" "$(hearth images | grep -c "localhost/podman/one:1 ")" 1
check "buildah pulls it" buildah from -q --name two "$at/podman/one:1"
buildah config --env C=d two
buildah commit -q two "$at/buildah/two:1" >/dev/null
buildah rm two >/dev/null
check "and pushes one that stands on it" buildah push -q "$at/buildah/two:1"
holds "which is there" "$("${skopeo[@]}" inspect --config "docker://$at/buildah/two:1" | jq -c .config.Env)" '"A=b","C=d"'
check "a bake stands on it" bake <(jq -n --arg b "$at/buildah/two:1" '{base: $b, steps: ["RUN cat /a"]}')
check "skopeo copies across repositories" "${skopeo[@]}" copy -q "docker://$at/baked/one:1" "docker://$at/copied/one:1"
same "and the copy is the same" "$("${skopeo[@]}" inspect --format '{{.Digest}}' "docker://$at/copied/one:1")" "$baked"
check "skopeo deletes it" "${skopeo[@]}" delete "docker://$at/copied/one:1"
refused "after which it is gone" 1 "manifest unknown" "${skopeo[@]}" inspect "docker://$at/copied/one:1"
same "and what it was copied from is not" "$("${skopeo[@]}" inspect --format '{{.Digest}}' "docker://$at/baked/one:1")" "$baked"

# All platforms of an image.
buildah manifest create many >/dev/null
for machine in amd64 arm64; do
	"$here/image.py" --arch "$machine" "$work/many-$machine:latest" tiny >/dev/null
	buildah manifest add many "oci:$work/many-$machine:latest" >/dev/null
done
check "buildah pushes an index and all that it leads to" buildah manifest push -q --all many "docker://$at/many:1"
check "skopeo copies all of it" "${skopeo[@]}" copy -q --all "docker://$at/many:1" "docker://$at/many/copy:2"
check "and takes all of it away" "${skopeo[@]}" copy -q --all "docker://$at/many/copy:2" "oci:$work/many:2"
same "for both machines" "$("${skopeo[@]}" inspect --raw "oci:$work/many:2" | jq -c '[.manifests[].platform.architecture]')" '["amd64","arm64"]'
podman logout "$at" >/dev/null

# Docker, which knows gzip alone before its version 23, and containerd.
serve containerd --config /dev/null --root "$work/containerd" --state "$work/containerd.run" --address "$work/containerd.sock"
example daemon.json >"$work/daemon.json"
serve dockerd --config-file "$work/daemon.json" --host "unix://$work/docker.sock" --containerd "$work/containerd.sock" \
	--data-root "$work/docker.root" --exec-root "$work/docker.run" --pidfile "$work/docker.pid" --storage-driver vfs \
	--bridge none --iptables=false --ip6tables=false
docker=(/usr/bin/docker --host "unix://$work/docker.sock")
ctr=(ctr --address "$work/containerd.sock")
wait_for 120 "${docker[@]}" version || { tail -n 20 "$work/servers.log"; exit 1; }

check "docker pulls through its mirror, which needs no login" "${docker[@]}" pull -q busybox:1
same "what the other registry has" "$("${docker[@]}" image inspect --format '{{index .RepoDigests 0}}' busybox:1)" "busybox@$upstream"
push "$work/upstream:latest" library/busybox:hub
jq -n '{auths: {"https://index.docker.io/v1/": {auth: ("hub:secret" | @base64)}}}' >"$DOCKER_CONFIG/config.json"
check "also where it is logged in at the Hub, whose password it shows" "${docker[@]}" pull -q busybox:hub
rm "$DOCKER_CONFIG/config.json"
refused "nor is what is baked given without one" 1 "no basic auth credentials|denied|unauthorized" \
	"${docker[@]}" pull -q "$at/baked/one:1-gzip"
refused "a wrong password is refused, too" 1 "unauthorized|denied" bash -c "echo hth_wrong | ${docker[*]} login -u me --password-stdin $at"
check "docker logs in" bash -c "${docker[*]} login -u me --password-stdin $at <<<'$token'"
check "and pulls what was baked, as gzip" "${docker[@]}" pull -q "$at/baked/one:1-gzip"
holds "which has the environment" "$("${docker[@]}" image inspect --format '{{.Config.Env}}' "$at/baked/one:1-gzip")" ' A=b]$'
check "it names it anew" "${docker[@]}" tag "$at/baked/one:1-gzip" "$at/docker/three:1"
said=$("${docker[@]}" push "$at/docker/three:1" 2>&1 || true)
holds "and pushes it by mounts" "$said" 'Mounted from baked/one'
pushed=$(grep -oE 'sha256:[0-9a-f]{64}' <<<"$said" | tail -n 1)
same "under the digest that it says" "$(curl -sSI -u "me:$token" "http://$at/v2/docker/three/manifests/1" | tr -d '\r' |
	sed -n 's/^Docker-Content-Digest: //Ip')" "$pushed"
check "who logs out" "${docker[@]}" logout "$at"
refused "pulls no more" 1 "no basic auth credentials|denied|unauthorized" "${docker[@]}" pull -q "$at/docker/three:1"

login=(--plain-http --user "me:$token")
check "containerd pulls what was baked, and unpacks zstd" "${ctr[@]}" images pull "${login[@]}" "$at/baked/one:1"
check "it names it anew, too" "${ctr[@]}" images tag "$at/baked/one:1" "$at/ctr/four:1"
check "and pushes it" "${ctr[@]}" images push "${login[@]}" "$at/ctr/four:1"
same "as it was baked" "$(hearth inspect localhost/ctr/four:1 --json | jq -r .digest)" "$baked"
mkdir -p "$work/certs.d/docker.io"
example hosts.toml >"$work/certs.d/docker.io/hosts.toml"
check "it pulls through the mirror of its hosts.toml" "${ctr[@]}" images pull --hosts-dir "$work/certs.d" docker.io/library/busybox:1
same "what the other registry has" "$("${ctr[@]}" images ls name==docker.io/library/busybox:1 | awk 'NR == 2 {print $3}')" "$upstream"
mkdir "$work/certs.d/other.example"
printf 'server = "http://%s"\n[host."http://%s"]\n' "$registry" "$at" >"$work/certs.d/other.example/hosts.toml"
check "it is not held up where that stands for another one" \
	"${ctr[@]}" images pull --hosts-dir "$work/certs.d" other.example/library/busybox:1
mkdir "$work/certs.d/hearth.test"
echo "[host.\"http://$at\"]" >"$work/certs.d/hearth.test/hosts.toml"
check "and what is baked, by a name of the daemon's" \
	"${ctr[@]}" images pull --hosts-dir "$work/certs.d" --user "me:$token" hearth.test/baked/one:1

check "podman pulls through the mirror of its registries.conf" "${podman[@]}" pull -q docker.io/library/busybox:1
same "what the other registry has" "$("${podman[@]}" image inspect --format '{{.Digest}}' docker.io/library/busybox:1)" "$upstream"
kill "${servers[0]}"
wait "${servers[0]}" || true
same "and after that registry is gone, too" \
	"$("${skopeo[@]}" inspect --no-tags --format '{{.Digest}}' docker://docker.io/library/busybox:1)" "$upstream"
refused "a mirrored name is not pushed to" 1 "denied" \
	"${skopeo[@]}" copy -q --dest-creds "me:$token" "oci:$work/upstream:latest" "docker://$at/docker.io/library/busybox:2"

stop_daemon
nothing_left "nothing is left over"
finish

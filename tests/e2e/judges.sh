#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What hearth exports, read by umoci, podman and skopeo, is file by file what
# buildah makes of the same steps.
. "$(dirname "$0")/lib.sh"

# A base of three layers: busybox; two programs with their libraries; things to change.
mkdir -p "$work/things/opt/dir/deep" "$work/things/opt/many" "$work/context/tree/sub"
ln -s dir "$work/things/opt/link"
touch "$work/things/opt/file" "$work/things/opt/dir/"{a,b,deep/c} "$work/things/opt/many/"{1,2,3}
tar -C "$work/things" --owner 0 --group 0 --format pax -czf "$work/things.tar.gz" opt
mapfile -t libraries < <(ldd "$(command -v setcap)" "$(command -v setfattr)" | grep -o '/[^ :]*\.so[^ :]*' | sort -u)
mkdir -p "$work/programs/bin"
cp -L "$(command -v setcap)" "$(command -v getcap)" "$(command -v setfattr)" "$work/programs/bin"
cp -L --parents "${libraries[@]}" "$work/programs"
tar -C "$work/programs" --owner 0 --group 0 -cf "$work/programs.tar" .
"$here/image.py" "$work/base:latest" tiny "$work/programs.tar" "$work/things.tar.gz" >/dev/null
echo content >"$work/context/plain"
echo script >"$work/context/tree/run.sh"
chmod 750 "$work/context/tree/run.sh" "$work/context/tree/sub"
ln -s run.sh "$work/context/tree/link"
echo deep >"$work/context/tree/sub/deep"
cp "$(command -v busybox)" "$work/context/capable"
setcap cap_net_raw+ep "$work/context/capable"

steps=(
	"RUN mkdir -p /srv/a/b && echo one > /srv/a/one && echo two > /srv/a/b/two && ln /srv/a/one /srv/a/hard && chmod 4755 /srv/a/one && ln -s one /srv/a/soft && ln -s /nowhere /srv/a/dangling"
	"RUN chmod 1777 /srv/a/b && chown 1000:1000 /srv/a/b/two && chown -h nobody:nogroup /srv/a/soft && setfattr -n user.note -v kept /srv/a/b"
	"RUN cp /bin/busybox /srv/cap && setcap cap_net_raw+ep /srv/cap && mkfifo /srv/fifo && truncate -s 3M /srv/sparse && (echo a; head -c 70000 /bin/busybox) > /srv/holes && truncate -s 3M /srv/holes && head -c 5000 /bin/busybox >> /srv/holes && truncate -s 7M /srv/holes"
	"RUN chown 65534:65534 /srv/sparse && chmod 0 /srv/fifo && getcap /srv/cap | grep -q cap_net_raw"
	"RUN rm -rf /home && mkdir /home && echo new > /home/new"
	"RUN rm -rf /opt/dir && ln -s many /opt/dir"
	"RUN rm /opt/link && mkdir /opt/link && echo in > /opt/link/in"
	"RUN rm /opt/file /opt/many/2 && mv /opt/many/3 /opt/many/three && chmod 700 /opt"
	"RUN touch /opt/\$(printf 'caf\\351') /opt/\$(printf 'n%.0s' \$(seq 255)) && d=/opt && for i in 1 2 3 4 5 6; do d=\$d/\$(printf 'long%.0s' \$(seq 20)); mkdir \$d; done && echo end > \$d/end"
	"RUN true"
	"ENV GREETING=hello TWO=\"a b\""
	"COPY plain /copied/\$GREETING"
	"COPY --chown=1000:1000 --chmod=640 plain /copied/owned"
	"COPY tree /copied/tree/"
	"COPY --chown=1000 capable /copied/capable"
	"WORKDIR /made/here"
	"RUN echo \"\$TWO\" > relative"
)
spec "$work/spec.json" "oci:$work/base:latest" "${steps[@]}"
{ echo "FROM localhost/judge-base" && printf '%s\n' "${steps[@]}"; } >"$work/Containerfile"

digest=$(bake "$work/spec.json" --context "$work/context" --output "oci:$work/image:latest")
holds "the steps make an image" "$digest" '^sha256:'

own_storage
skopeo --insecure-policy copy -q "oci:$work/base:latest" containers-storage:localhost/judge-base
buildah bud -q --layers --network host -t judge -f "$work/Containerfile" "$work/context" >"$work/buildah.log" 2>&1 ||
	{ cat "$work/buildah.log"; not_ok "buildah builds the same steps"; finish; }
container=$(buildah from judge)
listing "$(buildah mount "$container")" >"$work/of-buildah"

unpack "$work/image:latest" "$work/bundle"
listing "$work/bundle/rootfs" >"$work/of-umoci"
image=$("${podman[@]}" pull -q "oci:$work/image:latest" | tail -n 1)
listing "$("${podman[@]}" image mount "$image")" >"$work/of-podman"

check "it is more than a few names" test "$(wc -l <"$work/of-buildah")" -gt 300
same "umoci sees what buildah made" "$(cat "$work/of-umoci")" "$(cat "$work/of-buildah")"
same "podman sees what buildah made" "$(cat "$work/of-podman")" "$(cat "$work/of-buildah")"
same "skopeo names the digest that hearth did" "$(skopeo inspect "oci:$work/image:latest" | jq -r .Digest)" "$digest"
ours=$(skopeo inspect --config "oci:$work/image:latest")
theirs=$(buildah inspect --type image judge | jq .OCIv1)
for field in .config.Env .config.WorkingDir .architecture .os; do
	same "config: $field is buildah's" "$(jq -cS "$field" <<<"$ours")" "$(jq -cS "$field" <<<"$theirs")"
done
same "history has an entry a step" "$(jq '.history | length' <<<"$ours")" $((3 + ${#steps[@]}))
same "and as many layers as it says" "$(jq '[.history[] | select(.empty_layer != true)] | length' <<<"$ours")" \
	"$(jq '.rootfs.diff_ids | length' <<<"$ours")"
"${podman[@]}" image umount "$image" >/dev/null
buildah umount "$container" >/dev/null
nothing_left "nothing is left over"
finish

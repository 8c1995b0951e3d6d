#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The four instructions on a small base, uncached, cached and edited.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
mkdir "$work/context"
echo hello >"$work/context/greeting"
steps=("ENV NAME=hearth GREETING=\"good evening\"" "WORKDIR /srv/app" "COPY greeting ./" \
	"RUN cat greeting > said && echo \"\$GREETING \$NAME\" >> said && pwd >> said")
spec "$work/a.json" "$base" "${steps[@]}" "RUN --network=none rm greeting"
spec "$work/b.json" "$base" "${steps[@]}" "RUN echo edited && rm greeting && id -u > who"
spec "$work/c.json" "$base" "${steps[@]}" "RUN rm greeting; true"

one=$(bake "$work/a.json" --context "$work/context" --output "oci:$work/image:one")
holds "a bake ends with a digest" "$one" '^sha256:[0-9a-f]{64}$'
two=$(bake "$work/a.json" --context "$work/context")
same "the second bake is the same image" "$one" "$two"
same "every step of it is cached" "$(cached)" 5
touch -d 2001-01-01 "$work/context/greeting"
three=$(bake "$work/a.json" --context "$work/context")
same "a file's time does not matter" "$one" "$three"
same "and is no reason to run a step" "$(cached)" 5

edited=$(bake "$work/b.json" --context "$work/context")
same "an edited step runs, those above are cached" "$(cached)" 4
check "it is another image" test "$edited" != "$one"
bake "$work/c.json" --context "$work/context" >/dev/null
same "another text runs" "$(cached)" 4
anew=$(bake "$work/a.json" --context "$work/context" --no-cache)
# Everything: also what only changes the configuration, and a copy.
same "--no-cache does everything anew" "$(cached)" 0
holds "and ends with a digest" "$anew" '^sha256:[0-9a-f]{64}$'
again=$(bake "$work/a.json" --context "$work/context" --from-step 4)
same "--from-step does that from there on" "$(cached)" 3
same "equal results are the same image" "$again" "$anew"
refused "there is no such step" 64 'the spec has 5' \
	hearth bake "$work/a.json" --context "$work/context" --from-step 6
refused "a step is a number" 64 'expected a number from 1' \
	hearth bake "$work/a.json" --context "$work/context" --from-step 0
echo changed >"$work/context/greeting"
changed=$(bake "$work/a.json" --context "$work/context" --output "oci:$work/image:changed")
check "a file's content does matter" test "$changed" != "$one"

unpack "$work/image:one" "$work/bundle"
files=$work/bundle/rootfs
same "the steps saw file, environment and directory" "$(cat "$files/srv/app/said")" \
	"$(printf 'hello\ngood evening hearth\n/srv/app')"
check "what was removed is gone" test ! -e "$files/srv/app/greeting"
config=$(skopeo inspect --config "oci:$work/image:one")
holds "the environment is in the config" "$(jq -r '.config.Env[]' <<<"$config")" '^GREETING=good evening$'
same "the working directory too" "$(jq -r .config.WorkingDir <<<"$config")" /srv/app
nothing_left "nothing is left over"
finish

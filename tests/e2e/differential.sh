#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same steps by hearth and by buildah: file by file the same, and the same configuration.
# ONLY=NUMBER runs one case alone, and ONLY='09*' ten of them.
. "$(dirname "$0")/lib.sh"

mkdir -p "$work/things/opt/dir/deep" "$work/things/opt/many"
ln -s dir "$work/things/opt/link"
touch "$work/things/opt/file" "$work/things/opt/dir/"{a,b,deep/c} "$work/things/opt/many/"{1,2,3}
tar -C "$work/things" --owner 0 --group 0 -czf "$work/things.tar.gz" .
"$here/image.py" "$work/base:latest" tiny "$work/things.tar.gz" >/dev/null

context=$work/context
mkdir -p "$context"/{tree/{one,two},other/one,links/dir,hard,empty,dots/.hidden,names}
for file in plain a.txt b.txt test.txt text.txt "with blank" tree/inner tree/{one,two}/deep other/inner \
	other/one/new links/dir/in links/file hard/a dots/.file dots/.hidden/x \
	names/$'new\nline' names/$'caf\xe9' "names/quo\"te" "names/back\\slash" 'names/st*ar' "names/$(printf 'n%.0s' {1..255})"; do
	echo "$file" >"$context/$file"
done
ln "$context/hard/a" "$context/hard/b"
ln -s file "$context/links/to-file"
ln -s dir "$context/links/to-dir"
ln -s /nowhere "$context/links/dangling"
printf '#!/bin/sh\n' >"$context/script"
chmod 750 "$context/script" "$context/tree/one"
touch "$context/setuid"
chmod 4755 "$context/setuid"
truncate -s 3M "$context/sparse"
echo end >>"$context/sparse"
chown -R 1234:1234 "$context/other"

# A second context, whose .dockerignore is the case's own.
hiding=$work/hiding
mkdir -p "$hiding"/{testdir,folder{1..5},d/e,keep}
touch "$hiding"/{source.txt,other.txt,README.md,README-secret.md,a.md,x.log,test3.txt,testdir/test{1,2}.txt,folder{1..5}/f,d/source.txt,d/e/x.log,keep/x.log,keep/a}

# What is copied keeps its time, and what a step makes has its own.
old=1000000000
find "$context" "$hiding" -type f -exec touch -d @$old {} +

own_storage
skopeo --insecure-policy copy -q "oci:$work/base:latest" containers-storage:localhost/differential

context_of() # CASE
{
	[ -s "$work/cases/$1/dockerignore" ] || { echo "$context"; return; }
	cp "$work/cases/$1/dockerignore" "$hiding/.dockerignore"
	echo "$hiding"
}

by_buildah() # CASE: its files and configuration
{
	local container
	buildah bud -q --layers=false --network none -t "case$1" -f "$work/cases/$1/Containerfile" "$(context_of "$1")" >"$work/buildah.log" 2>&1 ||
		{ tail -n 3 "$work/buildah.log"; return 0; }
	container=$(buildah from "case$1")
	listing "$(buildah mount "$container")" --times-before $((old + 1))
	buildah inspect --type image "case$1" | jq -cS '.OCIv1.config | {Env, WorkingDir}'
	buildah rm "$container" >/dev/null
}

by_hearth() # CASE: the same
{
	hearth bake "$work/cases/$1/spec.json" --context "$(context_of "$1")" --output "oci:$work/image:case$1" \
		>/dev/null 2>"$work/bake.log" || { tail -n 3 "$work/bake.log"; return 0; }
	unpack "$work/image:case$1" "$work/bundle"
	listing "$work/bundle/rootfs" --times-before $((old + 1))
	skopeo inspect --config "oci:$work/image:case$1" | jq -cS '.config | {Env, WorkingDir}'
	rm -rf "$work/bundle"
}

different() # SENTENCE PATTERN: they differ, and in lines of this pattern alone
{
	local lines
	lines=$(diff "$work/of-hearth" "$work/of-buildah" | grep '^[<>]' || true)
	if [ -z "$lines" ] || grep -qvE -- "$2" <<<"$lines"; then not_ok "$1" "$lines"; else ok "$1"; fi
}

for case in $("$here/cases.py" "$here/differential.cases" "oci:$work/base:latest" localhost/differential "$work/cases"); do
	# shellcheck disable=SC2053 # a pattern
	[[ "$case" == ${ONLY:-*} ]] || continue
	by_buildah "$case" >"$work/of-buildah"
	by_hearth "$case" >"$work/of-hearth"
	pattern=$(cat "$work/cases/$case/pattern")
	if [ -n "$pattern" ]; then
		different "$case $(cat "$work/cases/$case/name"): $(cat "$work/cases/$case/reason")" "$pattern"
		continue
	fi
	same "$case $(cat "$work/cases/$case/name")" "$(cat "$work/of-hearth")" "$(cat "$work/of-buildah")"
done
check "fsck has nothing to say of any of them" hearth fsck
nothing_left "nothing is left over"
finish

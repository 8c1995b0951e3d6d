#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# conformance.sh - hearth is a registry, by every check of conformance.py; and the checks can fail: docker-registry's do.
. "$(dirname "$0")/lib.sh"
command -v docker-registry >/dev/null || skip "needs docker-registry"

# What Debian's docker-registry 2.8.2 is known to get wrong, and what it gets right.
wrong=(
	"Range 500-0 of 2048 is 416" "Range 5000-10000 of 2048 is 416"
	"a chunk that does not fit is 416, and nothing of it is kept" "nor of a last one in the PUT"
	"a malformed digest of a manifest is 400 where it is put" "layers that may not be distributed may be absent"
	"the stored type is served, whatever is accepted" "a deleted tag is gone at once, and its manifest stays"
	"behind the last, which is not listed itself" "nothing refers to what is not there, which is no error"
	"a put says that its subject was seen"
)
right=(
	"Range 500-1499 of 2048 is 206" "an upload by three chunks is a blob" "wrong bytes by a stream are none"
	"a mount of what is not there becomes an upload" "a manifest of 3.9 MB is taken" "a deleted blob is gone at once"
)
start_registry
only=()
for sentence in "${wrong[@]}" "${right[@]}"; do only+=(--only "$sentence"); done
"$here/conformance.py" --url "http://$registry" --algorithm sha256 "${only[@]}" >"$work/known" || true
found() { sed -n "s/^$1: \(.*\) (sha256)$/\1/p" "$work/known" | sort; }
same "the checks find what docker-registry is known to get wrong" "$(found FAILED)" "$(printf '%s\n' "${wrong[@]}" | sort)"
same "and nothing in what it gets right" "$(found ok)" "$(printf '%s\n' "${right[@]}" | sort)"
"$here/conformance.py" --url "http://$registry" --algorithm sha512 --only "an upload by POST and PUT" --only "an image is" >"$work/known" || true
holds "sha512 is none of its strengths" "$(cat "$work/known")" '^FAILED: .*\(sha512\)'

# hearth gets all of it right, and stands before a registry as if it were it; also by default, where a name is not its own.
jq -n --arg url "http://$registry" '{registry: {anonymous: ["open-*"]},
	mirror: {upstreams: {"up.example": {url: $url}}, default: "up.example"}}' >"$work/hearth.json"
start_daemon --config "$work/hearth.json"
passes() # SENTENCE ARGUMENT...: all of the checks
{
	if "$here/conformance.py" --token "$token" "${@:2}" >"$work/checks"; then
		ok "$1: $(tail -n 1 "$work/checks")"
	else
		not_ok "$1" "$(grep -A 5 -e FAILED -e failed "$work/checks")"
	fi
}
passes "hearth is a registry" --url "$url"
read_only=(
	"Range " "HEAD knows" "a Range " "many ranges" "parts of a large blob" "a blob is its" "a blob is what" "a blob is of"
	"a blob that is not there" "the empty blob is" "the empty JSON" "and whatever type" "what is known" "a manifest's blanks"
	"a manifest of 3.9 MB" "a manifest is not encoded" "a manifest is of its repository" "an image is found" "one of Docker"
	"fields that nobody" "an index leads" "and to other indexes" "an empty index" "the stored type" "an unknown tag"
	"nothing refers"
)
only=()
for sentence in "${read_only[@]}"; do only+=(--only "$sentence"); done
passes "what it mirrors is read as if it were there" --url "http://$registry" --mirror "up.example@$url" --algorithm sha256 \
	"${only[@]}"
stop_daemon
same "it ends as it should" "$status" 0
nothing_left "nothing is left over"
finish

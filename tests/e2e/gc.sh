#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collection: what is named stays, what is not goes, beside whatever runs.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
blob_count() # of blobs in the store
{
	hearth gc --all --dry-run --json | jq .blobs
}

spec "$work/one.json" "$base" "RUN head -c 3000000 /dev/urandom > /one"
spec "$work/two.json" "$base" "RUN head -c 3000000 /dev/urandom > /one" "RUN head -c 2000000 /dev/urandom > /two"
one=$(bake "$work/one.json" --tag one:1)
two=$(bake "$work/two.json")
same "a store in which everything is named loses nothing" \
	"$(hearth gc --json | jq -c '[.images, .steps, .blobs, .trees, .freedBytes]')" '[[],0,0,0,0]'
before=$(hearth images --json)
dry=$(hearth gc --all --dry-run --json)
same "a dry run says what would go: the image without a tag, its own step" \
	"$(jq -c '[.images, .steps]' <<<"$dry")" "[[\"$two\"],1]"
check "and how much that is" test "$(jq .freedBytes <<<"$dry")" -gt 2000000
same "and changes nothing" "$(hearth images --json)" "$before"
same "so a bake is still cached" "$(bake "$work/two.json")" "$two"
same "both steps of it" "$(cached)" 2
real=$(hearth gc --all --json)
same "then that is what goes" "$(jq -c 'del(.dryRun)' <<<"$real")" "$(jq -c 'del(.dryRun)' <<<"$dry")"
same "the tagged image stays cached" "$(bake "$work/one.json")" "$one"
same "with its step" "$(cached)" 1
check "the other one can be baked again" bake "$work/two.json"
same "from the step they share" "$(cached)" 1
check "and written" hearth bake "$work/two.json" --output "oci:$work/out:1"
check "whole" skopeo --insecure-policy copy -q "oci:$work/out:1" "dir:$work/copy"

spec "$work/unused.json" "$base" "RUN echo unused > /unused"
unused=$(bake "$work/unused.json")
same "what was used lately is not removed as unused" "$(hearth gc --unused-for 1h --json | jq -c .images)" '[]'
holds "but as soon as it is" "$(hearth gc --unused-for 0s --json)" "$unused"

for i in 1 2 3; do
	jq -n --arg base "$base" --arg i "$i" '{slug: "agent", model: {provider: "gateway", model: "m"}, system: "s",
		sandbox: {image: {base: $base, steps: ["RUN echo \($i) > /version"]}}}' >"$work/agent-$i.json"
	bake "$work/agent-$i.json" >"$work/agent-$i"
done
same "of each slug the newest images are kept" \
	"$(hearth gc --keep 2 --json | jq -r '.images[]')" "$(cat "$work/agent-1")"
echo '{"gc": {"keepVersions": 1}}' >"$work/hearth.json"
same "an option goes before the configuration" \
	"$(hearth gc --keep 2 --dry-run --json --config "$work/hearth.json" | jq -c .images)" '[]'
holds "text says it in words" "$(hearth gc --config "$work/hearth.json")" '^image [0-9a-f]{12} agent$'

mkdir "$work/context"
head -c 1000000 /dev/urandom >"$work/context/file"
context=$(hearth context put "$work/context")
spec "$work/copy.json" "$base" "COPY file /file"
check "a context in the store is there for a bake" bake "$work/copy.json" --context "$context"
same "it stays as long as it may be used" "$(hearth gc --json | jq .contexts)" 0
same "and goes with what no tag needs" "$(hearth gc --all --json | jq .contexts)" 1
refused "then there is none" 66 . hearth bake "$work/copy.json" --context "$context"

# A bake that was killed keeps nothing from being collected.
spec "$work/killed.json" "$base" "RUN echo started; sleep 600"
"$HEARTH" bake "$work/killed.json" --progress plain >"$work/killed.log" 2>&1 &
killed=$!
wait_for 60 grep -qxF '[1/1] started' "$work/killed.log"
kill -KILL "$killed"
wait "$killed" || true
nothing_left "a killed bake ends its step"
spec "$work/later.json" "$base" "RUN head -c 1000000 /dev/urandom > /later"
check "what is made after it" bake "$work/later.json"
dry=$(hearth gc --all --dry-run --json | jq .blobs)
said=$(hearth gc --all --json)
check "goes with the first collection" test "$(jq .freedBytes <<<"$said")" -gt 1000000
same "as the dry run said" "$(jq .blobs <<<"$said")" "$dry"
same "and nothing is left that nothing names" "$(hearth du --json | jq .chunks.of.unnamed)" 0

# Until it is small enough: trees first, then steps, then images.
size() # of the data directory
{
	du -sB1 "$HEARTH_DATA" | cut -f1
}
spec "$work/big.json" "$base" "RUN head -c 20000000 /dev/urandom > /big" "RUN head -c 20000000 /dev/urandom > /big2"
big=$(bake "$work/big.json" --tag big:1)
limit=$(($(size) - 30000000))
said=$(hearth gc --max-size $limit --json)
check "a cap takes trees first" test "$(jq .trees <<<"$said")" -gt 0
same "and no image then" "$(jq -c .images <<<"$said")" '[]'
check "it holds ($(size) of $limit)" test "$(size)" -le "$limit"
same "what is tagged is still cached" "$(bake "$work/big.json")" "$big"
same "all of it" "$(cached)" 2
spec "$work/next.json" "$base" "RUN head -c 20000000 /dev/urandom > /big" "RUN head -c 20000000 /dev/urandom > /big2" "RUN sha256sum /big > /sum"
for n in {1..8}; do
	spec "$work/little.json" "$base" "RUN head -c 1000000 /dev/urandom > /$n"
	bake "$work/little.json" >/dev/null
done
limit=$(($(size) - 5000000))
hearth gc --max-size $limit >/dev/null
check "of many small things no more goes than has to ($(size) of $limit)" test "$(size)" -le "$limit" -a "$(size)" -gt $((limit - 4000000))
limit=$(($(size) - 14000000))
missing=$(hearth gc --max-size $limit --json 2>"$work/gc.log" | jq .missingBytes)
holds "a cap below what is tagged cannot hold, which is said" "$(cat "$work/gc.log")" 'too little: what is left has a tag'
check "with what is missing, but for 1 MB ($(size) of $limit)" test "$(($(size) - limit - missing))" -lt 1000000 -a "$missing" -gt 0
jq --slurpfile s "$work/big.json" '.steps[0:2] = $s[0].steps' "$work/next.json" >"$work/next2.json"
check "and a step on it runs, on trees that are made again" bake "$work/next2.json"
hearth rm big:1 >/dev/null
said=$(hearth gc --max-size 1000000 --json 2>/dev/null)
check "with a small one images without a tag go" test "$(jq '.images | length' <<<"$said")" -gt 0
check "and steps" test "$(jq .steps <<<"$said")" -gt 0
holds "but no tagged one" "$(hearth images)" 'one:1'
check "a minimum that is there already takes nothing" test "$(hearth gc --min-free 1 --json | jq .freedBytes)" = 0
refused "a size is a number of bytes" 64 'expected a number of bytes' hearth gc --max-size much

refused "a duration needs its unit" 64 'expected a number with' hearth gc --unused-for 30
refused "a number is a number" 64 'expected a number of images' hearth gc --keep some
same "where there is no store there is nothing to collect" "$(HEARTH_DATA=$work/none hearth gc --json | jq .blobs)" 0
mkdir -m 700 "$work/other"
echo 99 >"$work/other/VERSION"
touch "$work/other/lock"
refused "a file is no data directory" 64 'VERSION is no directory' hearth gc --data "$work/other/VERSION"
refused "a store of another format is not touched" 65 'has format' hearth gc --data "$work/other"

# hearth rm: names, images, and what only they needed.
hearth gc --all >/dev/null
spec "$work/shared.json" "$base" "RUN head -c 3000000 /dev/urandom > /shared"
spec "$work/alone.json" "$base" "RUN head -c 3000000 /dev/urandom > /shared" "RUN head -c 40000000 /dev/urandom > /alone"
jq --slurpfile s "$work/shared.json" '.steps[0] = $s[0].steps[0]' "$work/alone.json" >"$work/both.json"
shared=$(bake "$work/shared.json" --tag shared:1 --tag shared:2)
alone=$(bake "$work/both.json" --tag alone:1)
refused "an unknown tag is not removed" 66 'no image nothing' hearth rm shared:1 nothing:1
holds "and then nothing is" "$(hearth images)" shared:1
refused "the beginning of a digest is not too short" 66 'beginning has six hex digits' hearth inspect "${shared:7:5}"
check "six are enough" hearth inspect "${shared:7:6}"
refused "nor an unknown digest" 66 'no image sha256' hearth rm sha256:0123456789abcdef
said=$(hearth rm shared:1)
holds "a tag of two goes alone" "$said" '^untagged .*shared:1'
holds "and its image stays" "$(hearth images --json | jq -r '.[] | [.name, .digest] | @tsv')" "shared:2.$shared"
disk=$(du -B1 "$HEARTH_DATA/blobs/data.mdb" | cut -f1)
said=$(hearth rm alone:1 --json)
same "the last tag takes the image along" "$(jq -r '.images[]' <<<"$said")" "$alone"
check "with what only it needed" test "$(jq .freedBytes <<<"$said")" -gt 40000000
check "and its space is the disk's again" \
	test "$(du -B1 "$HEARTH_DATA/blobs/data.mdb" | cut -f1)" -lt $((disk - 30000000))
same "what another shares is there" "$(bake "$work/shared.json")" "$shared"
same "and still cached" "$(cached)" 1
holds "a digest takes its tags along" "$(hearth rm "${shared:7:12}")" '^untagged .*shared:2'
refused "after that there is no such image" 66 'no image' hearth inspect "$shared"
same "nothing is left to collect" "$(hearth gc --json | jq -c '[.images, .blobs, .chunks, .trees]')" '[[],0,null,0]'

# A long bake, and collections of everything beside it: it ends when there were some.
# shellcheck disable=SC2016 # for the step's shell
spec "$work/long.json" "$base" "RUN head -c 1000000 /dev/urandom > /first" \
	'RUN --mount=type=cache,id=gate,target=/gate touch /gate/stands; echo started; until [ -e /gate/open ]; do sleep 0.05; done; sha256sum /first > /sum' \
	"RUN sha256sum -c /sum"
"$HEARTH" bake "$work/long.json" --progress plain >"$work/long.out" 2>&1 &
bake=$!
wait_for 60 grep -qx '.*started' "$work/long.out" || cat "$work/long.out"
rounds=0
while kill -0 $bake 2>/dev/null; do
	hearth gc --all --json >"$work/gc.json" || kill $bake
	rounds=$((rounds + 1))
	[ "$rounds" != 5 ] || touch "$(dirname "$(compgen -G "$HEARTH_DATA/caches/*/data/stands")")/open"
done
status=0
wait $bake || status=$?
same "a bake beside $rounds collections of everything ends well" "$status" 0
[ "$status" = 0 ] || cat "$work/long.out"
long=$(tail -n 1 "$work/long.out")
check "what it made is whole, or was removed whole" bake "$work/long.json" --output "oci:$work/long:1"
check "and can be read" skopeo --insecure-policy copy -q "oci:$work/long:1" "dir:$work/long-copy"
holds "its name was printed last" "$long" '^sha256:'

# A bake collects first where less is free than the operator wants.
spec "$work/idle.json" "$base" "RUN echo idle > /idle"
idle=$(bake "$work/idle.json")
spec "$work/needy.json" "$base" "RUN echo needy > /needy"
bake "$work/needy.json" --no-cache >/dev/null
holds "with room for it a bake leaves all" "$(hearth images --json)" "$idle"
echo '{"gc": {"minFreeBytes": 9000000000000000}}' >"$work/room.json"
needy=$(bake "$work/needy.json" --no-cache --config "$work/room.json")
check "with less than the configuration wants it takes what has no tag" bash -c '! grep -q "$1"' - "$idle" < <(hearth images --json)
holds "and keeps what it makes" "$(hearth images --json)" "$needy"

hearth gc --all --json >"$work/first.json" & first=$!
hearth gc --all --json >"$work/second.json" & second=$!
status=0
wait $first && wait $second || status=$?
same "two collections at once take turns" "$status" 0
nothing_left "nothing is left over"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Uploads that break: a client that goes, a daemon that is killed, a disk that is full.
. "$(dirname "$0")/lib.sh"

here_at=/v2/tools/app/blobs

send() # METHOD PATH [CURL OPTION...]: the status; headers are in $work/headers, the body in $work/body
{
	local method=$1 path=$2
	shift 2
	curl -sS -m 120 -X "$method" -u "x:$token" -D "$work/headers" -o "$work/body" -w '%{http_code}' "$@" "$url$path" || true
}

header() # NAME: of the last answer
{
	tr -d '\r' <"$work/headers" | sed -n "s/^$1: //Ip"
}

open_session() # sets session, its path
{
	send POST "$here_at/uploads/" >"$work/status"
	session=$(header Location)
}

came() # how many bytes of the session did; 0-0 is taken for none
{
	local range
	[ "$(send GET "$session")" = 204 ] || return 1
	range=$(header Range)
	[ "$range" = 0-0 ] && echo 0 || echo $((${range#0-} + 1))
}

more_than() # BYTES: came
{
	[ "$(came)" -gt "$1" ]
}

go_on() # FILE: send what is missing of it, from where the session is
{
	local at status
	at=$(came)
	tail -c +$((at + 1)) "$1" >"$work/rest"
	status=$(send PATCH "$session" -H "Content-Range: $at-$(($(stat -c %s "$1") - 1))" -H 'Expect:' --data-binary "@$work/rest")
	[ "$status" = 202 ]
}

digest_of() # FILE
{
	echo "sha256:$(sha256sum "$1" | cut -d' ' -f1)"
}

close_session() # FILE: the status
{
	send PUT "$session?digest=$(digest_of "$1")" -H 'Content-Length: 0'
}

stored() # FILE: as the registry has it
{
	[ "$(send GET "$here_at/$(digest_of "$1")")" = 200 ] && cmp -s "$work/body" "$1"
}

noise() # FILE SIZE
{
	head -c "$2" /dev/urandom >"$1"
}

patch_slowly() # FILE: in the background; sets slow
{
	curl -sS -m 300 -X PATCH -u "x:$token" --limit-rate 1M -H 'Expect:' --data-binary "@$1" -o "$work/slow.out" "$url$session" 2>"$work/slow.log" &
	slow=$!
}

start_daemon --grace 1
noise "$work/blob" 20000000
digest=$(digest_of "$work/blob")

# A client that goes in the middle; before, nobody else may write into its session.
open_session
patch_slowly "$work/blob"
wait_for 60 more_than 1000000
same "a session that is written is refused to another PATCH" "$(send PATCH "$session" --data-binary intruder)" 409
same "to another PUT" "$(send PUT "$session?digest=$digest" --data-binary intruder)" 409
same "and to a DELETE" "$(send DELETE "$session")" 409
kill "$slow"
wait "$slow" 2>/dev/null || true
check "when its client has gone it is gone on with" wait_for 60 go_on "$work/blob"
same "and closed" "$(close_session "$work/blob")" 201
check "as all of its bytes and no others" stored "$work/blob"

# A daemon that is killed in the middle.
noise "$work/killed" 20000000
open_session
patch_slowly "$work/killed"
wait_for 60 more_than 1000000
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
wait "$slow" 2>/dev/null || true
start_daemon --grace 1
check "a session outlives a daemon that was killed" more_than 1000000
same "what does not begin at its end is refused" "$(send PATCH "$session" -H 'Content-Range: 0-6' --data-binary nothing)" 416
check "it is gone on with" go_on "$work/killed"
same "and closed, too" "$(close_session "$work/killed")" 201
check "as all of its bytes" stored "$work/killed"
same "then it is over" "$(send GET "$session")" 404

# Several at once, two of them of one blob.
push_whole() # FILE: by POST and PUT
{
	local at
	at=$(curl -sS -m 120 -X POST -u "x:$token" -D - -o /dev/null "$url$here_at/uploads/" | tr -d '\r' | sed -n 's/^Location: //p')
	curl -sS -m 120 -X PUT -u "x:$token" -o /dev/null -w '%{http_code}\n' -H 'Expect:' --data-binary "@$1" "$url$at?digest=$(digest_of "$1")"
}
pids=()
for n in 1 2 3 4 4; do
	[ -e "$work/parallel.$n" ] || noise "$work/parallel.$n" 5000000
	push_whole "$work/parallel.$n" >>"$work/statuses" &
	pids+=($!)
done
wait "${pids[@]}"
same "parallel uploads all end well, two of one blob among them" "$(sort "$work/statuses" | uniq -c | tr -s ' ')" " 5 201"
for n in 1 2 3 4; do
	check "upload $n of them is stored" stored "$work/parallel.$n"
done

# Sessions that nobody goes on with.
open_session
idle=$session
send PATCH "$idle" --data-binary "something" >"$work/status"
open_session
stop_daemon
touch -d '25 hours ago' "$HEARTH_DATA/uploads/${idle##*/}"
: >"$HEARTH_DATA/uploads/01aryz6s41tsv4rrffq69g5fav" # as a daemon leaves it that is killed at once
touch -d '1 hour ago' "$HEARTH_DATA/uploads/01aryz6s41tsv4rrffq69g5fav"
start_daemon --grace 1
same "a session expires a day after anything was added" "$(send GET "$idle")" 404
same "and no sooner" "$(send GET "$session")" 204
holds "the metrics count those that are open" "$(ask /metrics)" '^hearth_uploads 1$'
same "what was never one goes with it" "$(ls "$HEARTH_DATA/uploads")" "${session##*/}"
same "the last is cancelled" "$(send DELETE "$session")" 204
same "and nothing is left" "$(ls "$HEARTH_DATA/uploads")" ""
stop_daemon
nothing_left "nothing is left over of the daemons"

# A full disk.
own_disk 120M
available() # bytes
{
	df --output=avail -B1 "$work/mnt" | tail -n 1
}
fill_to() # BYTES: so many are left
{
	rm -f "$work/mnt/filler"
	fallocate -l $(($(available) - $1)) "$work/mnt/filler"
}
ready()
{
	[ "$(send GET /readyz)" = 200 ]
}
start_daemon --grace 1
noise "$work/small" 100000
same "a small blob is pushed" "$(push_whole "$work/small")" 201
fill_to 12000000
before=$(available)
same "a blob that there is no room for is 507" \
	"$(send POST "$here_at/uploads/?digest=$digest" -H 'Expect:' --data-binary "@$work/blob")" 507
holds "with a body that registries' clients read" "$(jq -r '.errors[0].code, .errors[0].message' "$work/body")" 'no space'
refused "the daemon is not ready" 1 '' ready
check "what it has is served all the same" stored "$work/small"
noise "$work/another" 100000
same "and what fits is taken" "$(push_whole "$work/another")" 201
refused "but it is not ready yet" 1 '' ready
open_session
same "one that does not say how large it is is cut where the disk ends" \
	"$(send PATCH "$session" -H 'Transfer-Encoding: chunked' -H 'Expect:' --data-binary "@$work/blob")" 507
check "and keeps what came" more_than 1000000
check "what is there is still served" stored "$work/small"
open_session_was=$session
open_session
same "another session cannot be gone on with, either" \
	"$(send PATCH "$session" -H 'Expect:' --data-binary "@$work/blob")" 507
session=$open_session_was
rm "$work/mnt/filler"
check "the daemon is ready when there is room" ready
check "then the session is gone on with" go_on "$work/blob"
same "and closed like any" "$(close_session "$work/blob")" 201
check "whole" stored "$work/blob"
fill_to 30000000
before=$(available)
noise "$work/lies" 24000000
same "a blob that seems to fit and does not is 507, too" \
	"$(send POST "$here_at/uploads/?digest=$(digest_of "$work/lies")" -H 'Transfer-Encoding: chunked' -H 'Expect:' --data-binary @<(cat "$work/lies" "$work/lies"))" 507
check "and the space is given back" test "$(available)" -gt $((before - 2000000))
check "the store is clean" hearth fsck
stop_daemon
nothing_left "nothing is left over on it"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a step reaches, and what it does not.
. "$(dirname "$0")/lib.sh"

base=$(tiny_base)
mkdir "$work/www"
echo served >"$work/www/page"
serve_files "$work/www"
links=$(ip -o link | wc -l)
rules=$(nft list ruleset)

run() # COMMAND [OPTION...]: one step of that command
{
	spec "$work/one.json" "$base" "RUN $1"
	shift
	hearth bake "$work/one.json" "$@"
}

interfaces='test "$(ls /sys/class/net)" = lo'
check "a step's namespace holds lo only" run "$interfaces"
check "so does that of --network=none" run "--network=none $interfaces"
check "--add-host reaches a server of this host" \
	run "wget -q -O - http://pages.example.test/page | grep -q served" --add-host "pages.example.test=127.0.0.1:$port"
check "on the port that was asked for, if none is given" \
	run "wget -q -O - http://ports.example.test:$port/page | grep -q served" --add-host ports.example.test=127.0.0.1
check "the host's loopback is not reached by address" run "! wget -q -T 5 -O - http://127.0.0.1:$port/page"
check "nor by localhost" run "! wget -q -T 5 -O - http://localhost:$port/page"
check "nor are link-local addresses" run "! wget -q -T 5 -O - http://169.254.169.254/"
check "with --network=none nothing is reached" \
	run "--network=none ! wget -q -T 5 -O - http://pages.example.test/page" --add-host "pages.example.test=127.0.0.1:$port"
refused "a host that is no address is refused" 64 "add-host|NAME=ADDR" run true --add-host pages.example.test=nowhere
one=$(run "wget -q -O /page http://pages.example.test/page" --add-host "pages.example.test=127.0.0.1:$port" 2>/dev/null)
two=$(run "wget -q -O /page http://pages.example.test/page" --add-host pages.example.test=127.0.0.1:1 2>/dev/null)
same "extra hosts are in no key" "$one" "$two"
same "the host's links are as they were" "$(ip -o link | wc -l)" "$links"
same "and its nftables" "$(nft list ruleset)" "$rules"
nothing_left "nothing is left over"
finish

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A base's configuration is a stranger's: what is odd is borne, what is wrong is said.
. "$(dirname "$0")/lib.sh"

tiny_base >/dev/null
spec "$work/spec.json" "oci:$work/base:odd" "ENV A=b" "RUN pwd; id -u; echo \"\$A\"" "WORKDIR sub"

base() # JSON|PYTHON-EXPRESSION: the members of the config of the next base
{
	python3 -c 'import json, sys; print(json.dumps(eval(sys.argv[1], {"null": None})))' "$1" >"$work/config.json"
	"$here/image.py" "$work/base:odd" tiny --config "$work/config.json" >/dev/null
}

borne() # SENTENCE CONFIG WHAT-THE-STEP-SAYS
{
	base "$2"
	bake "$work/spec.json" --no-cache >/dev/null || true
	same "$1" "$(grep '^\[2/3\]' "$work/bake.log" | grep -vE 'RUN|DONE' | cut -d ' ' -f 2- | paste -sd ' ')" "$3"
}

wrong() # SENTENCE CODE PHRASE CONFIG
{
	base "$4"
	refused "$1" "$2" "$3" hearth bake "$work/spec.json" --no-cache
}

borne "entries without a name or a value" '{"Env": ["NOEQUALS", "=x", "", "A", "PATH"]}' "/ 0 b"
borne "entries that are there twice, and controls" '{"Env": ["A=1", "A=2", "B=\u0001\u001b[31m"]}' "/ 0 b"
borne "no environment" '{"Env": null}' "/ 0 b"
borne "5000 variables" '{"Env": ["V%d=%s" % (i, "x" * 20) for i in range(5000)]}' "/ 0 b"
borne "a loader's variable, and a HOME that is not there" '{"Env": ["LD_PRELOAD=/nope.so", "HOME=/nope"]}' "/ 0 b"
borne "an empty shell" '{"Shell": []}' "/ 0 b"
borne "nothing where something could be" '{"Shell": null, "User": null, "WorkingDir": null}' "/ 0 b"
borne "a relative working directory is below the root" '{"WorkingDir": "usr/../../../usr//bin"}' "/usr/bin 0 b"
borne "a working directory that is not there is made for the first command" '{"WorkingDir": "../x/y"}' "/x/y 0 b"
borne "a shell by a relative path" '{"Shell": ["bin/sh", "-c"]}' "/ 0 b"

base '{"Env": ["NAME=from-base"]}'
spec "$work/names.json" "oci:$work/base:odd" "WORKDIR /\$NAME" "ENV NAME=\${NAME}-and-mine" "RUN pwd; echo \$NAME"
bake "$work/names.json" >/dev/null
same "the base's environment is expanded and overridden" "$(grep '^\[3/3\] [/f]' "$work/bake.log" | cut -d ' ' -f 2 | paste -sd ' ')" \
	"/from-base from-base-and-mine"

base '{"OnBuild": ["RUN touch /triggered", "ADD a /b"]}'
spec "$work/trigger.json" "oci:$work/base:odd" "RUN test ! -e /triggered"
check "a base's triggers are no steps" bake "$work/trigger.json" --output "oci:$work/kept:1"
holds "which is said" "$(cat "$work/bake.log")" '^\[base\] WARNING the base has 2 ONBUILD triggers, which are kept and not run'
same "and so they are" "$(skopeo inspect --config --raw "oci:$work/kept:1" | jq -c .config.OnBuild)" '["RUN touch /triggered","ADD a /b"]'

wrong "a shell that is not there" 1 'exec: /nowhere: No such file' '{"Shell": ["/nowhere", "-c"]}'
wrong "a shell without a name" 1 'exit code 127' '{"Shell": [""]}'
wrong "a working directory that is a file" 65 'step 2.*WORKDIR: /bin/sh' '{"WorkingDir": "/bin/sh"}'
wrong "one that is too long" 65 'base .*4096' '{"WorkingDir": "/" + "a" * 5000}'
wrong "a group that is not there" 66 'step 2.*no group nosuch' '{"User": "nobody:nosuch"}'
wrong "an id that no machine has" 65 'step 2.*65536' '{"User": "65536"}'
wrong "a user that steers no terminal" 66 'no user "root]0;tx" in' '{"User": "root\n\u001b]0;t\u0007x"}'
wrong "a group's user without a name" 66 'step 2.*no user "" in the image' '{"User": ":nogroup"}'
wrong "a user without an end" 65 'base .*config.User: more than' '{"User": "a" * 100000}'
wrong "a user that is a number" 65 'config.User: expected a string' '{"User": 7}'
wrong "an environment that is none" 65 'config.Env: expected an array' '{"Env": "A=b"}'
wrong "a variable that is none" 65 'config.Env.0.: expected a string' '{"Env": [7]}'
wrong "a NUL" 65 'u0000' '{"Env": ["A\0=b"]}'
wrong "a variable too long to start with" 65 'base .*config.Env.0.: more than' '{"Env": ["V=" + "x" * 200000]}'
wrong "more of them than a program starts with" 65 'base .*config.Env: more than' '{"Env": ["V%d=%s" % (i, "x" * 1000) for i in range(3000)]}'
wrong "more of them than anybody has" 65 'base .*config.Env: more than 10000' '{"Env": ["V%d=1" % i for i in range(300000)]}'

# What a stranger's configuration says is shown, and steers no terminal.
tamed() # COMMAND...: no control byte comes out but the ends of lines
{
	"$@" >"$work/shown" && grep -q x "$work/shown" &&
		! LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$work/shown"
}
rude=$'\e]0;title\ax\u009b31mx'
c1=$'\u009b31mx' # of control characters only these are no mistake in a path
cp -a "$work/base" "$work/base$c1"
jq -n --arg rude "$rude" '{Env: ["A=" + $rude], Cmd: [$rude], Entrypoint: [$rude], User: $rude, WorkingDir: ("/" + $rude)}' \
	>"$work/config.json"
digest=$("$here/image.py" "$work/base$c1:rude" tiny --config "$work/config.json" --created "$rude")
check "a base of such names is pulled" hearth pull "oci:$work/base$c1:rude"
for command in "inspect $digest" "history $digest" images; do
	# shellcheck disable=SC2086 # words
	check "hearth $command steers no terminal" tamed hearth $command
	# shellcheck disable=SC2086 # words
	check "nor does its JSON" tamed hearth $command --json
done
holds "all of a variable is shown" "$(hearth inspect "$digest")" '^env +A=]0;titlex31mx$'
nothing_left "nothing is left over"
finish

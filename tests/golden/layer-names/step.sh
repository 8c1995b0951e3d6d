n=$(printf 'n%.0s' $(seq 255))
e=$(printf 'e%.0s' $(seq 90))
printf 1 >"$(printf 'utf-8-\303\244')"
printf 2 >"$(printf 'nfd-a\314\210')"
printf 3 >"$(printf 'bytes-\377\376')"
printf 4 >"$n"
mkdir -p "deep/$e/$e/$e"
printf 5 >"deep/$e/$e/$e/$n"
ln -s "$(printf 'target-\377')" bytes-link
ln -s "$n/$n" long-link
ln "$n" "deep/$e/hard"
ln "$(printf 'bytes-\377\376')" bytes-hard
find . -mindepth 1 -exec touch -h -d @3000 {} +

printf x >cap
mkdir d
find . -exec touch -h -d @1000 {} +

mkdir -p a b/c/d e f/g
touch a/1 a/2 b/c/d/3 e/4 f/g/5 top
find . -exec touch -h -d @1000 {} +

rm a/1 top
rm -r b/c
rm -r e
mkdir e
rm -r f
mkdir -p f/g
touch f/6
find a b e f -exec touch -h -d @2000 {} +

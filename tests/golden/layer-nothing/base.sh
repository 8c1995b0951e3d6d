mkdir -p d/e
echo f >d/e/f
ln -s x d/l
find . -exec touch -h -d @1000 {} +

mkdir -p lib/sub etc
touch lib/a lib/sub/b etc/c
ln -s lib lib64
find . -exec touch -h -d @1000 {} +

mkdir -p etc usr/bin
echo old >etc/conf
echo stays >etc/stays
find . -exec touch -h -d @1000 {} +

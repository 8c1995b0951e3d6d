echo new >etc/conf
mkdir -m 1777 tmp
mkdir -m 2750 srv
chown 12:34 srv
printf 'binary\0\001' >usr/bin/tool
chmod 4755 usr/bin/tool
head -c 70000 /dev/zero | tr '\0' z >usr/big
: >usr/empty
ln -s ../usr/bin/tool etc/link
chown -h 65535:65535 etc/link
mkfifo tmp/pipe
mknod tmp/null c 1 3
touch -h -d @1700000000.75 etc/conf etc/link tmp/pipe tmp/null usr/bin/tool usr/big usr/empty
touch -d @1600000000 tmp srv etc usr usr/bin

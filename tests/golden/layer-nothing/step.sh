mv d t
mv t d
chmod 700 d
chmod 755 d
touch new
rm new

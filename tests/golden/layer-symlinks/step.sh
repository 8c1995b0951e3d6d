mkdir usr
mv lib usr/lib
ln -s usr/lib lib
rm lib64
mkdir lib64
touch lib64/a
rm -r etc
echo file >etc
find usr lib lib64 etc -exec touch -h -d @6000 {} +

mkdir d
echo three >d/three
ln d/three d/four
ln d/three 0
ln -s three d/s
ln d/s t
ln one d/one
mkfifo p
ln p q
find d 0 t p q -exec touch -h -d @4000 {} +
touch -d @1000 one

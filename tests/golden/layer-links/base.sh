echo one >one
ln one two
touch -d @1000 one

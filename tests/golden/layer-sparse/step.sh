truncate -s 32M hole
printf middle | dd of=hole bs=1M seek=16 conv=notrunc status=none
truncate -s 4M nothing
touch -d @7000 hole nothing

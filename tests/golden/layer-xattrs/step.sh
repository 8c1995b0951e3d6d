setcap cap_net_raw,cap_chown+ep cap
setfattr -n user.zeta -v last cap
setfattr -n user.alpha -v 0x00ff0a cap
setfattr -n user.empty cap
setfacl -m u:7:rwx,m:rwx d
setfacl -d -m g:8:r d
printf y >d/inherits
touch -h -d @5000 d/inherits d

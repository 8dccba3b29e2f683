#!/bin/sh
# What a hermetic guest does (see hermetic.py): runs the command of /experiment-command, shell words.
# Lines that come from outside are its standard input, but for a full stop alone, which ends it by
# SIGTERM. Its exit status goes to QEMU.
PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
export PATH HOME=/root
mount -t tmpfs tmpfs /run
chmod 1777 /tmp
mkdir -p /dev/pts /dev/shm /run/lock
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd
stty -F /dev/console raw -echo
date -s @946684800 >/dev/null
hostname tactical
ip link set lo up
# Addresses of programs would be drawn anew in each run.
echo 0 >/proc/sys/kernel/randomize_va_space
# What was recorded is in the file behind this memory within about a second.
echo 100 >/proc/sys/vm/dirty_writeback_centisecs
echo 100 >/proc/sys/vm/dirty_expire_centisecs
eval "set -- $(cat /experiment-command)"
echo "tactical: guest is up after $(cut -d' ' -f1 /proc/uptime) s"

mknod /run/lines p
"$@" </run/lines &
worker=$!
{
    while read -r line && [ "$line" != . ]; do printf '%s\n' "$line"; done
    kill -TERM $worker
} </dev/console >/run/lines 2>/dev/null &
wait $worker
status=$?
umount /experiment || mount -o remount,ro /experiment
echo "tactical: the command ended with status $status"
# isa-debug-exit makes 2·status + 1 of it.
printf "\\$(printf %o $status)" | dd of=/dev/port bs=1 seek=244 status=none

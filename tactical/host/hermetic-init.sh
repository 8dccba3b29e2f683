#!/bin/busybox sh
# First program of a hermetic guest (see hermetic.py): finds its memory, and goes on there.
PATH=/bin
for name in insmod mkdir mount sleep switch_root tar umount; do busybox ln -s busybox /bin/$name; done
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in /modules/*; do insmod "$module"; done
until [ -b /dev/pmem0 ] && [ -b /dev/pmem1 ]; do sleep 0.01; done
# Which comes first is up to the kernel. Whether a read has to note its time would depend on when
# the file was made.
programs=/dev/pmem0 directory=/dev/pmem1
mount -t ext4 -o noatime $programs /system
if ! [ -d /system/usr ]; then
    umount /system
    programs=/dev/pmem1 directory=/dev/pmem0
    mount -t ext4 -o noatime $programs /system
fi
mount -t ext4 -o noatime $directory /system/experiment
tar -x -C /system -f /payload.tar
mount --move /dev /system/dev
mount --move /sys /system/sys
mount --move /proc /system/proc
exec switch_root /system /experiment-main

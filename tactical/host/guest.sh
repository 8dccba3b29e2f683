#!/bin/sh
# First program inside the virtual machine. QEMU hands over what to do as shell words, in an item of
# its firmware configuration: DIRECTORIES COMMAND [ARGUMENT...]
#
# The guest's root is the host's, over 9p without a cache, where each look at a file is a round
# trip. DIRECTORIES (separated by colons) hold only programs and libraries, which do not change
# while the guest lives, so they are mounted again with a cache. Then COMMAND runs; it gets what comes
# by standard input, whose end means "stop" and reaches it as SIGTERM.
item=/sys/firmware/qemu_fw_cfg/by_name/opt/org.tactical/command/raw
[ -e $item ] || modprobe qemu_fw_cfg
words=$(cat $item) || exit 255
eval "set -- $words"
directories=$1
shift

mkdir -p /run/cached
if mount -t 9p -o ro,trans=virtio,version=9p2000.L,access=any,msize=524288,cache=loose \
    tactical.cached /run/cached; then
    IFS=:
    for directory in $directories; do
        mount --bind "/run/cached$directory" "$directory"
    done
    unset IFS
else
    echo "tactical: no cached file system, continuing without" >&2
fi
chmod 1777 /tmp
export HOME=/root PYTHONDONTWRITEBYTECODE=1
echo "tactical: guest is up after $(cut -d' ' -f1 /proc/uptime) s"

exec 3<&0
# One stream: standard error has a port of its own, which would mix its lines with the others.
mknod /run/lines p
"$@" </run/lines 2>&1 3<&- &
worker=$!
{ cat <&3 >/run/lines; kill -TERM $worker; } 2>/dev/null &
watcher=$!
wait $worker
status=$?
kill $watcher 2>/dev/null
exit $status

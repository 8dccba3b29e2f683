#!/bin/sh
# QEMU that the kernel kills when its parent dies.
exec setpriv --pdeathsig KILL "qemu-system-$(uname -m)" "$@"

#!/usr/bin/env bash
# Installs what the testbed needs and is not there yet: system packages (system-packages.txt, by
# apt-get) and a virtual environment in .venv with this checkout in it. Does nothing the second
# time.
#
#   ./setup.sh            install what is missing
#   ./setup.sh --check    only print the missing system packages, one a line
#
# PYTHON=python3.12 ./setup.sh takes another interpreter than python3.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
PYTHON=${PYTHON:-python3}
VENV=.venv

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

has_kernel() { # MODULE,MODULE,... : one installed kernel has them all, and multipath TCP
    local release modules module
    for modules in /lib/modules/*/; do
        release=$(basename "$modules")
        [[ -e /boot/vmlinuz-$release ]] || continue
        if [[ -e /boot/config-$release ]]; then
            grep -qx CONFIG_MPTCP=y "/boot/config-$release" || continue
        fi
        for module in ${1//,/ }; do
            cat "$modules"modules.{dep,builtin} 2>/dev/null |
                grep -E "^[^: ]*/${module//_/[-_]}\.ko" >/dev/null || continue 2
        done
        return 0
    done
    return 1
}

provided() {
    case $1 in
    kernel:*) has_kernel "${1#kernel:}" ;;
    python:*) "$PYTHON" -c "import ${1#python:}" 2>/dev/null ;;
    static:*)
        command -v "${1#static:}" >/dev/null || return 1
        ! ldd "$(command -v "${1#static:}")" 2>/dev/null | grep '=>' >/dev/null
        ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# Lines of the list that something is missing of, as "package | alternative".
missing_packages() {
    local line names provides item
    while IFS= read -r line; do
        line=${line%%#*}
        [[ -n ${line//[[:space:]]/} && $line != \[* ]] || continue
        names=${line%%:*}
        provides=${line#*:}
        for item in $provides; do
            if ! provided "$item"; then
                printf '%s\n' "$names"
                break
            fi
        done
    done < system-packages.txt
}

first_known() { # the first of "a | b" that this distribution has
    local name
    for name in ${1//|/ }; do
        if apt-cache show "$name" >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return 0
        fi
    done
    return 1
}

install_packages() { # lines of "package | alternative"
    local names=() line name as_root=()
    command -v apt-get >/dev/null ||
        die "this script installs packages on Debian and Ubuntu only; install what provides:" \
            "$(printf '%s; ' "$@")"
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || die "not root, and there is no sudo, to install: $*"
        as_root=(sudo)
    fi
    say "updating the package lists"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update </dev/null >&2 ||
        say "warning: apt-get update failed; trying with the lists that are here"
    for line in "$@"; do
        name=$(first_known "$line") ||
            die "no package source offers any of: $line (is this machine offline?)"
        names+=("$name")
    done
    say "installing ${names[*]}"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq install \
        --no-install-recommends "${names[@]}" </dev/null >&2 ||
        die "apt-get could not install: ${names[*]} (is this machine offline?)"
}

[[ $PYTHON == python3 ]] || command -v "$PYTHON" >/dev/null || die "there is no PYTHON=$PYTHON"
mapfile -t missing < <(missing_packages)
if [[ ${1:-} == --check ]]; then
    printf '%s\n' "${missing[@]+"${missing[@]}"}" | sed '/^$/d; s/[[:space:]]*$//'
    exit 0
fi
[[ $# == 0 ]] || die "unknown argument $1; see the comment at the top of this script"
if ((${#missing[@]})); then
    install_packages "${missing[@]}"
    hash -r
fi

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "Python 3.11 or newer is needed, $PYTHON is $("$PYTHON" -V 2>&1);" \
        "give another with PYTHON=python3.12 ./setup.sh"

# What the environment was made from; it is made again when any of it changes.
stamp=$VENV/.made-from
state=$(
    "$PYTHON" -c 'import sys; print(sys.version, sys.prefix)'
    pwd
    cat pyproject.toml
)
if [[ ! -e $stamp || $(<"$stamp") != "$state" ]]; then
    if [[ ! -x $VENV/bin/python ]] || ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        say "making the virtual environment $VENV"
        "$PYTHON" -m venv --clear "$VENV"
    fi
    say "installing the Python packages (some minutes the first time)"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[test]' >&2 ||
        die "pip could not install the Python packages (is this machine offline?)"
    say "compiling the flow deviation solver, the reader of captures and the simulator (some 45 s, once)"
    "$VENV/bin/python" -c 'import captures, fdm, simulation as s; captures.prepare(); fdm.prepare(); s.prepare()' >&2 ||
        die "the solver, the reader of captures or the simulator could not be compiled"
    printf '%s\n' "$state" > "$stamp"
fi
say "ready"

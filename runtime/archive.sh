#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# archive.sh ARCHIVE NM OBJCOPY - when it was installed: its names begin with ebb_, too.
#
# What is hidden in the shared library is seen by whoever links the archive: a function of theirs
# with a name of ebb's own would be a second one, or be called in its place. So those names get a
# prefix. ARCHIVE is a path below the prefix that meson installs into.

set -eu
archive=$MESON_INSTALL_DESTDIR_PREFIX/$1
names=$(mktemp)
trap 'rm -f "$names"' EXIT
"$2" --defined-only --extern-only --format=posix "$archive" |
    awk 'NF >= 2 && $1 !~ /^ebb_/ && $1 !~ /:$/ { print $1, "ebb__" $1 }' | sort -u >"$names"
"$3" --redefine-syms="$names" "$archive"

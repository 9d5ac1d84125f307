#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# bumpalo.sh - builds bumpalo.rs, with Debian's bumpalo inside, into an archive that C links.
#
#     bumpalo.sh RUSTC CRATE_FOLDER SOURCE ARCHIVE
#
# Debian's cargo registry is a folder of sources; two calls of rustc need no cargo and no network.

set -eu
rustc=$1 crate=$2 source=$3 archive=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
flags="--edition 2021 -C opt-level=3 -C panic=abort"

# shellcheck disable=SC2086  # flags are words
"$rustc" $flags --crate-type rlib --crate-name bumpalo --cap-lints allow \
    -o "$scratch/libbumpalo.rlib" "$crate/src/lib.rs"
# shellcheck disable=SC2086
"$rustc" $flags --crate-type staticlib --crate-name peer_bumpalo \
    --extern "bumpalo=$scratch/libbumpalo.rlib" -o "$archive" "$source"

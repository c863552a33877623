#!/usr/bin/env bash
# tools/test compiles nothing again that tools/run has compiled, although tools/setup has installed more
# packages since: none of them changes a command that builds the programs.
#
#   rebuild_test.sh ROOT
source "$1/tools/lib.sh"
unset FIRN_CCACHE FIRN_WERROR

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# commands NAME: writes what ninja would run for the programs of tools/run to a file.
commands() { ninja -C "$work/build" -t commands firn firn-server >"$work/$1"; }

configure release -B "$work/build" -DFIRN_TESTS=OFF
commands run
mkdir "$work/installed"
for tool in ccache mold; do install -m 755 /dev/stdin "$work/installed/$tool" <<<'#!/bin/sh'; done
PATH=$work/installed:$PATH configure release -B "$work/build" -DFIRN_TESTS=ON
commands test

diff "$work/run" "$work/test" >"$work/diff" || {
  head -c 2000 "$work/diff"
  fail "tools/test would compile $(grep -c '^>' "$work/diff") steps of $(wc -l <"$work/run") again"
}
! grep -m 1 -oE '(ccache|-Werror|-fuse-ld=mold) .{100}' "$work/run" || fail "a build of tools/run depends on such an option"

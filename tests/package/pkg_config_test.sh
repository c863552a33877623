#!/usr/bin/env bash
# Compiles and links programs with the flags that pkg-config prints for the installed libraries.
#
#   pkg_config_test.sh BUILD_TREE ROOT
set -euo pipefail
build=$1 root=$2
source "$root/tests/install/own_server.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" --component dev >"$work/log" ||
  { cat "$work/log"; echo "installing failed"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name firn-client.pc)")
export PKG_CONFIG_PATH

# compiled NAME SOURCE: compiles and links with the flags of firn-NAME.pc.
compiled() {
  local -a flags
  read -ra flags < <(pkg-config --cflags --libs "firn-$1")
  g++ -std=c++20 "$2" -o "$work/$1" "${flags[@]}"
}

compiled client "$root/tests/install/client_consumer/list_client.cc"
compiled client-registry "$root/tests/install/client_consumer/registry_client.cc"
compiled embedded "$root/tests/embedded/example.cc"
block_of cpp "$root/server/OWN.md" >"$work/own_server.cc"
compiled server "$work/own_server.cc"
said=$("$work/client")
[[ $said == *"127.0.0.1:1 unreachable"* ]] || { echo "a client without a server printed: $said"; exit 1; }
ids=$("$work/embedded" "$work" 2>"$work/log") || { cat "$work/log"; exit 1; }
[[ $(sort -un <<<"$ids" | wc -l) == 3 ]] || { echo "three ids wanted, got: $ids"; exit 1; }
"$work/server" --help >"$work/log"
grep -q '^  strategy voucher$' "$work/log" || { cat "$work/log"; echo "the own server is not one"; exit 1; }

#!/usr/bin/env bash
# Every preset can be configured. The client library can be built and installed without server and
# tools, and a user's project needs nothing else.
#
#   presets_test.sh ROOT
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
source "$here/headers.sh"
source "$1/tools/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t presets < <(cmake --list-presets | sed -n 's/^  "\([^"]*\)".*/\1/p')
if [[ " ${presets[*]} " != *" dev "* ]]; then
  echo "unexpected presets: ${presets[*]}"
  exit 1
fi
for preset in "${presets[@]}"; do
  [[ $preset != arm64 ]] || continue  # needs the sysroot that tools/release-check arm64 makes
  cmake --preset "$preset" -B "$work/$preset" >"$work/log" 2>&1 ||
    { cat "$work/log"; echo "the preset $preset cannot be configured"; exit 1; }
done

# In its own folder, as deep as the other builds and with their options, so that ccache can reuse their objects.
(configure client-only) && cmake --build --preset client-only -j 2 >"$work/log" 2>&1 ||
  { tail -n 50 "$work/log"; echo "the client library cannot be built alone"; exit 1; }
programs=$(ls build/client-only/bin 2>/dev/null || true)
if [[ -n $programs ]]; then
  echo "the client library installs programs: $programs"
  exit 1
fi

cmake --install build/client-only --prefix "$work/prefix" >"$work/log" ||
  { cat "$work/log"; echo "the client library cannot be installed"; exit 1; }
expect_headers "$work/prefix" "$here/headers_client.txt"
cmake -S "$here/client_consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  >"$work/log" 2>&1 && cmake --build "$work/consumer" >>"$work/log" 2>&1 ||
  { cat "$work/log"; echo "another project cannot use the client alone"; exit 1; }
said=$("$work/consumer/list_client")
if [[ $said != *"127.0.0.1:1 unreachable"* ]]; then
  echo "a client without a server printed: $said"
  exit 1
fi
said=$("$work/consumer/registry_client")
if [[ $said != *"there is no directory /nowhere/firn"* ]]; then
  echo "a client of a missing directory printed: $said"
  exit 1
fi
if ldd "$work/consumer/list_client" | grep -i zookeeper; then
  echo "a client with a list should not link ZooKeeper"
  exit 1
fi

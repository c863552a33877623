#!/usr/bin/env bash
# Every preset can be configured, and the client library can be built without server and tools.
#
#   presets_test.sh ROOT
set -euo pipefail
cd "$1"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t presets < <(cmake --list-presets | sed -n 's/^  "\([^"]*\)".*/\1/p')
if [[ " ${presets[*]} " != *" dev "* ]]; then
  echo "these are not our presets: ${presets[*]}"
  exit 1
fi
for preset in "${presets[@]}"; do
  cmake --preset "$preset" -B "$work/$preset" >"$work/log" 2>&1 ||
    { cat "$work/log"; echo "the preset $preset cannot be configured"; exit 1; }
done

# In its own place, as deep as the other builds, so that ccache knows what they have compiled.
cmake --preset client-only >"$work/log" 2>&1 &&
  cmake --build --preset client-only -j 2 >"$work/log" 2>&1 ||
  { tail -n 50 "$work/log"; echo "the client library cannot be built alone"; exit 1; }
programs=$(ls build/client-only/bin 2>/dev/null || true)
if [[ -n $programs ]]; then
  echo "the client library brings programs along: $programs"
  exit 1
fi

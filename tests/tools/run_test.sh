#!/usr/bin/env bash
# tools/run starts a server, prints ids through the client, and ends it. A second run continues where
# the first one ended.
#
#   run_test.sh ROOT BIN
set -euo pipefail
root=$1 bin=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"  # a relative folder is the caller's

ids=
for run in first second; do
  timeout 120 "$root/tools/run" --once --bin "$bin" --folder state --port 0 >"$work/$run" 2>&1 || {
    cat "$work/$run"
    echo "the $run run failed"
    exit 1
  }
  ids+=$(grep -oE '^[0-9]{15,}$' "$work/$run")$'\n'
done
count=$(sed '/^$/d' <<<"$ids" | wc -l)
unique=$(sed '/^$/d' <<<"$ids" | sort -u | wc -l)
if ((count != 8 || unique != 8)); then
  cat "$work/first" "$work/second"
  echo "wanted 8 different ids of two runs, got $count lines, $unique of them different"
  exit 1
fi

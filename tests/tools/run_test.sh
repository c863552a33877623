#!/usr/bin/env bash
# tools/run starts a server, prints ids, and ends it. The first ids need no firn command, which a new machine
# has not built yet. A second run continues where the first one ended.
#
#   run_test.sh ROOT BIN
set -euo pipefail
root=$1 bin=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"  # a relative folder is the caller's
mkdir server
ln -s "$bin/firn-server" server

broken() {
  cat "$work"/first "$work"/second
  echo "$1"
  exit 1
}

touch first second
timeout 120 "$root/tools/run" --once --bin server --folder state --port 0 >first 2>&1 ||
  broken "the first run failed"
timeout 120 "$root/tools/run" --bin "$bin" --folder state --port 0 >second 2>&1 &
run=$!
while kill -0 "$run" 2>/dev/null && ! grep -q '^Ctrl-C ends' second; do sleep 0.1; done
kill "$run" 2>/dev/null || broken "the second run ended by itself"
wait "$run" || true

# Ids are a line of the firn command, or texts in an answer to curl.
ids=$(grep -ohE '^[0-9]{15,}$|"[0-9]{15,}"' first second | tr -d '"')
if (($(wc -l <<<"$ids") != 12 || $(sort -u <<<"$ids" | wc -l) != 12)); then
  broken "wanted 12 different ids of two runs, got $(wc -l <<<"$ids"), $(sort -u <<<"$ids" | wc -l) of them different"
fi
grep -q "^  $bin/firn next --watch " second || broken "the second run named no next step"

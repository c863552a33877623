#!/usr/bin/env bash
# The wire contract generates, without a warning, for every language that we promise stubs for,
# and Python and Node, where present, can read the outcome.
#
#   generates_test.sh THRIFT_COMPILER FILE LANGUAGE
set -euo pipefail
compiler=$1 file=$2 language=$3

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
complaints=$("$compiler" -strict --gen "$language" -out "$out" "$file" 2>&1)
if [[ -n $complaints ]]; then
  echo "generating for $language complains: $complaints"
  exit 1
fi
for service in Snowflake IdService; do
  if [[ -z $(find "$out" -name "$service.*" -size +1k) ]]; then
    echo "generating for $language made no $service"
    exit 1
  fi
done
case $language in
  py) python3 -m compileall -q "$out" ;;
  js:*) command -v node >/dev/null || exit 0; find "$out" -name '*.js' -exec node --check {} \; ;;
esac

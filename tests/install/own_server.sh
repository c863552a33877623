# Extracts the server of server/OWN.md from its page and tries it. Sourced by install_test.sh, never run.

source "$(dirname "${BASH_SOURCE[0]}")/../../tools/lib.sh"

# block_of LANGUAGE PAGE: the contents of the page's fenced block in that language.
block_of() { sed -n '/^```'"$1"'$/,/^```$/{/^```/d;p}' "$2"; }

# ids TAG [COUNT]: prints whatever the server at $port answers.
ids() { curl -s --max-time 60 "http://127.0.0.1:$port/v1/ids/$1?form=number&count=${2:-1}"; }

# expect_ids TAG REGEX: fails unless an answer matches within a minute.
expect_ids() {
  local said i
  for ((i = 0; i < 600; i++)); do
    said=$(ids "$1") || true  # it may not listen yet
    [[ ! $said =~ $2 ]] || return 0
    sleep 0.1
  done
  echo "for tag $1 the server answers: $said"
  cat "$log"
  exit 1
}

# expect_own_server PROGRAM FIRN FOLDER: checks that its strategy, plugin, store and handler work, and
# that it ends as firn-server does. Sets `own`, so that the caller can end it.
expect_own_server() {
  local program=$1 firn=$2 folder=$3 log=$3/own.log port registry=dir://$3/own_registry
  free_port
  "$program" --help >"$log"
  grep -q '^  strategy voucher$' "$log" && grep -q '^  plugin single$' "$log" &&
    grep -q '^  store own$' "$log" ||
    { echo "--help does not list what was added to the server"; exit 1; }
  "$program" --registry="$registry" --state_dir="$folder/own_state" --listen="127.0.0.1:$port" \
    --admin_listen="127.0.0.1:$port" 2>"$log" &
  own=$!
  expect_ids default '"ids":\["[0-9]+'
  "$firn" tags create ticket strategy=voucher --force --registry="$registry" >/dev/null
  "$firn" tags create order store=own plugins=single --force --registry="$registry" >/dev/null
  "$firn" tags create stranger strategy=unheard --force --registry="$registry" >/dev/null
  expect_ids ticket '"ids":\["[0-9]+'
  expect_ids order '"ids":\["[0-9]+'
  expect_ids stranger "only: dated, segment, snowflake, voucher"
  [[ $(ids order 2) == *"one at a time, please"* ]] || { echo "its plugin passed a call for two ids"; exit 1; }
  grep -q "^refused: one at a time, please$" "$log" || { cat "$log"; echo "its handler was not called"; exit 1; }
  kill -TERM "$own"
  wait "$own" || { cat "$log"; echo "the own server ended with $?"; exit 1; }
  own=
}

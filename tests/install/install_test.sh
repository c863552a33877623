#!/usr/bin/env bash
# Another project finds, links and runs the installed libraries.
#
#   install_test.sh BUILD_TREE CONSUMER_PROJECT EMBEDDED_EXAMPLE PAGE_OF_OWN_SERVER PAGE_OF_EMBEDDED
set -euo pipefail
build=$1 consumer=$2 example=$3 page=$4 embedding=$5
here=$(dirname "$(readlink -f "$0")")
source "$here/headers.sh"
source "$here/own_server.sh"

work=$(mktemp -d)
own=
trap '[[ -z $own ]] || kill -KILL "$own" 2>/dev/null || true; rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" --component dev >"$work/log" ||
  { cat "$work/log"; echo "installing failed"; exit 1; }
expect_headers "$work/prefix" "$here/headers.txt"
cp -r "$consumer" "$work/consumer"
cp "$example" "$work/consumer/embedded_example.cc"
block_of cpp "$page" >"$work/consumer/own_server.cc"

cmake -S "$work/consumer" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/build" >>"$work/log" 2>&1 ||
  { cat "$work/log"; echo "another project cannot use the installed libraries"; exit 1; }

said=$("$work/build/consumer")
if [[ $said != "tick 1000 machine 5 sequence 7" ]]; then
  echo "the other project's program printed: $said"
  exit 1
fi
ids=$("$work/build/embedded_example" "$work" 2>"$work/log") ||
  { cat "$work/log"; echo "the example of the README does not run outside the source tree"; exit 1; }
if [[ $(sort -un <<<"$ids" | wc -l) != 3 ]]; then
  echo "the example of the README should print three ids, it printed: $ids"
  exit 1
fi
if [[ -s $work/log ]]; then
  cat "$work/log"
  echo "a program that embeds Firn has the lines above on its stderr, which is its own"
  exit 1
fi
expect_own_server "$work/build/own_server" "$build/bin/firn" "$work"
# The program and the project of the page on embedding, unchanged except for the folder.
mkdir "$work/page"
block_of cpp "$embedding" | sed "s|/var/lib/shop|$work/shop|" >"$work/page/ids.cc"
block_of cmake "$embedding" >"$work/page/CMakeLists.txt"
mkdir "$work/shop"
cmake -S "$work/page" -B "$work/page/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/page/build" >>"$work/log" 2>&1 ||
  { cat "$work/log"; echo "the project of $embedding does not build"; exit 1; }
id=$("$work/page/build/ids" 2>"$work/log") ||
  { cat "$work/log"; echo "the program of $embedding fails"; exit 1; }
[[ $id =~ ^[0-9]+$ ]] || { echo "the program of $embedding printed: $id"; exit 1; }
# The installed package must not refer to the build tree.
if grep -rl -e "$build" "$work/prefix"/lib*/cmake "$work/prefix"/lib/*/cmake 2>/dev/null; then
  echo "the files above name the build tree"
  exit 1
fi

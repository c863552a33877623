# Checks of the installed headers, for the scripts in this folder. Sourced, never run.

# expect_headers PREFIX LIST: the headers there must be those of the list, and include no others of Firn.
expect_headers() {
  local root=$1/include/firn header included
  if ! diff "$2" <(cd "$root" && find . -name '*.h' -printf '%P\n' | LC_ALL=C sort); then
    echo "< is missing, > is not in the list: $2 lists the headers that users may include"
    return 1
  fi
  while IFS=: read -r header included; do
    [[ ! -e $root/$included && ! -e $root/${header%/*}/$included ]] || continue
    echo "$header is installed and includes $included, which is not"
    return 1
  done < <(cd "$root" && grep -roH --include='*.h' '^#include "[^"]*"' . |
    sed -E 's/^\.\/([^:]*):#include "([^"]*)"$/\1:\2/')
}

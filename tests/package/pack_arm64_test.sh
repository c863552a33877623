#!/usr/bin/env bash
# Tests tools/package/pack_arm64.sh on a small package: pack_arm64_test.sh ROOT
set -euo pipefail
pack=$1/tools/package/pack_arm64.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

wrong() { echo "$*"; exit 1; }

# make FOLDER...: builds demo_1.0_amd64.deb with a program in /usr/bin, and a file in each folder.
make() {
  rm -rf tree demo_*.deb
  mkdir -p tree/DEBIAN tree/usr/bin
  printf '%s\n' 'Package: demo' 'Version: 1.0' 'Architecture: amd64' 'Maintainer: Firn <firn@localhost>' \
    'Depends: libc6' 'Description: a test' >tree/DEBIAN/control
  echo 'old program' >tree/usr/bin/demo
  chmod 755 tree/usr/bin/demo
  for folder in "$@"; do
    mkdir -p "tree/$folder"
    echo "$folder" >"tree/$folder/a file"
  done
  (cd tree && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | xargs -0 md5sum >DEBIAN/md5sums)
  dpkg-deb --root-owner-group --build tree demo_1.0_amd64.deb >/dev/null
}

# check: packs for arm64, and compares the result with the package.
check() {
  "$pack" demo_1.0_amd64.deb arm64/demo || wrong "$pack failed for a package with $*"
  [[ $(dpkg-deb --field demo_1.0_arm64.deb Architecture) == arm64 ]] || wrong "the architecture is not arm64"
  for field in Package Version Depends; do
    [[ $(dpkg-deb --field demo_1.0_arm64.deb $field) == "$(dpkg-deb --field demo_1.0_amd64.deb $field)" ]] ||
      wrong "the field $field differs"
  done
  rm -rf packed
  dpkg-deb --raw-extract demo_1.0_arm64.deb packed
  cmp packed/usr/bin/demo arm64/demo || wrong "the package does not contain the program for arm64"
  [[ -x packed/usr/bin/demo ]] || wrong "the program is not executable"
  (cd packed && md5sum --check --strict --quiet DEBIAN/md5sums) || wrong "a checksum is wrong"
  [[ $(wc -l <packed/DEBIAN/md5sums) == $(wc -l <tree/DEBIAN/md5sums) ]] || wrong "a file has no checksum"
}

mkdir arm64
echo 'new program' >arm64/demo
for folders in usr/share 'usr/share etc/demo' 'usr/share lib/systemd' 'etc lib opt'; do
  # shellcheck disable=SC2086
  make $folders
  check "$folders"
done

echo 'other program' >arm64/other
! "$pack" demo_1.0_amd64.deb arm64/other 2>said || wrong "a program that the package lacks was packed"
grep -q 'does not contain /usr/bin/other' said || wrong "the message does not name the program: $(cat said)"
[[ $(ls) == $'arm64\ndemo_1.0_amd64.deb\ndemo_1.0_arm64.deb\npacked\nsaid\ntree' ]] || wrong "it left files: $(ls)"

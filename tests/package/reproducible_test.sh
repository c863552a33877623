#!/usr/bin/env bash
# Packs a build and builds the image again. The packages have equal bytes and the image has the same digest as those
# that make.sh and image.sh made earlier.
#
#   reproducible_test.sh ROOT BUILD_TREE FOLDER      FOLDER was filled by make.sh and image.sh
set -euo pipefail
root=$1 build=$2 folder=$3 again=$3/again
here=$(dirname "$(readlink -f "$0")")
[[ -f $folder/digest ]] || { echo "skipped: no image was made"; exit 77; }

rm -rf "$again"
mkdir "$again"
trap 'rm -rf "$again"' EXIT
ln "$folder"/{image,machine}.{tar,list} "$again"
"$here/make.sh" "$build" "$again"
faults=0
for deb in "$folder"/debs/*.deb; do
  cmp "$deb" "$again/debs/$(basename "$deb")" || faults=1
done
((faults == 0)) || { echo "the packages of two builds differ"; exit 1; }

"$here/image.sh" "$root" "$again"
cmp "$folder/packages" "$again/packages" || { echo "the mirror's packages changed between the builds"; exit 1; }
cmp "$folder/digest" "$again/digest" || { echo "the images of two builds differ"; exit 1; }
echo "both images have the digest $(cat "$folder/digest")"

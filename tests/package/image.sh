#!/usr/bin/env bash
# Builds the image by its Dockerfile, on Debian's packages instead of Docker's images, with the .deb files
# of this build.
#
#   image.sh ROOT FOLDER      FOLDER was filled by make.sh; the image is written to FOLDER/storage
set -euo pipefail
root=$1 folder=$2
((EUID == 0)) || { echo "skipped: only root makes namespaces"; exit 77; }
[[ -f $folder/image.tar ]] || { echo "skipped: no root of Debian was made"; exit 77; }
log=$folder/image.log

buildah() { command buildah --root "$folder/storage" --runroot "$folder/run" --storage-driver vfs "$@"; }

rm -rf "$folder"/{storage,run,context}
mkdir -p "$folder"/{storage,run} "$folder/context/build/packages" "$folder/context/tools/package"
cp "$folder"/debs/*.deb "$folder/context/build/packages"
cp "$root/tools/package/Dockerfile" "$folder/context/tools/package"
{
  base=$(buildah from scratch)
  buildah add "$base" "$folder/image.tar" /
  buildah commit --rm "$base" firn-base
  buildah build --format docker --isolation chroot --build-arg BASE=localhost/firn-base \
    --file "$folder/context/tools/package/Dockerfile" --tag firn "$folder/context"
} >"$log" 2>&1 || { cat "$log"; echo "the image cannot be built"; exit 1; }

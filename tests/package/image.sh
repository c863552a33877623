#!/usr/bin/env bash
# Builds the image by its Dockerfile, on Debian's packages instead of Docker's images, with the .deb files
# of this build.
#
#   image.sh ROOT FOLDER      FOLDER was filled by make.sh; the image is written to FOLDER/storage and FOLDER/oci.tar, its
#                             digest to FOLDER/digest, its Debian packages, as sbom.py reads them, to FOLDER/packages
set -euo pipefail
root=$1 folder=$2
((EUID == 0)) || { echo "skipped: only root makes namespaces"; exit 77; }
[[ -f $folder/image.tar ]] || { echo "skipped: no root of Debian was made"; exit 77; }
log=$folder/image.log

buildah() { command buildah --root "$folder/storage" --runroot "$folder/run" --storage-driver vfs "$@"; }

rm -rf "$folder"/{storage,run,context,digest,oci.tar}
mkdir -p "$folder"/{storage,run} "$folder/context/build/packages" "$folder/context/tools/package"
cp "$folder"/debs/*.deb "$folder/context/build/packages"
cp "$root/tools/package/Dockerfile" "$folder/context/tools/package"
# Any date: the times of all files, and of the image.
export SOURCE_DATE_EPOCH=1767225600
{
  base=$(buildah from scratch)
  buildah add "$base" "$folder/image.tar" /
  buildah commit --timestamp "$SOURCE_DATE_EPOCH" --rm "$base" firn-base
  buildah build --format docker --isolation chroot --build-arg BASE=localhost/firn-base \
    --timestamp "$SOURCE_DATE_EPOCH" --build-arg SOURCE_DATE_EPOCH \
    --file "$folder/context/tools/package/Dockerfile" --tag firn "$folder/context"
  # In OCI's format, because buildah writes the random id of its container into Docker's.
  buildah push --disable-compression --format oci --digestfile "$folder/digest" firn "oci-archive:$folder/oci.tar:firn"
  made=$(buildah from firn)
  dpkg-query --admindir="$(buildah mount "$made")/var/lib/dpkg" -W \
    -f "$("$root/tools/package/sbom.py" --format)" >"$folder/packages"
  buildah rm "$made"
} >"$log" 2>&1 || { cat "$log"; echo "the image cannot be built"; exit 1; }

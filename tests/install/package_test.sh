#!/usr/bin/env bash
# The build creates .deb files with the contents that their names promise.
#
#   package_test.sh BUILD_TREE COMPONENT...
set -euo pipefail
build=$1
shift

command -v dpkg-shlibdeps >/dev/null || { echo "no dpkg-dev here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work" >"$work/log" 2>&1 ||
  { cat "$work/log"; echo "cpack failed"; exit 1; }

fault() { echo "$*"; exit 1; }

# holds PACKAGE REGEX: the package has a file that the expression matches.
holds() {
  dpkg-deb --contents "$work"/"$1"_*.deb | awk '{ print $6 }' >"$work/contents"
  grep -qE "$2" "$work/contents" || { cat "$work/contents"; fault "$1 holds nothing like $2"; }
  ! grep -qE '^\./(tmp|work|root|home|build)' "$work/contents" || fault "$1 writes outside the system"
}

for component in "$@"; do
  case $component in
    contract)
      holds firn-thrift '^\./usr/share/firn/firn\.thrift$'
      ! grep -vE '/$|firn\.thrift$|/copyright$' "$work/contents" ||
        fault "firn-thrift holds more than the wire contract"
      [ -z "$(dpkg-deb --field "$work"/firn-thrift_*.deb Depends Recommends)" ] ||
        fault "firn-thrift pulls other packages"
      [ "$(dpkg-deb --field "$work"/firn-thrift_*.deb Architecture)" = all ] ||
        fault "firn-thrift is for one machine only"
      ;;
    dev)
      holds libfirn-dev '^\./usr/include/firn/common/id/layout\.h$'
      holds libfirn-dev '^\./usr/include/firn/thrift/gen/IdService\.h$'
      holds libfirn-dev '^\./usr/lib/(.*/)?libfirn_common_id\.a$'
      holds libfirn-dev '^\./usr/lib/(.*/)?cmake/firn/firn-config\.cmake$'
      holds libfirn-dev '^\./usr/lib/(.*/)?pkgconfig/firn-client\.pc$'
      dpkg-deb --field "$work"/libfirn-dev_*.deb Depends | grep -q libthrift-dev ||
        fault "libfirn-dev does not depend on what its libraries need"
      dpkg-deb --field "$work"/libfirn-dev_*.deb Depends | grep -q 'firn-thrift (= ' ||
        fault "libfirn-dev does not depend on its own wire contract"
      ;;
    server)
      holds firn-server '^\./usr/bin/firn-server$'
      # The unit's user exists, and can own the files of secrets in the example of flags.
      dpkg-deb --extract "$work"/firn-server_*.deb "$work/server"
      dpkg-deb --control "$work"/firn-server_*.deb "$work/control"
      unit=$work/server/usr/lib/systemd/system/firn-server.service
      user=$(sed -n 's/^User=//p' "$unit")
      [ -n "$user" ] || fault "the unit names no user that could own the files of secrets"
      ! grep -q '^DynamicUser=yes' "$unit" || fault "a dynamic user cannot own files of secrets"
      grep -q "useradd.*" "$work/control/postinst" && grep -q "\b$user$" "$work/control/postinst" ||
        fault "installing does not create the user $user"
      [ -x "$work/control/postinst" ] || fault "postinst cannot be run"
      grep -q -- "-o $user .*-m 0600" "$work/server/etc/firn/firn-server.flags" ||
        fault "the flags do not name the owner of the files of secrets"
      grep -qxF /etc/firn/firn-server.flags "$work/control/conffiles" ||
        fault "an upgrade would overwrite the operator's flags"
      holds firn-server '^\./usr/lib/udev/rules\.d/60-firn-server\.rules$'
      holds firn-server '^\./usr/share/man/man8/firn-server\.8\.gz$'
      for file in share/firn/alerts.yml share/firn/grafana.json share/firn/prometheus.yml \
        share/doc/firn-server/RUNBOOK.md; do
        holds firn-server "^\\./usr/${file//./\\.}$"
      done
      ;;
    tools)
      holds firn-tools '^\./usr/bin/firn$'
      dpkg-deb --control "$work"/firn-tools_*.deb "$work/tools-control"
      grep -qxF /etc/firn/firn.flags "$work/tools-control/conffiles" ||
        fault "an upgrade would overwrite the operator's firn.flags"
      holds firn-tools '^\./usr/share/man/man1/firn\.1\.gz$'
      holds firn-tools '^\./usr/share/bash-completion/completions/firn$'
      ;;
    *) fault "this test does not know the contents of the component $component" ;;
  esac
done
echo "packed:" "$work"/*.deb

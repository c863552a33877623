# Read by CPack when it packs: the version names the release of Debian, with whose libraries the programs are linked.

file(STRINGS /etc/os-release release REGEX "^VERSION_ID=")
string(REGEX REPLACE "[^0-9]" "" release "${release}")
set(CPACK_DEBIAN_PACKAGE_VERSION ${CPACK_PACKAGE_VERSION}~deb${release})
string(REPLACE "(= ${CPACK_PACKAGE_VERSION})" "(= ${CPACK_DEBIAN_PACKAGE_VERSION})"
  CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${CPACK_DEBIAN_DEV_PACKAGE_DEPENDS}")

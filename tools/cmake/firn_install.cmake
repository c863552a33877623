# What is installed and packed: the exported CMake package, and one .deb for each component that
# something was installed in. Included last, when every target is known.

include(CMakePackageConfigHelpers)

get_property(components GLOBAL PROPERTY FIRN_COMPONENTS)
list(REMOVE_DUPLICATES components)
get_property(installed GLOBAL PROPERTY FIRN_INSTALLED)

# What our exported libraries are linked with, and the Debian package that holds it. Only what comes
# with the compiler needs none.
set(FIRN_DEBIAN_PACKAGES
  Threads=
  glog=libgoogle-glog-dev
  gflags=libgflags-dev
  Boost=libboost-dev
  OpenSSL=libssl-dev
  prometheus-cpp=prometheus-cpp-dev
  thrift=libthrift-dev
  zookeeper_mt=libzookeeper-mt-dev
  mariadb=libmariadb-dev
  pq=libpq-dev
  bson-1.0=libbson-dev
  hiredis=libhiredis-dev)

# Which CMake packages they need: the X of every X::Y. Which Debian packages: of those, and of
# libraries that are named or given by their path. One that the table lacks is an error here, not a
# libfirn-dev that cannot be linked.
set(FIRN_FOREIGN_PACKAGES)
set(FIRN_DEPENDS)
foreach(target IN LISTS installed)
  get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
  list(TRANSFORM links REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1")
  list(FILTER links EXCLUDE REGEX "^firn::|BUILD_INTERFACE|NOTFOUND$")
  foreach(link IN LISTS links)
    string(REGEX REPLACE "::.*|^.*/lib|\\.(so|a)$" "" name "${link}")
    if(link MATCHES "::")
      list(APPEND FIRN_FOREIGN_PACKAGES ${name})
    endif()
    set(package ${FIRN_DEBIAN_PACKAGES})
    list(FILTER package INCLUDE REGEX "^${name}=")
    if(NOT package)
      message(FATAL_ERROR "${CMAKE_CURRENT_LIST_FILE} does not say which Debian package holds "
        "${link}, which ${target} is linked with")
    endif()
    list(APPEND FIRN_DEPENDS ${package})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES FIRN_FOREIGN_PACKAGES)
list(TRANSFORM FIRN_DEPENDS REPLACE "^.*=" "")
list(REMOVE_ITEM FIRN_DEPENDS "")
list(REMOVE_DUPLICATES FIRN_DEPENDS)
list(SORT FIRN_DEPENDS)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/firn)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/firn-config.cmake.in
  ${PROJECT_BINARY_DIR}/firn-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/firn-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(EXPORT firn-targets NAMESPACE firn:: DESTINATION ${package_dir} COMPONENT dev)
install(FILES ${PROJECT_BINARY_DIR}/firn-config.cmake ${PROJECT_BINARY_DIR}/firn-config-version.cmake
  DESTINATION ${package_dir} COMPONENT dev)

include(firn_pkg_config)

set(FIRN_PACKAGE_contract firn-thrift)
set(FIRN_PACKAGE_dev libfirn-dev)
set(FIRN_PACKAGE_server firn-server)
set(FIRN_PACKAGE_tools firn-tools)
foreach(component IN LISTS components)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${FIRN_PACKAGE_${component}} COMPONENT ${component})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${FIRN_PACKAGE_${component}})
endforeach()

# The user of the server's unit, its flags as a file of the operator's, and what ends with them.
set(control ${PROJECT_SOURCE_DIR}/tools/package/debian)
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONTROL_EXTRA ${control}/tools/conffiles)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
  ${control}/conffiles ${control}/postinst ${control}/prerm ${control}/postrm)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "passwd, tzdata")
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS firn-tools)
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS libmongoc-1.0-0)  # stores of kind mongo load it
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/tools/package/stage.cmake)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "Firn maintainers <firn@localhost>")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_CONTRACT_DESCRIPTION "Firn's wire contract, to generate clients from")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Firn's libraries and headers")
set(CPACK_COMPONENT_SERVER_DESCRIPTION "a server that issues 64-bit ids never issued twice")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "the firn command: ids, audit, drills and load for a cluster")
# One file for any machine, which pulls nothing.
set(CPACK_DEBIAN_CONTRACT_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_CONTRACT_PACKAGE_SHLIBDEPS OFF)
# What the static libraries have to be linked with, and what their stubs were generated from.
list(JOIN FIRN_DEPENDS ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS)
string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", firn-thrift (= ${PROJECT_VERSION})")
include(CPack)

# Builds only what is installed; ./tools/test does so before it tests the installed tree.
get_property(programs GLOBAL PROPERTY FIRN_INSTALLED_PROGRAMS)
add_custom_target(firn_installed DEPENDS ${installed} ${programs})
if(FIRN_TESTS AND CMAKE_BUILD_TYPE STREQUAL Release AND NOT FIRN_SANITIZE)
  foreach(tests firn_default_tests firn_tests firn_script_programs)
    add_dependencies(${tests} firn_installed)
  endforeach()
endif()

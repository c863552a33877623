# pkg-config's files for the libraries that programs of others begin with. Included by
# firn_install.cmake.

# How the linker is told of what our libraries are linked with.
set(FIRN_LINK_FLAGS
  Threads=-pthread
  glog=-lglog
  gflags=-lgflags
  Boost=
  OpenSSL=-lssl,-lcrypto
  prometheus-cpp=-lprometheus-cpp-core
  thrift=-lthrift
  zookeeper_mt=-lzookeeper_mt
  mariadb=-lmariadb
  pq=-lpq
  bson-1.0=-lbson-1.0
  hiredis=-lhiredis)

# firn_link_order(TARGET): puts it in front of FIRN_LINK_ORDER, after all that it needs.
function(firn_link_order target)
  get_property(order GLOBAL PROPERTY FIRN_LINK_ORDER)
  if(target IN_LIST order)
    return()
  endif()
  if(TARGET ${target})
    get_target_property(real ${target} ALIASED_TARGET)
    if(real)
      firn_link_order(${real})
      return()
    endif()
  endif()
  if(target MATCHES "^firn_")
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    list(TRANSFORM links REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1")
    list(FILTER links EXCLUDE REGEX "BUILD_INTERFACE|NOTFOUND$")
    foreach(link IN LISTS links)
      firn_link_order(${link})
    endforeach()
  endif()
  get_property(order GLOBAL PROPERTY FIRN_LINK_ORDER)
  set_property(GLOBAL PROPERTY FIRN_LINK_ORDER ${target} ${order})
endfunction()

# firn_pkg_config(LIBRARY DESCRIPTION): firn-LIBRARY.pc for firn_LIBRARY, dashes for underscores.
function(firn_pkg_config library description)
  set_property(GLOBAL PROPERTY FIRN_LINK_ORDER "")
  firn_link_order(firn_${library})
  get_property(order GLOBAL PROPERTY FIRN_LINK_ORDER)
  set(libs)
  foreach(target IN LISTS order)
    if(target MATCHES "^firn_")
      get_target_property(type ${target} TYPE)
      if(type STREQUAL STATIC_LIBRARY)
        list(APPEND libs -l${target})
      endif()
    else()
      string(REGEX REPLACE "::.*|^.*/lib|\\.(so|a)$" "" name "${target}")
      set(flags ${FIRN_LINK_FLAGS})
      list(FILTER flags INCLUDE REGEX "^${name}=")
      if(NOT flags)
        message(FATAL_ERROR "${CMAKE_CURRENT_LIST_FILE} does not say how ${target} is linked")
      endif()
      string(REGEX REPLACE "^[^=]*=" "" flags "${flags}")
      string(REPLACE "," ";" flags "${flags}")
      list(APPEND libs ${flags})
    endif()
  endforeach()
  list(JOIN libs " " libs)
  string(REPLACE _ - name firn-${library})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.pc @ONLY CONTENT
"# Where this file stands tells where the rest does.
prefix=\${pcfiledir}/@up@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@FIRN_INCLUDE_DIR@

Name: @name@
Description: @description@
Version: @PROJECT_VERSION@
Cflags: -I\${includedir}
Libs: -L\${libdir} @libs@
")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()

file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up ${up})
foreach(library IN ITEMS client client_registry embedded server)
  if(TARGET firn_${library})
    firn_pkg_config(${library} "64-bit ids that are never issued twice: firn::${library}")
  endif()
endforeach()

# How every target of Firn is built: one library a folder, headers named from the repository root,
# warnings on our own code only, sanitizers for everything.

include(GNUInstallDirs)
set(FIRN_INCLUDE_DIR ${CMAKE_INSTALL_INCLUDEDIR}/firn)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Installing takes what has been built; it does not build the tests first.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
# Every header of a library is compiled alone by the target all_verify_interface_header_sets.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

# An option, because installing ccache must not change the command of every object.
option(FIRN_CCACHE "Compile through ccache" OFF)
if(FIRN_CCACHE)
  find_program(FIRN_CCACHE_PROGRAM ccache REQUIRED)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FIRN_CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${FIRN_CCACHE_PROGRAM})
endif()

# Standard headers read once and not for each file, which is a quarter of a build with sanitizers.
# Builds without it prove that each file includes what it uses.
option(FIRN_PRECOMPILED "Precompile standard headers, and GoogleTest's for tests" OFF)

# The files of a library or program compiled some at a time, which reads their headers once: half of
# their time. So files of one folder share their nameless namespaces. That each file stands by itself
# is seen by tools/release-check, which compiles them one by one.
option(FIRN_UNITY "Compile the files of a library or program some at a time" OFF)

if(FIRN_SANITIZE)
  add_compile_options(-fsanitize=${FIRN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FIRN_SANITIZE})
  # The compiler looks for memory to use again at every 128 MB, a tenth of its time, and finds little.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=500000>)
  # These builds link hundreds of test programs, each in a third of the time.
  find_program(FIRN_MOLD mold)
  if(FIRN_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
if(FIRN_SANITIZE MATCHES undefined)
  # To check an object's type, the sanitizer asks the kernel through a pipe whether its memory can be
  # read. In a process without a free descriptor, it therefore reports valid objects. Tests make such
  # processes.
  add_compile_options(-fno-sanitize=vptr)
endif()
if(FIRN_SANITIZE MATCHES address AND FIRN_SANITIZE MATCHES undefined)
  # Checked at every access, which is a third of a file's compiling. A null pointer ends the process
  # under the address sanitizer anyway; -DFIRN_SANITIZE=undefined alone checks both.
  add_compile_options(-fno-sanitize=null,alignment)
  # The address sanitizer's checks are calls, which are compiled faster than what they do.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=asan-instrumentation-with-call-threshold=0>)
  # Programs that begin at a fixed place are a fifth sooner at work, and tests start thousands.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
if(FIRN_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Asio fences memory in a way that the thread sanitizer does not see; g++ warns of each place. With
  # -O1 it takes a moved std::string for one that is longer than its object.
  add_compile_options(-Wno-tsan -Wno-array-bounds)
endif()

if(FIRN_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "FIRN_LIBFUZZER needs clang: configure with CC=clang CXX=clang++")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_package(Threads REQUIRED)

# A later compiler may warn of more, which must not end the build of whoever only builds a release.
option(FIRN_WERROR "Treat warnings as errors" OFF)

# Linked by our own code, never by generated or foreign code.
add_library(firn_warnings INTERFACE)
target_compile_options(firn_warnings INTERFACE
  -Wall -Wextra $<$<BOOL:${FIRN_WERROR}>:-Werror> -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Wcast-qual -Wextra-semi -Wundef -Wvla
  -Wimplicit-fallthrough -Wmissing-declarations)
# The last three g++ 12 reports inside its own string and variant code, once -O2 or sanitizers
# change inlining; where it optimises they are nothing but that.
target_compile_options(firn_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:
  -Wduplicated-cond -Wlogical-op
  -Wno-error=maybe-uninitialized -Wno-error=restrict -Wno-error=stringop-overflow
  $<$<NOT:$<CONFIG:Debug>>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow>>)

if(FIRN_PRECOMPILED)
  if(FIRN_CCACHE)
    # As its manual asks of whoever precompiles headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros ${FIRN_CCACHE_PROGRAM})
    add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
  endif()
  # CMake makes the precompiled headers of a target that has something to compile.
  set(FIRN_NOTHING ${PROJECT_BINARY_DIR}/nothing.cc)
  file(CONFIGURE OUTPUT ${FIRN_NOTHING} CONTENT "int main() { return 0; }\n")
  add_library(firn_precompiled OBJECT ${FIRN_NOTHING})
  target_precompile_headers(firn_precompiled PRIVATE ${CMAKE_CURRENT_LIST_DIR}/precompiled.h)
  target_link_libraries(firn_precompiled PRIVATE firn_warnings)
endif()

# firn_precompiled(TARGET FROM): its files begin with the headers that FROM has precompiled, which
# must be of the same kind, library or program.
function(firn_precompiled target from)
  if(FIRN_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# firn_some_at_a_time(TARGET [cold]): its files are compiled so, where this build does. Sanitizers' builds
# and cold programs take more of them, as nothing is measured there.
function(firn_some_at_a_time target)
  if(FIRN_UNITY)
    set(files 6)
    if(FIRN_SANITIZE OR ARGN)
      set(files 12)
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
    # What g++ says of types in a nameless namespace wherever that is not the file it was given.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# firn_folder(NAME): adds the folder when it holds a CMakeLists.txt.
macro(firn_folder name)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/CMakeLists.txt)
    add_subdirectory(${name})
  endif()
endmacro()

# firn_library(NAME HEADERS ... [INSTALL ...] [SOURCES ...] [PUBLIC ...] [PRIVATE ...]
#              [COMPONENT name])
# Makes firn_NAME with the alias firn::NAME. Headers are compiled alone. It is installed and exported
# in the component, `dev` unless given; COMPONENT none leaves it out, which is for what only a
# program of ours links. INSTALL names those of the headers that are installed with it: what users
# include, and what that includes; `none` where they include nothing of it; all unless given.
function(firn_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "COMPONENT" "HEADERS;INSTALL;SOURCES;PUBLIC;PRIVATE")
  if(NOT arg_INSTALL)
    set(arg_INSTALL ${arg_HEADERS})
  endif()
  set(inner_headers ${arg_HEADERS})
  list(REMOVE_ITEM inner_headers ${arg_INSTALL})
  list(REMOVE_ITEM arg_INSTALL none)
  set(target firn_${name})
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target}
      PUBLIC ${arg_PUBLIC}
      PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:firn_warnings>)
    firn_precompiled(${target} firn_precompiled)
    firn_some_at_a_time(${target})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_PUBLIC})
  endif()
  add_library(firn::${name} ALIAS ${target})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_sources(${target} ${scope}
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_INSTALL})
  if(inner_headers)
    # Compiled alone as well, by whoever links the library.
    add_library(${target}_inner INTERFACE)
    target_link_libraries(${target}_inner INTERFACE ${target})
    target_sources(${target}_inner INTERFACE
      FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${inner_headers})
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY FIRN_LIBRARIES ${target})
  firn_install_library(${target} "${arg_COMPONENT}")
endfunction()

function(firn_install_library target component)
  if(component STREQUAL none)
    return()
  elseif(NOT component)
    set(component dev)
  endif()
  install(TARGETS ${target} EXPORT firn-targets COMPONENT ${component}
    FILE_SET HEADERS DESTINATION ${FIRN_INCLUDE_DIR} COMPONENT ${component})
  set_property(GLOBAL APPEND PROPERTY FIRN_INSTALLED ${target})
  set_property(GLOBAL APPEND PROPERTY FIRN_COMPONENTS ${component})
endfunction()

# firn_program(NAME SOURCES ... [LINK ...] [COMPONENT name] [COLD]): an executable in build/<preset>/bin,
# installed in the component when one is given (`server` or `tools`). COLD: compiled with -O1 in a release,
# which takes a third less. Not for a library of a server: the linker takes one copy of an inline function,
# perhaps the slower one, for all.
function(firn_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COLD" "COMPONENT" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} firn_warnings)
  firn_some_at_a_time(${name} ${arg_COLD})
  if(arg_COLD)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(arg_COMPONENT)
    install(TARGETS ${name} COMPONENT ${arg_COMPONENT})
    set_property(GLOBAL APPEND PROPERTY FIRN_INSTALLED_PROGRAMS ${name})
    set_property(GLOBAL APPEND PROPERTY FIRN_COMPONENTS ${arg_COMPONENT})
  endif()
endfunction()

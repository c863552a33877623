# Options and functions that build every target of Firn: one library for each folder, include paths from the
# repository root, warnings for our own code only, sanitizers for everything.

include(GNUInstallDirs)
set(FIRN_INCLUDE_DIR ${CMAKE_INSTALL_INCLUDEDIR}/firn)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Installs what has been built, without building the tests first.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
# The target all_verify_interface_header_sets compiles every header of a library alone.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

# An option, because installing ccache must not change the command of every object.
option(FIRN_CCACHE "Compile through ccache" OFF)
if(FIRN_CCACHE)
  find_program(FIRN_CCACHE_PROGRAM ccache REQUIRED)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FIRN_CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${FIRN_CCACHE_PROGRAM})
endif()

# Compiles standard headers once instead of for each file, which is a quarter of a build with sanitizers.
# Builds without this option prove that each file includes what it uses.
option(FIRN_PRECOMPILED "Precompile standard headers, and GoogleTest's for tests" OFF)

# Compiles several files of a library or program as one, so that their headers are read once, which takes half
# of the time. Files of one folder then share their unnamed namespaces. tools/release-check compiles the
# files one by one, and so finds a file that requires another one.
option(FIRN_UNITY "Compile the files of a library or program some at a time" OFF)

if(FIRN_SANITIZE)
  add_compile_options(-fsanitize=${FIRN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FIRN_SANITIZE})
  # By default the compiler collects garbage at every 128 MB, which takes a tenth of its time and frees little.
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
  # These checks at every access take a third of a file's compilation. The address sanitizer finds null pointers
  # anyway; -DFIRN_SANITIZE=undefined alone checks both.
  add_compile_options(-fno-sanitize=null,alignment)
  # Makes the address sanitizer's checks calls, which compile faster than inline code.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=asan-instrumentation-with-call-threshold=0>)
  # Programs at a fixed address start a fifth faster, and tests start thousands.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
if(FIRN_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Asio uses memory fences that the thread sanitizer does not support, and g++ warns of each. With -O1, g++ also
  # warns wrongly that a moved std::string is longer than its object.
  add_compile_options(-Wno-tsan -Wno-array-bounds)
endif()

if(FIRN_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "FIRN_LIBFUZZER needs clang: configure with CC=clang CXX=clang++")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_package(Threads REQUIRED)

# A newer compiler may print more warnings, which must not fail a build of a release.
option(FIRN_WERROR "Treat warnings as errors" OFF)

# Only our own code links this, not generated or foreign code.
add_library(firn_warnings INTERFACE)
target_compile_options(firn_warnings INTERFACE
  -Wall -Wextra $<$<BOOL:${FIRN_WERROR}>:-Werror> -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Wcast-qual -Wextra-semi -Wundef -Wvla
  -Wimplicit-fallthrough -Wmissing-declarations)
# g++ 12 reports the last three inside its own string and variant code if -O2 or sanitizers change inlining.
# Optimised builds turn them off, because they report nothing else there.
target_compile_options(firn_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:
  -Wduplicated-cond -Wlogical-op
  -Wno-error=maybe-uninitialized -Wno-error=restrict -Wno-error=stringop-overflow
  $<$<NOT:$<CONFIG:Debug>>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow>>)

if(FIRN_PRECOMPILED)
  if(FIRN_CCACHE)
    # ccache's manual requires these settings for precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros ${FIRN_CCACHE_PROGRAM})
    add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
  endif()
  # CMake precompiles headers only for a target that compiles a file.
  set(FIRN_NOTHING ${PROJECT_BINARY_DIR}/nothing.cc)
  file(CONFIGURE OUTPUT ${FIRN_NOTHING} CONTENT "int main() { return 0; }\n")
  add_library(firn_precompiled OBJECT ${FIRN_NOTHING})
  target_precompile_headers(firn_precompiled PRIVATE ${CMAKE_CURRENT_LIST_DIR}/precompiled.h)
  target_link_libraries(firn_precompiled PRIVATE firn_warnings)
endif()

# firn_precompiled(TARGET FROM): the target's files use the headers that FROM has precompiled. Both must be
# libraries, or both programs.
function(firn_precompiled target from)
  if(FIRN_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# firn_some_at_a_time(TARGET [cold]): with FIRN_UNITY, compiles several of the target's files as one; more of them in
# builds with sanitizers and for cold programs, whose speed is not measured.
function(firn_some_at_a_time target)
  if(FIRN_UNITY)
    set(files 6)
    if(FIRN_SANITIZE OR ARGN)
      set(files 12)
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
    # g++ warns of types in unnamed namespaces of included files, as all files are here.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# firn_folder(NAME): adds the folder if it contains a CMakeLists.txt.
macro(firn_folder name)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/CMakeLists.txt)
    add_subdirectory(${name})
  endif()
endmacro()

# firn_library(NAME HEADERS ... [INSTALL ...] [SOURCES ...] [PUBLIC ...] [PRIVATE ...]
#              [COMPONENT name])
# Adds the library firn_NAME with the alias firn::NAME, and installs and exports it in the component (`dev` by
# default). COMPONENT none does not install it, for libraries that only our programs link. INSTALL lists the headers
# that are installed with it: those that users include, and the headers that those include. `none` installs no
# header; by default, all are installed.
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
    # Their own target, so that these headers are compiled alone, too.
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
# installed in the component if one is given (`server` or `tools`). COLD: compiled with -O1 in a release, which takes
# a third less time. Not for a library of a server, because the linker keeps one copy of an inline function, perhaps
# the slower one.
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

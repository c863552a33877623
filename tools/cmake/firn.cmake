# How every target of Firn is built: one library a folder, headers named from the repository root,
# warnings as errors on our own code only, sanitizers for everything.

include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
# Every header of a library is compiled alone by the target all_verify_interface_header_sets.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

find_program(FIRN_CCACHE ccache)
if(FIRN_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FIRN_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${FIRN_CCACHE})
endif()

if(FIRN_SANITIZE)
  add_compile_options(-fsanitize=${FIRN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FIRN_SANITIZE})
endif()

find_package(Threads REQUIRED)

# Linked by our own code, never by generated or foreign code.
add_library(firn_warnings INTERFACE)
target_compile_options(firn_warnings INTERFACE
  -Wall -Wextra -Werror -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Wcast-qual -Wextra-semi -Wundef -Wvla
  -Wimplicit-fallthrough -Wduplicated-cond -Wlogical-op -Wmissing-declarations)
# g++ 12 reports these inside its own string and variant code once sanitizers or -O2 change inlining.
target_compile_options(firn_warnings INTERFACE
  -Wno-error=maybe-uninitialized -Wno-error=restrict -Wno-error=stringop-overflow)

# firn_library(NAME HEADERS ... [SOURCES ...] [PUBLIC ...] [PRIVATE ...])
# Makes firn_NAME with the alias firn::NAME. Headers are installed and compiled alone.
function(firn_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;PUBLIC;PRIVATE")
  set(target firn_${name})
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target}
      PUBLIC ${arg_PUBLIC}
      PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:firn_warnings>)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_PUBLIC})
  endif()
  add_library(firn::${name} ALIAS ${target})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_sources(${target} ${scope}
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} OUTPUT_NAME firn_${name})
  set_property(GLOBAL APPEND PROPERTY FIRN_LIBRARIES ${target})
endfunction()

# firn_program(NAME SOURCES ... [LINK ...]): an executable in build/<preset>/bin.
function(firn_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} firn_warnings)
endfunction()

# firn_test(NAME SOURCES ... [LINK ...] [LABELS ...] [TIMEOUT seconds])
# One GoogleTest program, one ctest case. Labels choose where else it runs: `tsan` also under the
# thread sanitizer, `slow` not with --quick, `release` in the release build only.
function(firn_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LINK;LABELS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  firn_program(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK} firn_test_support GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

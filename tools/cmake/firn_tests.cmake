# Functions that build tests, fuzz targets and benchmarks, and register them with ctest.
#
# Labels say what a test is (unit, contract, property, fuzz, sim, model, drill, interop, hostile,
# bench), and its properties:
#   slow      takes long, or would without the build's sanitizers
#   external  requires packages, images or toolchains of other languages
#   browser   requires a browser
#   root      is skipped, at least in part, without root's rights
#   release   runs in release builds only, because sanitizers make it too slow
#   tsan      runs under the thread sanitizer as well; a tsan build has no other tests
#   default   runs in ./tools/test without arguments; firn_add_test adds this label
#
# Three targets build what runs in a build tree:
#   firn_default_tests    the tests labelled default
#   firn_tests            the tests of ./tools/test --all: in release builds those labelled release, in
#                         other builds all
#   firn_script_programs  the programs that tests written as scripts start

set(FIRN_TEST_LABELS unit contract property fuzz sim model drill interop hostile bench
  slow external browser root tsan release)
# ./tools/test without arguments excludes these kinds of tests, except for a few.
set(FIRN_NOT_DEFAULT drill interop external browser slow model sim bench)
set(FIRN_DEFAULT_ANYWAY restart_drill_test failover_drill_test cpp_conformance_test)
# A core has four slots, of which a test takes two. These take one: each uses less than a third of a core, and waits
# otherwise (tests/README.md).
set(FIRN_MOSTLY_WAITING backup_drill_test lease_drill_test lease_states_test
  server_states_test tag_states_test)
add_custom_target(firn_default_tests)
add_custom_target(firn_tests)
add_custom_target(firn_script_programs)

if(FIRN_PRECOMPILED)
  find_package(GTest REQUIRED)
  add_executable(firn_tests_precompiled EXCLUDE_FROM_ALL ${FIRN_NOTHING})
  target_precompile_headers(firn_tests_precompiled PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/precompiled.h <gtest/gtest.h>)
  target_link_libraries(firn_tests_precompiled PRIVATE firn_warnings GTest::gtest_main)
endif()

# Sets `out` to whether a test with these labels belongs into this build tree.
function(firn_test_belongs out labels)
  foreach(label IN LISTS labels)
    if(NOT label IN_LIST FIRN_TEST_LABELS)
      message(FATAL_ERROR "no such test label: ${label} (known: ${FIRN_TEST_LABELS})")
    endif()
  endforeach()
  set(belongs ON)
  if(FIRN_SANITIZE MATCHES thread AND NOT tsan IN_LIST labels)
    set(belongs OFF)
  elseif(release IN_LIST labels AND NOT CMAKE_BUILD_TYPE STREQUAL Release)
    set(belongs OFF)
  endif()
  set(${out} ${belongs} PARENT_SCOPE)
endfunction()

# In a function: ends it when a test with these labels does not belong into this build tree.
macro(firn_only_where_it_belongs labels)
  firn_test_belongs(belongs "${labels}")
  if(NOT belongs)
    return()
  endif()
endmacro()

# Sets `out` to whether ./tools/test without arguments runs the test.
function(firn_test_is_default out name labels)
  set(is_default ON)
  foreach(label IN LISTS labels)
    if(label IN_LIST FIRN_NOT_DEFAULT AND NOT name IN_LIST FIRN_DEFAULT_ANYWAY)
      set(is_default OFF)
    endif()
  endforeach()
  set(${out} ${is_default} PARENT_SCOPE)
endfunction()

# firn_add_test(NAME COMMAND ... [LABELS ...] [TIMEOUT seconds])
# Registers a test with ctest. The targets above build each program that COMMAND names, as its first word
# or as $<TARGET_FILE:...>. The time limit is two minutes by default. tools/guard runs the command, ends
# it at its limit, and fails it when it leaves a process behind; ctest's own limit is for a guard that
# hangs.
function(firn_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "COMMAND;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "test ${name}: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  list(POP_FRONT arg_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  firn_test_is_default(is_default ${name} "${arg_LABELS}")
  if(is_default)
    list(APPEND arg_LABELS default)
  endif()
  math(EXPR last_resort "${arg_TIMEOUT} + 120")
  set(slots 2)
  if(name IN_LIST FIRN_MOSTLY_WAITING)
    set(slots 1)
  endif()
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tools/guard --with-parent
    --name ${name} --limit ${arg_TIMEOUT} -- ${program} ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${last_resort} LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77
    PROCESSORS ${slots} COST ${arg_TIMEOUT})  # what may take long begins first
  set(programs)
  foreach(argument IN LISTS arg_COMMAND program)
    if(argument MATCHES "TARGET_FILE:([^>]+)>")
      list(APPEND programs ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES programs)
  if(NOT programs)
    return()
  endif()
  if(is_default)
    add_dependencies(firn_default_tests ${programs})
  endif()
  if(release IN_LIST arg_LABELS OR NOT CMAKE_BUILD_TYPE STREQUAL Release)
    add_dependencies(firn_tests ${programs})
  endif()
  if(NOT program MATCHES "TARGET_FILE")
    add_dependencies(firn_script_programs ${programs})
  endif()
endfunction()

# firn_quiet_tests(NAME...): in these tests no call may fail, so each takes all slots of a core, and they begin last. Ignores tests that this build does not have.
function(firn_quiet_tests)
  foreach(test IN LISTS ARGN)
    if(TEST ${test})
      set_tests_properties(${test} PROPERTIES PROCESSORS 4 COST -1)
    endif()
  endforeach()
endfunction()

# firn_test(NAME SOURCES ... [LINK ...] [LABELS ...] [TIMEOUT seconds] [NEEDS ...] [ALONE])
# One ctest case: the GoogleTest cases of these files. They are compiled into the program of their
# folder, whose name is FIRN_TEST_PROGRAM, and which runs the cases of the files that its arguments name.
# They are a program of their own without that name, with ALONE, and with the label release, because not
# every build has them; then they may take long, and keep -O3. NEEDS are the programs that they start.
function(firn_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALONE" "TIMEOUT" "SOURCES;LINK;LABELS;NEEDS")
  firn_only_where_it_belongs("${arg_LABELS}")
  set(program ${name})
  set(cold)
  set(files)
  if(FIRN_TEST_PROGRAM AND NOT arg_ALONE AND NOT release IN_LIST arg_LABELS)
    set(program ${FIRN_TEST_PROGRAM})
    set(cold COLD)
    set(files ${arg_SOURCES})
    list(FILTER files INCLUDE REGEX "_test\\.cc$")
  endif()
  if(TARGET ${program})
    target_sources(${program} PRIVATE ${arg_SOURCES})
    target_link_libraries(${program} PRIVATE ${arg_LINK})
  else()
    firn_program(${program} ${cold} SOURCES ${arg_SOURCES}
      LINK ${arg_LINK} firn_test_support firn_test_main)
    firn_precompiled(${program} firn_tests_precompiled)
  endif()
  if(arg_NEEDS)
    add_dependencies(${program} ${arg_NEEDS})
  endif()
  firn_add_test(${name} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS}
    COMMAND ${program} ${files})
  set_property(GLOBAL PROPERTY FIRN_COMMAND_${name} ${program} ${files})
endfunction()

# firn_test_again(NAME OF test ENVIRONMENT VARIABLE=value [LABELS ...] [TIMEOUT seconds])
# The cases of a firn_test once more, as a ctest case of its own.
function(firn_test_again name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OF;ENVIRONMENT;TIMEOUT" "LABELS")
  firn_only_where_it_belongs("${arg_LABELS}")
  get_property(command GLOBAL PROPERTY FIRN_COMMAND_${arg_OF})
  list(GET command 0 program)
  firn_add_test(${name} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS}
    COMMAND ${command})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT ${arg_ENVIRONMENT})
endfunction()

# firn_script_test(NAME COMMAND ... [LABELS ...] [TIMEOUT seconds])
# A command that exits 0 when all is well, and 77 when it cannot run here.
function(firn_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "COMMAND;LABELS")
  firn_only_where_it_belongs("${arg_LABELS}")
  firn_add_test(${name} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS} COMMAND ${arg_COMMAND})
endfunction()

# firn_fuzz(NAME SOURCES ... [LINK ...] [LABELS ...])
# A program around LLVMFuzzerTestOneInput. Its corpus is corpus/NAME beside the CMakeLists.txt. In
# ctest it makes a short run with a fixed seed; by hand it takes --seconds, --runs and --seed.
function(firn_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK;LABELS")
  list(APPEND arg_LABELS fuzz)
  firn_only_where_it_belongs("${arg_LABELS}")
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  if(FIRN_LIBFUZZER)
    firn_program(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK} -fsanitize=fuzzer)
    set(run ${name} -runs=20000 -seed=1 -timeout=10)
  else()
    firn_program(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK} firn_fuzz_main)
    set(run ${name} --runs=20000 --seconds=5 --seed=1 --corpus=${corpus})
  endif()
  firn_add_test(${name} TIMEOUT 60 LABELS ${arg_LABELS} COMMAND ${run})
endfunction()

# firn_bench(NAME SOURCES ... [LINK ...])
# A Google Benchmark program, in release builds. ctest runs each benchmark for a moment only, so
# that none rots; figures come from calling the program in build/release/bin.
function(firn_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  firn_only_where_it_belongs("bench;release")
  find_package(benchmark REQUIRED)
  firn_program(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK} benchmark::benchmark_main)
  firn_add_test(${name} LABELS bench release
    COMMAND ${name} --benchmark_min_time=0.001)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT FIRN_BENCH_MOMENT=1)
endfunction()

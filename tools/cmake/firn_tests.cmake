# How tests, fuzz targets and benchmarks are built and named to ctest.
#
# Labels say what a test is (unit, contract, property, fuzz, sim, model, drill, interop, hostile,
# bench) and where it runs:
#   release   in release builds only: simulations and measurements, which sanitizers make too slow
#   tsan      under the thread sanitizer too; a tsan build holds no other tests
#   slow      not with ./tools/test --quick
#   wide      not with ./tools/test --core: what stands around Firn itself
#   later     nor these: they came when the first whole Firn stood
# The target `firn_tests` builds what ./tools/test runs in a build tree: in dev all of it, in
# release what is labelled release, in tsan all of it. `firn_core_tests` builds what --core runs.

set(FIRN_TEST_LABELS
  unit contract property fuzz sim model drill interop hostile bench slow wide later tsan release)
add_custom_target(firn_core_tests)
add_custom_target(firn_tests)
add_dependencies(firn_tests firn_core_tests)

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

# firn_add_test(NAME COMMAND ... [PROGRAM target] [LABELS ...] [TIMEOUT seconds])
# Names a test to ctest. PROGRAM is the target that it needs. The time limit is two minutes by default.
# tools/guard runs the command, ends it at its limit, and fails it when it leaves a process behind;
# ctest's own limit is for a guard that hangs.
function(firn_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PROGRAM;TIMEOUT" "COMMAND;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "test ${name}: nobody knows what ${arg_UNPARSED_ARGUMENTS} means")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  list(POP_FRONT arg_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  math(EXPR last_resort "${arg_TIMEOUT} + 120")
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tools/guard --with-parent
    --name ${name} --limit ${arg_TIMEOUT} -- ${program} ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${last_resort} LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77
    COST ${arg_TIMEOUT})  # what may take long begins first
  if(arg_PROGRAM AND (release IN_LIST arg_LABELS OR NOT CMAKE_BUILD_TYPE STREQUAL Release))
    if(wide IN_LIST arg_LABELS OR later IN_LIST arg_LABELS)
      add_dependencies(firn_tests ${arg_PROGRAM})
    else()
      add_dependencies(firn_core_tests ${arg_PROGRAM})
    endif()
  endif()
endfunction()

# firn_test(NAME SOURCES ... [LINK ...] [LABELS ...] [TIMEOUT seconds] [NEEDS ...] [ALONE])
# One ctest case: the GoogleTest cases of these files. They are compiled into the program of their
# folder, whose name is FIRN_TEST_PROGRAM, and which runs the cases of the files that it is given; those
# labelled later share another. A program of their own they are where there is no such name, ALONE, and
# when they are labelled release or wide, as not every build wants them. NEEDS are the programs that they
# start.
function(firn_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALONE" "TIMEOUT" "SOURCES;LINK;LABELS;NEEDS")
  firn_only_where_it_belongs("${arg_LABELS}")
  set(program ${name})
  set(files)
  if(FIRN_TEST_PROGRAM AND NOT arg_ALONE AND NOT "${arg_LABELS}" MATCHES "release|wide")
    set(program ${FIRN_TEST_PROGRAM})
    if(later IN_LIST arg_LABELS)
      string(APPEND program _later)
    endif()
    set(files ${arg_SOURCES})
    list(FILTER files INCLUDE REGEX "_test\\.cc$")
  endif()
  if(TARGET ${program})
    target_sources(${program} PRIVATE ${arg_SOURCES})
    target_link_libraries(${program} PRIVATE ${arg_LINK})
  else()
    firn_program(${program} SOURCES ${arg_SOURCES}
      LINK ${arg_LINK} firn_test_support firn_test_main)
    firn_precompiled(${program} firn_tests_precompiled)
  endif()
  if(arg_NEEDS)
    add_dependencies(${program} ${arg_NEEDS})
  endif()
  firn_add_test(${name} PROGRAM ${program} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS}
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
  firn_add_test(${name} PROGRAM ${program} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS}
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
  firn_add_test(${name} PROGRAM ${name} TIMEOUT 60 LABELS ${arg_LABELS} COMMAND ${run})
endfunction()

# firn_bench(NAME SOURCES ... [LINK ...])
# A Google Benchmark program, in release builds. ctest runs each benchmark for a moment only, so
# that none rots; figures come from calling the program in build/release/bin.
function(firn_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  firn_only_where_it_belongs("bench;release")
  find_package(benchmark REQUIRED)
  firn_program(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK} benchmark::benchmark_main)
  firn_add_test(${name} PROGRAM ${name} LABELS bench release
    COMMAND ${name} --benchmark_min_time=0.001)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT FIRN_BENCH_MOMENT=1)
endfunction()

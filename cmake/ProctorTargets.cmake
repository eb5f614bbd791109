# Two shapes of target and no more: a room's library and a test binary.

# proctor_room(NAME SOURCES a.cc ... HEADERS a.h ... LINK lib ...)
# One static library for one folder.  HEADERS must compile alone (checked by the verify target).
function(proctor_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;HEADERS;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ROOM_HEADERS})
  set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON
    UNITY_BUILD ${PROCTOR_UNITY} UNITY_BUILD_BATCH_SIZE ${PROCTOR_UNITY_BATCH})
  target_link_libraries(${name} PUBLIC proctor_flags ${ROOM_LINK} PRIVATE ${ROOM_PRIVATE_LINK})
endfunction()

# proctor_test(NAME LABELS unit SOURCES a_test.cc ... LINK lib ...)
# One doctest binary; every TEST_CASE becomes one ctest with these labels.  One that says "not run: why"
# is counted as skipped, never as passed.  UNPRIVILEGED: once more, as a user without any rights.
# SERIAL: beside no other test.  TIMEOUT: seconds that it may need here; slower machines have three times as many.
function(proctor_test name)
  cmake_parse_arguments(TEST "UNPRIVILEGED;SERIAL" "TIMEOUT" "LABELS;SOURCES;LINK" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 600)
  endif()
  math(EXPR TEST_TIMEOUT "3 * ${TEST_TIMEOUT}")
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE proctor_test_main ${TEST_LINK})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${PROCTOR_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  doctest_discover_tests(${name} TEST_PREFIX "${name}: "
    PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT} RUN_SERIAL ${TEST_SERIAL} SKIP_REGULAR_EXPRESSION "MESSAGE: not run:")
  if(TEST_UNPRIVILEGED)
    doctest_discover_tests(${name} TEST_PREFIX "${name} as nobody: " TEST_LIST ${name}_AS_NOBODY
      EXTRA_ARGS --as-user=65534
      PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT} SKIP_REGULAR_EXPRESSION "MESSAGE: not run:")
  endif()
endfunction()

# musl's way of being linked with, for programs whose start is most of what they do.
string(REPLACE "gnu" "musl" PROCTOR_MUSL "${CMAKE_LIBRARY_ARCHITECTURE}")
find_file(PROCTOR_MUSL_SPECS musl-gcc.specs PATHS "/usr/lib/${PROCTOR_MUSL}" NO_DEFAULT_PATH)

# proctor_carried_program(ROOM PROGRAM SOURCE HEADER FUNCTION [MUSL])
# A small static program that ROOM carries inside itself: FUNCTION, declared in HEADER, gives its bytes.
# MUSL: it needs C's headers only, and is linked with musl where that is.
function(proctor_carried_program room program source header function)
  add_executable(${program} ${source})
  if(NOT PROCTOR_SANITIZE)  # a sanitizer cannot be linked into a static program
    target_link_libraries(${program} PRIVATE proctor_flags)
  endif()
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_features(${program} PRIVATE cxx_std_20)
  target_compile_options(${program} PRIVATE -Os)
  # mold gives a static program an interpreter where musl's specs name one, and no sandbox has that.
  target_link_options(${program} PRIVATE -static -s -fuse-ld=bfd)
  if("MUSL" IN_LIST ARGN AND PROCTOR_MUSL_SPECS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${program} PRIVATE -specs=${PROCTOR_MUSL_SPECS} -fno-exceptions -fno-rtti)
    target_link_options(${program} PRIVATE -specs=${PROCTOR_MUSL_SPECS})
  endif()
  set(file ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program})
  set(carrier ${CMAKE_CURRENT_BINARY_DIR}/${program}.cc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/carried_program.cc.in ${carrier} @ONLY)
  set_source_files_properties(${carrier} PROPERTIES OBJECT_DEPENDS ${file} SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${room} PRIVATE ${carrier})
  add_dependencies(${room} ${program})
endfunction()

# Two shapes of target and no more: a room's library and a test program.

# proctor_room(NAME SOURCES a.cc ... HEADERS a.h ... LINK lib ...)
# One static library for one folder.  HEADERS must compile alone (checked by the verify target).
function(proctor_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;HEADERS;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ROOM_HEADERS})
  set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(${name} PUBLIC proctor_flags ${ROOM_LINK} PRIVATE ${ROOM_PRIVATE_LINK})
endfunction()

# proctor_program(PROGRAM)
# What users install is stripped; PROGRAM.debug beside it holds the debug information, where gdb finds it.
function(proctor_program program)
  if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo AND NOT PROCTOR_SANITIZE)
    add_custom_command(TARGET ${program} POST_BUILD VERBATIM
      COMMAND ${CMAKE_OBJCOPY} --only-keep-debug --compress-debug-sections $<TARGET_FILE:${program}> $<TARGET_FILE:${program}>.debug
      COMMAND ${CMAKE_OBJCOPY} --strip-all --add-gnu-debuglink=$<TARGET_FILE:${program}>.debug $<TARGET_FILE:${program}>)
  endif()
endfunction()

# proctor_test_program(PROGRAM)
# A doctest program that many folders fill by proctor_test; after each link cmake/discover_tests.py lists its cases.
function(proctor_test_program program)
  add_executable(${program})
  target_link_libraries(${program} PRIVATE proctor_test_main)
  target_compile_options(${program} PRIVATE -O0)  # a test's own code; what it tests is optimized
  target_precompile_headers(${program} REUSE_FROM proctor_test_main)
  add_dependencies(test_programs ${program})
  set(tests ${CMAKE_CURRENT_BINARY_DIR}/${program}.tests)
  set(listed ${CMAKE_CURRENT_BINARY_DIR}/${program}_tests.cmake)
  file(GENERATE OUTPUT ${tests} CONTENT "$<JOIN:$<TARGET_PROPERTY:${program},PROCTOR_TESTS>,\n>\n")
  set(discover ${PROJECT_SOURCE_DIR}/cmake/discover_tests.py)
  set_property(TARGET ${program} PROPERTY LINK_DEPENDS ${tests} ${discover})
  add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${listed}
    COMMAND ${Python3_EXECUTABLE} ${discover} $<TARGET_FILE:${program}> ${tests} ${listed} VERBATIM)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${program}_include.cmake
    "if(EXISTS \"${listed}\")\n  include(\"${listed}\")\nelse()\n"
    "  add_test(${program}_NOT_BUILT ${program}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${program}_include.cmake)
endfunction()

# proctor_test(NAME LABELS unit SOURCES a_test.cc ... LINK lib ...)
# Every TEST_CASE of these files becomes the ctest "NAME: case" with these labels.  The files are compiled into
# ${PROCTOR_TEST_PROGRAM}, which the folder above sets; build/PRESET/NAME runs this part of that program.
# One that says "not run: why" is counted as skipped, never as passed.  UNPRIVILEGED: once more, as a user without any
# rights.  SERIAL: beside no other test.  TIMEOUT: seconds that it may need here; slower machines have three times as many.
# FULL: all cases have the label full too; without it those of the doctest suite "full" have it.
# ENVIRONMENT: VARIABLE=value for these cases; a file may be in several tests that differ in it.
function(proctor_test name)
  cmake_parse_arguments(TEST "UNPRIVILEGED;SERIAL;FULL" "TIMEOUT" "LABELS;SOURCES;LINK;ENVIRONMENT" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 600)
  endif()
  math(EXPR TEST_TIMEOUT "3 * ${TEST_TIMEOUT}")
  set(program ${PROCTOR_TEST_PROGRAM})
  set(files)
  foreach(source IN LISTS TEST_SOURCES)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    target_sources(${program} PRIVATE ${source})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    list(APPEND files ${source})
  endforeach()
  target_link_libraries(${program} PRIVATE ${TEST_LINK})
  list(JOIN files ",*" files)
  list(JOIN TEST_LABELS "," labels)
  list(JOIN TEST_ENVIRONMENT "," environment)
  string(JOIN "|" test name=${name} files=*${files} labels=${labels} timeout=${TEST_TIMEOUT} serial=${TEST_SERIAL}
    unprivileged=${TEST_UNPRIVILEGED} full=${TEST_FULL} "environment=${environment}" "folder=${CMAKE_CURRENT_BINARY_DIR}")
  set_property(TARGET ${program} APPEND PROPERTY PROCTOR_TESTS "${test}")
  foreach(label IN LISTS TEST_LABELS)
    add_dependencies(test_programs_${label} ${program})
  endforeach()
  if(NOT name STREQUAL program)
    add_custom_target(${name})
    add_dependencies(${name} ${program})
    list(JOIN TEST_ENVIRONMENT " " environment)
    file(GENERATE OUTPUT ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name}
      CONTENT "#!/bin/sh\n# The cases of ${name}.\n${environment} exec '$<TARGET_FILE:${program}>' '--source-file=*${files}' \"$@\"\n"
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endfunction()

# musl's way of being linked with, for programs whose start is most of what they do.
string(REPLACE "gnu" "musl" PROCTOR_MUSL "${CMAKE_LIBRARY_ARCHITECTURE}")
find_file(PROCTOR_MUSL_SPECS musl-gcc.specs PATHS "/usr/lib/${PROCTOR_MUSL}" NO_DEFAULT_PATH)

# proctor_carried_program(ROOM PROGRAM SOURCE FUNCTION [MUSL])
# A small static program that ROOM carries inside itself: proctor::FUNCTION gives its bytes.
# MUSL: it needs C's headers only, and is linked with musl where that is.
function(proctor_carried_program room program source function)
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
  set_source_files_properties(${carrier} PROPERTIES OBJECT_DEPENDS ${file})
  target_sources(${room} PRIVATE ${carrier})
  add_dependencies(${room} ${program})
endfunction()

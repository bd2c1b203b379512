# Compiler settings shared by every target: warnings, sanitizers, ccache and a fast linker where they are installed.
add_library(perfd_warnings INTERFACE)
target_compile_options(perfd_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False positives on std::string in optimised builds: GCC bugs 105329, 105651.
  target_compile_options(perfd_warnings INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(perfd_warnings INTERFACE -Wthread-safety)
endif()
if(PERFD_WERROR)
  target_compile_options(perfd_warnings INTERFACE -Werror)
endif()

if(PERFD_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(PERFD_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()
if(PERFD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# A precompiled header serves libraries and programs alike if all of them are compiled as the programs are, with threads.
set(CMAKE_CXX_COMPILE_OPTIONS_PIC -fPIE)
add_compile_options(-pthread)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
else()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
# Tests are compiled more often than they run: no optimisation, unless the whole build has another purpose; and nobody fuzzes
# them. Their instrumented code takes a third of the time to compile.
set(perfd_test_options "")
if(PERFD_SANITIZE STREQUAL "address" OR (NOT PERFD_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release"))
  set(perfd_test_options -O0)
endif()
if(PERFD_FUZZ)
  list(APPEND perfd_test_options -fno-sanitize=fuzzer-no-link)
endif()

find_program(PERFD_CCACHE ccache)
if(PERFD_CCACHE)
  # Relative paths: a second checkout finds what the first one has compiled.
  # Sloppy about two things, or nothing with a precompiled header would ever be found again: macros that are defined on the
  # command line, and __TIME__, which nothing here uses.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${PERFD_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
find_program(PERFD_MOLD mold)
if(PERFD_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=mold)
endif()

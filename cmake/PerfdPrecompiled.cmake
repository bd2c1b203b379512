# Precompiled headers: third-party and standard headers only, one set per kind of target, shared by all targets of the kind.
#   perfd_precompiled_code   libraries and programs
#   perfd_precompiled_wire   those that also speak gRPC or hold generated messages
#   perfd_precompiled_test   tests (their own optimisation level, GoogleTest)
# No header of the project is in them: a change of one compiles again what includes it, and nothing else. Every header also
# compiles alone, without them: target `all_verify_interface_header_sets`.
set(perfd_precompiled_headers
  <algorithm> <array> <atomic> <cerrno> <chrono> <cmath> <cstddef> <cstdint> <cstring> <deque> <filesystem> <functional> <limits>
  <map> <memory> <numeric> <optional> <set> <span> <string> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <absl/container/flat_hash_map.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h>
  <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>
  <absl/strings/str_split.h> <absl/strings/string_view.h> <absl/synchronization/mutex.h> <absl/time/clock.h>
  <absl/time/time.h> <fmt/format.h>)

# perfd_precompiled(NAME OPTIONS ... LINK ... HEADERS ...)
function(perfd_precompiled name)
  cmake_parse_arguments(A "" "" "OPTIONS;LINK;HEADERS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing but what is precompiled.\n")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE perfd_warnings ${A_LINK})
  target_compile_options(${name} PRIVATE ${A_OPTIONS})
  list(TRANSFORM A_HEADERS REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
  target_precompile_headers(${name} PRIVATE ${A_HEADERS})
endfunction()

# perfd_use_precompiled(TARGET KIND)   KIND: code, wire, test
function(perfd_use_precompiled target kind)
  if(PERFD_PRECOMPILED AND TARGET perfd_precompiled_${kind})
    target_precompile_headers(${target} REUSE_FROM perfd_precompiled_${kind})
    target_link_libraries(${target} PRIVATE fmt::fmt)  # defines a macro, which has to be the same
  endif()
endfunction()

if(NOT PERFD_PRECOMPILED)
  return()
endif()
perfd_precompiled(perfd_precompiled_code LINK absl::statusor absl::flat_hash_map fmt::fmt HEADERS ${perfd_precompiled_headers})
if(PERFD_SERVICES)
  perfd_precompiled(perfd_precompiled_wire LINK absl::statusor absl::flat_hash_map fmt::fmt gRPC::grpc++ protobuf::libprotobuf
    HEADERS ${perfd_precompiled_headers}
      <google/protobuf/generated_message_reflection.h> <google/protobuf/io/coded_stream.h> <google/protobuf/map_field.h>
      <google/protobuf/message.h> <google/protobuf/repeated_field.h> <google/protobuf/unknown_field_set.h> <grpcpp/grpcpp.h>)
endif()
if(PERFD_TESTS)
  perfd_precompiled(perfd_precompiled_test OPTIONS ${perfd_test_options} LINK absl::statusor absl::flat_hash_map fmt::fmt GTest::gmock
    HEADERS ${perfd_precompiled_headers} <fstream> <random> <sstream> <gmock/gmock.h> <gtest/gtest.h>)
endif()

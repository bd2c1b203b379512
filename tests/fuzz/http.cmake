perfd_fuzzer(fuzz_history_json SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_history_json.cc DEPS perfd::json CORPUS history_json)
if(PERFD_SERVICES)
  perfd_fuzzer(fuzz_http_request SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_http_request.cc DEPS perfd::http CORPUS http_request)
endif()

if(PERFD_SERVICES)
  perfd_fuzzer(fuzz_wire CORPUS wire SOURCES ${CMAKE_CURRENT_LIST_DIR}/fuzz_wire.cc DEPS perfd::wire)
endif()

if(PERFD_SERVICES)
  perfd_fuzzer(fuzz_hook SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_hook.cc DEPS perfd::policy perfd::spec CORPUS hook)
endif()

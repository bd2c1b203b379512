perfd_fuzzer(fuzz_spec SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_spec.cc DEPS perfd::spec CORPUS spec)
perfd_fuzzer(fuzz_config SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_config.cc DEPS perfd::spec CORPUS config)

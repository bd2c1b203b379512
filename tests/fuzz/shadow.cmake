# Journals of injections, and what comes back from a shadow.
perfd_fuzzer(fuzz_injection SOURCES ${CMAKE_CURRENT_LIST_DIR}/fuzz_injection.cc DEPS perfd::shadow CORPUS injection)

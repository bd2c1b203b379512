# Journals of injections, what comes back from a shadow, and what /proc says about memory.
perfd_fuzzer(fuzz_injection SOURCES ${CMAKE_CURRENT_LIST_DIR}/fuzz_injection.cc DEPS perfd::shadow CORPUS injection)
perfd_fuzzer(fuzz_proc_memory SOURCES ${CMAKE_CURRENT_LIST_DIR}/fuzz_proc_memory.cc DEPS perfd::shadow CORPUS proc_memory)

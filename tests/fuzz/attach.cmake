perfd_fuzzer(fuzz_hold SOURCES fuzz_hold.cc DEPS perfd::attach_server CORPUS hold)

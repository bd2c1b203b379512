perfd_fuzzer(fuzz_perf_records SOURCES fuzz_perf_records.cc DEPS perfd::sample CORPUS perf_records)
perfd_fuzzer(fuzz_maps SOURCES fuzz_maps.cc DEPS perfd::procfs CORPUS maps)

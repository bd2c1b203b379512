perfd_fuzzer(fuzz_perf_records SOURCES fuzz_perf_records.cc DEPS perfd::sample CORPUS perf_records)
perfd_fuzzer(fuzz_perf_map SOURCES fuzz_perf_map.cc DEPS perfd::anonymous CORPUS perf_map)
perfd_fuzzer(fuzz_maps SOURCES fuzz_maps.cc DEPS perfd::procfs CORPUS maps)
perfd_fuzzer(fuzz_recording SOURCES fuzz_recording.cc DEPS perfd::perfdata CORPUS recording)

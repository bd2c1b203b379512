# Everything that reads ELF files, call frame information and machine code.
perfd_fuzzer(fuzz_elf SOURCES fuzz_elf.cc DEPS perfd::binary CORPUS elf)
perfd_fuzzer(fuzz_eh_frame SOURCES fuzz_eh_frame.cc DEPS perfd::binary CORPUS eh_frame)
perfd_fuzzer(fuzz_symbol_name SOURCES fuzz_symbol_name.cc DEPS perfd::binary CORPUS symbol_name)
perfd_fuzzer(fuzz_code SOURCES fuzz_code.cc DEPS perfd::binary CORPUS code)

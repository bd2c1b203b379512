# Loops of machine code to their changed copies.
perfd_fuzzer(fuzz_variant SOURCES fuzz_variant.cc DEPS perfd::variant CORPUS variant)

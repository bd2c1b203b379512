// Runs a fuzz target without libFuzzer: every corpus file, then random mutations of them for about one second.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> ReadCorpus(int argc, char** argv) {
  std::vector<Bytes> corpus = {{}};
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) continue;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  return corpus;
}

void Mutate(Bytes& bytes, std::mt19937_64& random) {
  const size_t edits = 1 + random() % 8;
  for (size_t i = 0; i < edits; ++i) {
    const size_t kind = random() % 4;
    if (kind == 0 || bytes.empty()) {
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random() % (bytes.size() + 1)),
                   static_cast<uint8_t>(random()));
    } else if (kind == 1) {
      bytes.resize(random() % (bytes.size() + 1));
    } else {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Bytes> corpus = ReadCorpus(argc, argv);
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  std::mt19937_64 random(42);
  size_t runs = corpus.size();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    Bytes bytes = corpus[random() % corpus.size()];
    Mutate(bytes, random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++runs;
  }
  std::printf("ran %zu inputs\n", runs);
  return 0;
}

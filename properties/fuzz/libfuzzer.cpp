// The fuzzer's entry: HOLDFAST_FUZZ_READER is one of the functions of readers.hpp.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const holdfast::fuzz::Verdict verdict =
      holdfast::fuzz::HOLDFAST_FUZZ_READER({reinterpret_cast<const char*>(data), bytes});
  if (verdict.broken.empty()) return 0;
  std::fprintf(stderr, "broken promise: %s\n", verdict.broken.c_str());
  std::abort();
}

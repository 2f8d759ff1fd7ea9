// libFuzzer's entry point for the one target that this program is compiled for
// (MUSTER_FUZZ_TARGET).
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/target.h"

void muster::fuzz::broken(const std::string& what) {
  std::fprintf(stderr, "broken property: %s\n", what.c_str());
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  muster::fuzz::MUSTER_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}

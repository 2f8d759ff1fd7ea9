// Fuzz targets: functions over arbitrary bytes that hold up what a reader promises. libfuzzer.cc
// lends them to libFuzzer (preset fuzz, `tests/run --fuzz`); replay_test.cc runs the kept inputs of
// corpus/TARGET through them in the ordinary suite, so that what was found once stays mended.
// A target looks at properties beside not crashing: it calls require() for each, and says nothing
// of what a reader makes of the bytes.
#pragma once
#pragma once

#include <string>
#include <string_view>

namespace muster::fuzz {

// A property does not hold. In a fuzzer: says so and aborts, for the input to be kept. In the
// replay: the test of this input fails.
[[noreturn]] void broken(const std::string& what);

inline void require(bool holds, std::string_view what) {
  if (!holds) [[unlikely]]
    broken(std::string(what));
}
// `detail` is shown behind it.
inline void require(bool holds, std::string_view what, std::string_view detail) {
  if (!holds) [[unlikely]]
    broken(std::string(what) + ": " + std::string(detail));
}

// A sentence for people: not empty, UTF-8, no control characters but line ends.
bool is_message(std::string_view text);
// Printable ASCII.
bool is_plain(std::string_view text);

// The targets, one file each in targets/.
void agents(std::string_view input);
void checkpoint(std::string_view input);
void diff(std::string_view input);
void frames(std::string_view input);
void log(std::string_view input);
void patch(std::string_view input);
void probe(std::string_view input);
void ranktable(std::string_view input);
void spec(std::string_view input);

}  // namespace muster::fuzz

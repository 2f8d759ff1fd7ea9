// The fuzz targets: functions over arbitrary bytes that check the promises of a reader. Pure.
//
// libfuzzer.cc makes them targets of libFuzzer (preset fuzz, `tests/run --fuzz`). replay_test.cc
// runs the kept inputs of corpus/TARGET through them in the ordinary test suite, so that a fixed
// bug stays fixed.
//
// A target checks properties in addition to not crashing: it calls require() for each. It does not
// check what a reader makes of the bytes.
#pragma once
#pragma once

#include <string>
#include <string_view>

namespace muster::fuzz {

// Call this when a property does not hold. In a fuzzer, it prints the property and aborts, so that
// the input is kept. In the replay, the test of this input fails.
[[noreturn]] void broken(const std::string& what);

inline void require(bool holds, std::string_view what) {
  if (!holds) [[unlikely]]
    broken(std::string(what));
}
// `detail` is printed after it.
inline void require(bool holds, std::string_view what, std::string_view detail) {
  if (!holds) [[unlikely]]
    broken(std::string(what) + ": " + std::string(detail));
}

// True for a sentence for people: not empty, UTF-8, no control characters except line ends.
bool is_message(std::string_view text);
// True for printable ASCII.
bool is_plain(std::string_view text);

// The targets; each has a file in targets/.
void access(std::string_view input);
void agents(std::string_view input);
void checkpoint(std::string_view input);
void config(std::string_view input);
void diff(std::string_view input);
void enrol(std::string_view input);
void frames(std::string_view input);
void hosts(std::string_view input);
void known_hosts(std::string_view input);
void listing(std::string_view input);
void log(std::string_view input);
void patch(std::string_view input);
void probe(std::string_view input);
void ranktable(std::string_view input);
void spec(std::string_view input);

}  // namespace muster::fuzz

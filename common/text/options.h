// Finds an option in the words of a command line: `--name VALUE`, `--name=VALUE`, `-x VALUE`. Pure;
// linear time.
//
// Names are matched whole: an abbreviation is another option. The result has places in the words,
// so that a caller can change or erase them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

// Which words after `--name` are its value.
enum class ValueRule : std::uint8_t {
  OneWord,       // the next word, unless it begins with "--"; "-1" and "-v" are values
  AnyWord,       // the next word, whatever it is
  SeveralWords,  // every word up to the next flag, also after `--name=VALUE`
};

// The words [begin, end): the option's name and the words of its value.
struct OptionSpan {
  std::size_t begin = 0, end = 0;
  bool attached = false;   // --name=VALUE
  std::string_view value;  // the first word of it

  [[nodiscard]] bool has_value() const { return attached || end > begin + 1; }
};

// "--save", "-v", "--save=x", but not a number: "-1", "-.5".
bool is_flag(std::string_view word);
// "--save=x" has the name "--save". A word without '=' is the name itself.
std::string_view option_name(std::string_view word);

// The option at words[at]. Nothing: that word is another one. The value is a view of a word.
std::optional<OptionSpan> option_at(std::span<const std::string_view> words, std::size_t at,
                                    std::string_view name, ValueRule rule = ValueRule::OneWord);
// Every option of this name, in order. Programs that use argparse take the last one.
std::vector<OptionSpan> find_options(std::span<const std::string_view> words, std::string_view name,
                                     ValueRule rule = ValueRule::OneWord);

// Erases the words of the spans, which are in order and do not overlap.
template <class Word>
void erase_options(std::vector<Word>& words, const std::vector<OptionSpan>& spans) {
  std::vector<Word> kept;
  auto next = words.begin();
  const auto keep_to = [&](auto end) {
    kept.insert(kept.end(), std::make_move_iterator(next), std::make_move_iterator(end));
  };
  for (const OptionSpan& span : spans) {
    keep_to(words.begin() + static_cast<std::ptrdiff_t>(span.begin));
    next = words.begin() + static_cast<std::ptrdiff_t>(span.end);
  }
  keep_to(words.end());
  words = std::move(kept);
}

}  // namespace muster

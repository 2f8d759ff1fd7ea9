#include "common/text/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace muster {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > 64) return {};  // no typing mistake is so long; and it bounds the work
  std::string_view best;
  std::size_t best_distance = std::clamp<std::size_t>(word.size() / 3, 1, 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case ' ':
      case '\t':
      case '\n':
      case '\r':
        if (in_word) words.push_back(std::move(word));
        word.clear();
        in_word = false;
        break;
      case '\'': {
        const std::size_t end = text.find('\'', i + 1);
        if (end == std::string_view::npos)
          return fail(ErrorCode::InvalidArgument,
                      fmt::format("the quote ' at character {} is not closed", i + 1));
        word.append(text.substr(i + 1, end - i - 1));
        in_word = true;
        i = end;
        break;
      }
      case '"': {
        const std::size_t start = i;
        in_word = true;
        for (++i; i < text.size() && text[i] != '"'; ++i) {
          if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\'))
            ++i;
          word.push_back(text[i]);
        }
        if (i >= text.size())
          return fail(ErrorCode::InvalidArgument,
                      fmt::format("the quote \" at character {} is not closed", start + 1));
        break;
      }
      case '\\':
        if (i + 1 == text.size())
          return fail(ErrorCode::InvalidArgument, "it ends with a backslash that escapes nothing");
        ++i;
        if (text[i] == '\n') break;  // a pasted continuation line
        if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
          ++i;
          break;
        }
        // This is the rest of a pasted continuation line after YAML's '>' has joined the lines. The
        // program would get an argument that begins with a blank.
        if (!in_word && (text[i] == ' ' || text[i] == '\t')) {
          return fail(
              ErrorCode::InvalidArgument,
              fmt::format("the backslash at character {} is before a blank, as when '>' joins the "
                          "lines of a pasted command; use '|', which keeps them apart, or take the "
                          "backslash out (a word that begins with a blank: in quotes)",
                          i));
        }
        word.push_back(text[i]);
        in_word = true;
        break;
      case '|':
      case '&':
      case ';':
      case '<':
      case '>':
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("'{}' at character {} is a shell's: no shell reads this; quote it, "
                                "or give the list [bash, -c, \"...\"] as launch.run",
                                c, i + 1));
      default: word.push_back(c); in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

}  // namespace muster

#include "common/store/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "common/digest/hex.h"

namespace muster::store {
namespace {

constexpr std::string_view kSpecial = "\n\r\\", kLetters = "nr\\";
constexpr std::size_t kDigits = 64;

std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const std::size_t special = kSpecial.find(c);
    if (special != std::string_view::npos) text += '\\';
    text += special != std::string_view::npos ? kLetters[special] : c;
  }
  return text;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      name += text[i];
      continue;
    }
    const std::size_t letter = ++i < text.size() ? kLetters.find(text[i]) : std::string_view::npos;
    if (letter == std::string_view::npos) return std::nullopt;
    name += kSpecial[letter];
  }
  return name;
}

}  // namespace

std::string sums_text(const Sums& sums) {
  std::string text;
  for (const auto& [name, sha256] : sums) {
    const bool escapes = name.find_first_of(kSpecial) != std::string::npos;
    fmt::format_to(std::back_inserter(text), "{}{}  {}\n", escapes ? "\\" : "", sha256,
                   escapes ? escaped(name) : name);
  }
  return text;
}

Result<Sums> parse_sums(std::string_view text) {
  const auto none = [] {
    return fail(ErrorCode::DataLoss, "it is no list of the SHA-256 of files");
  };
  Sums sums;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return none();
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const bool escapes = line.starts_with('\\');
    if (escapes) line.remove_prefix(1);
    const std::string_view digits = line.substr(0, std::min(kDigits, line.size()));
    line.remove_prefix(digits.size());
    if (!is_sha256_hex(digits) || !line.starts_with("  ")) return none();
    line.remove_prefix(2);
    auto name = escapes ? unescaped(line) : std::string(line);
    if (!name || name->empty()) return none();
    if (!sums.emplace(*std::move(name), digits).second) return none();
  }
  return sums;
}

std::string step_sums_name(std::int64_t step) {
  return fmt::format(".muster/step-{}.sha256", step);
}

std::string node_sums_name(std::int64_t step, std::string_view node) {
  return fmt::format(".muster/step-{}/{}.sha256", step, node);
}

std::string job_sums_name(std::string_view job, std::string_view node) {
  return fmt::format(".muster/{}/{}.sha256", job, node);
}

}  // namespace muster::store

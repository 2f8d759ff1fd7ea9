#include "common/config/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace muster::config {

CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](const std::string& value) {
        return std::ranges::find(words, value) != words.end()
                   ? std::string()
                   : fmt::format("'{}' is none of {}", value, fmt::join(words, ", "));
      },
      "");
}

CLI::Validator path() {
  return CLI::Validator(
      [](const std::string& value) {
        return value.starts_with('~')
                   ? fmt::format("'{}': '~' is not expanded here; write the whole path", value)
                   : std::string();
      },
      "");
}

CLI::Validator size() {
  return CLI::Validator(
      [](const std::string& value) {
        return value.find('-') == std::string::npos
                   ? std::string()
                   : fmt::format("'{}' is no size; give a number of bytes, 0 or more", value);
      },
      "");
}

CLI::Validator regular_file() {
  return CLI::Validator(
      [](const std::string& value) {
        struct stat status{};  // a missing file is reported by who opens it
        if (::stat(value.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return std::string();
        return fmt::format("'{}' is not a regular file", value);
      },
      "");
}

}  // namespace muster::config

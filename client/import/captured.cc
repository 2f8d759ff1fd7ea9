#include "client/import/captured.h"

#include <algorithm>
#include <charconv>

#include "common/engine/model/engine.h"

namespace muster::import {
namespace {

constexpr std::size_t kWordsMost = 1U << 20U;

// Reads up to the next byte 0. Returns false if there is none.
bool take(std::string_view& bytes, std::string& into) {
  const std::size_t end = bytes.find('\0');
  if (end == std::string_view::npos) return false;
  into = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return true;
}

void put(std::string& bytes, std::string_view text) {
  bytes += text;
  bytes += '\0';
}

void add_variable(Variables& variables, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos && equals > 0)
    variables.insert_or_assign(std::string(text.substr(0, equals)),
                               std::string(text.substr(equals + 1)));
}

}  // namespace

std::string_view value_of(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string_view() : found->second;
}

std::string to_bytes(const Captured& call) {
  std::string bytes;
  put(bytes, call.directory);
  put(bytes, std::to_string(call.words.size()));
  for (const std::string& word : call.words) put(bytes, word);
  for (const auto& [name, value] : call.env) put(bytes, name + "=" + value);
  return bytes;
}

Result<Captured> from_bytes(std::string_view bytes) {
  const auto damaged = [] {
    return fail(ErrorCode::DataLoss,
                "reading what a launcher was called with: its record is cut short");
  };
  Captured call;
  std::string text;
  std::size_t words = 0;
  if (!take(bytes, call.directory) || !take(bytes, text)) return damaged();
  const auto read = std::from_chars(text.data(), text.data() + text.size(), words);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || words == 0 ||
      words > kWordsMost)
    return damaged();
  for (; words > 0; --words) {
    if (!take(bytes, text)) return damaged();
    call.words.push_back(text);
  }
  while (!bytes.empty()) {
    if (!take(bytes, text)) return damaged();
    add_variable(call.env, text);
  }
  return call;
}

Variables variables_of(const std::vector<std::string>& environment) {
  Variables variables;
  for (const std::string& each : environment) add_variable(variables, each);
  return variables;
}

bool is_rank(const Variables& env, const Variables& before) {
  const auto is_new = [&](std::string_view name) {
    return !value_of(env, name).empty() && value_of(env, name) != value_of(before, name);
  };
  return is_new("RANK") ||
         std::ranges::any_of(engine::engine_table(), [&](const engine::Engine& engine) {
           return std::ranges::any_of(engine.signs.rank_variables, is_new);
         });
}

}  // namespace muster::import

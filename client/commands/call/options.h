// Options that several verbs share, and the functions that parse their texts. Pure, except for
// reading the environment.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "client/render/json_text.h"
#include "common/base/error.h"
#include "common/base/time.h"

namespace muster::client {

void add_job_option(CLI::App& command, std::string& into);
// `-o/--output`.
void add_output_option(CLI::App& command, std::string& into,
                       render::Names names = render::Names::Yes);
void add_timeout_option(CLI::App& command, std::string& into, const std::string& what);
void add_ranks_option(CLI::App& command, std::vector<std::string>& into, const std::string& what);

// Accepts only digits, from `least` to `most`. CLI11 alone would take "-1" and
// "99999999999999999999" as the greatest possible number, and "010" as 8.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
template <class Number>
CLI::Option* add_number_option(CLI::App& command, const std::string& names, Number& into,
                               const std::string& what, std::uint64_t least = 0,
                               std::uint64_t most = std::numeric_limits<Number>::max()) {
  return command.add_option(names, into, what)->transform(whole_number(least, most));
}

// Parses a duration (common/base/duration.h); `option` is for the error.
Result<std::chrono::milliseconds> parse_timeout(std::string_view text,
                                                std::string_view option = "--timeout");

// Parses "0,8-15", split at the commas. An empty list means all ranks, and "all" gives an empty
// list.
Result<std::vector<std::uint32_t>> parse_ranks(const std::vector<std::string>& texts);

// Parses a time in the past:
// - "10m": so long before `now`;
// - "14:05" or "14:05:30": the last time that a clock here showed it;
// - "2026-03-01", "2026-03-01T14:05:30.5": here;
// - "2026-03-01T13:05Z", "2026-03-01T14:05+01:00".
// "Here" is the time zone of this process.
Result<WallTime> parse_since(std::string_view text, WallTime now);

}  // namespace muster::client

#include "tests/support/stub_trainer/options.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

namespace stub {
namespace {

[[noreturn]] void usage(const std::string& problem) {
  std::fprintf(stderr, "stub_trainer: error: %s\n", problem.c_str());
  std::exit(2);
}

std::string from_environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

}  // namespace

Options parse(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::function<void(const char*)>> with_value = {
      {"--steps", [&](const char* v) { options.steps = std::atoll(v); }},
      {"--end-file", [&](const char* v) { options.end_file = v; }},
      {"--step-ms", [&](const char* v) { options.step_ms = std::atof(v); }},
      {"--save", [&](const char* v) { options.save = v; }},
      {"--load", [&](const char* v) { options.load = v; }},
      {"--save-interval", [&](const char* v) { options.save_interval = std::atoll(v); }},
      {"--shard-bytes",
       [&](const char* v) { options.shard_bytes = std::strtoull(v, nullptr, 10); }},
      {"--save-ms", [&](const char* v) { options.save_ms = std::atof(v); }},
      {"--exit-code-at",
       [&](const char* v) {
         char* rest = nullptr;
         options.exit_at = std::strtoll(v, &rest, 10);
         if (*rest == ':') options.exit_code = std::atoi(rest + 1);
       }},
      {"--hang-at", [&](const char* v) { options.hang_at = std::atoll(v); }},
      {"--fail-rank",
       [&](const char* v) { options.fail_rank = static_cast<std::uint32_t>(std::atoll(v)); }},
      {"--children",
       [&](const char* v) { options.children = static_cast<unsigned>(std::atoi(v)); }},
      {"--lines", [&](const char* v) { options.lines = std::strtoull(v, nullptr, 10); }},
      {"--line-bytes", [&](const char* v) { options.line_bytes = std::strtoull(v, nullptr, 10); }},
      {"--truncate-at", [&](const char* v) { options.truncate_at = std::atoll(v); }},
      {"--trace", [&](const char* v) { options.trace = v; }},
      {"--stamp", [&](const char* v) { options.stamp = v; }},
      {"--seed", [&](const char* v) { options.seed = std::strtoull(v, nullptr, 10); }},
  };
  const std::map<std::string, std::function<void()>> without_value = {
      {"--ignore-sigterm", [&] { options.ignore_sigterm = true; }},
      {"--block", [&] { options.block = true; }},
      {"--no-barrier", [&] { options.barrier = false; }},
  };
  for (int i = 1; i < argc; ++i) {
    if (const auto flag = without_value.find(argv[i]); flag != without_value.end()) {
      flag->second();
      continue;
    }
    const auto option = with_value.find(argv[i]);
    if (option == with_value.end()) usage(std::string("unrecognized argument '") + argv[i] + "'");
    if (++i == argc) usage(std::string("argument ") + argv[i - 1] + ": expected one argument");
    option->second(argv[i]);
  }
  if (options.line_bytes < 40) usage("--line-bytes: at least 40, for the numbers");
  options.rank = static_cast<std::uint32_t>(std::atoll(from_environment("RANK", "0").c_str()));
  options.world =
      static_cast<std::uint32_t>(std::atoll(from_environment("WORLD_SIZE", "1").c_str()));
  options.master_address = from_environment("MASTER_ADDR", "127.0.0.1");
  options.master_port =
      static_cast<std::uint16_t>(std::atoi(from_environment("MASTER_PORT", "0").c_str()));
  if (options.rank >= options.world) usage("RANK is not below WORLD_SIZE");
  return options;
}

}  // namespace stub

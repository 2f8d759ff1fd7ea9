#include "common/log/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

namespace muster::log {
namespace {

constexpr std::size_t kOldFiles = 3;

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::Debug: return spdlog::level::debug;
    case Level::Info: return spdlog::level::info;
    case Level::Warn: return spdlog::level::warn;
    case Level::Error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Quotes a value when a reader (or awk) could otherwise not see where the value ends. Control
// characters never reach a terminal.
void append_value(std::string& line, std::string_view value) {
  bool plain = !value.empty();
  for (const char c : value) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\x7f') plain = false;
  }
  if (plain) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    line += (c >= 0 && c < ' ') || c == '\x7f' ? ' ' : c;
  }
  line += '"';
}

}  // namespace

Result<void> set_up(const Options& options) {
  const auto level = spdlog::level::from_str(options.level);
  if (level == spdlog::level::off && options.level != "off") {
    return fail(ErrorCode::InvalidArgument, "setting up logging: unknown level '" + options.level +
                                                "' (debug, info, warn, error, off)");
  }
  try {
    std::vector<spdlog::sink_ptr> sinks;
    if (options.to_stderr && !options.stderr_to_file)
      sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    if (!options.file.empty()) {
      spdlog::file_event_handlers handlers;
      if (options.stderr_to_file)
        handlers.after_open = [](const std::string&, std::FILE* file) {
          ::dup2(::fileno(file), STDERR_FILENO);
        };
      sinks.push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
          options.file.string(), options.file_bytes, kOldFiles, false, handlers));
    }
    auto logger = std::make_shared<spdlog::logger>(options.daemon, sinks.begin(), sinks.end());
    logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %-5l %n[%P] %v", spdlog::pattern_time_type::utc));
    logger->set_level(level);
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
  } catch (const spdlog::spdlog_ex& problem) {
    return fail(ErrorCode::Io,
                "opening the log file '" + options.file.string() + "': " + problem.what());
  }
  return {};
}

void write(Level level, std::string_view text, Fields fields) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  if (logger == nullptr || !logger->should_log(to_spdlog(level))) return;
  std::string line(text);
  for (const Field& field : fields) {
    line += ' ';
    line += field.name;
    line += '=';
    append_value(line, field.value);
  }
  logger->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

void flush() {
  if (spdlog::default_logger_raw() != nullptr) spdlog::default_logger_raw()->flush();
}

}  // namespace muster::log

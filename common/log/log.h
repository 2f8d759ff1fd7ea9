// Writes one log line per event, for people: time, level, daemon, sentence, fields. set_up()
// replaces the process's one spdlog logger (stderr, and a file in the state directory if one is
// named). Thread-safe.
//
// The log file is rotated at file_bytes: NAME.1.log is the newest of three old files. Libraries
// return errors; the edges log each error once. Core code never includes this header.
#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::log {

enum class Level { Debug, Info, Warn, Error };

struct Options {
  std::string daemon;          // "muster-controller"
  std::string level = "info";  // debug | info | warn | error | off
  std::filesystem::path file;  // empty: none
  bool to_stderr = true;
  // Whatever the process writes to stderr goes into the file as well, and no line goes there twice.
  bool stderr_to_file = false;
  std::size_t file_bytes = 64ULL << 20;
};
// Call it before any other thread starts. Errors: an unknown level, a file that cannot be opened.
Result<void> set_up(const Options& options);

struct Field {
  std::string_view name;
  std::string value;
  Field(std::string_view field_name, std::string_view text) : name(field_name), value(text) {}
  Field(std::string_view field_name, const std::string& text) : name(field_name), value(text) {}
  Field(std::string_view field_name, const char* text) : name(field_name), value(text) {}
  Field(std::string_view field_name, std::integral auto number)
      : name(field_name), value(std::to_string(number)) {}
};
using Fields = std::initializer_list<Field>;

void write(Level level, std::string_view text, Fields fields = {});
inline void debug(std::string_view text, Fields fields = {}) { write(Level::Debug, text, fields); }
inline void info(std::string_view text, Fields fields = {}) { write(Level::Info, text, fields); }
inline void warn(std::string_view text, Fields fields = {}) { write(Level::Warn, text, fields); }
inline void error(std::string_view text, Fields fields = {}) { write(Level::Error, text, fields); }
void flush();

}  // namespace muster::log

// Options of a daemon from a file: --config FILE, --check-config and --print-config, next to the
// options of its command line. main() uses one object on its thread, before anything starts.
//
// The options of the CLI::App are the only table: a key of the file is an option's name without its
// dashes, and the sample is made of the options' help texts. The file is YAML (common/spec reads
// it): one map, whose values are texts, or lists for options that may be repeated. The command line
// wins over a variable, and a variable wins over the file. Options with configurable(false) are for
// the command line alone.
//
// An error has the form "FILE:LINE:COLUMN: what is wrong".
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::config {

inline constexpr std::size_t kFileBytesMax = 64 * 1024;

// Thrown by CLI::App::parse for --print-config.
class CallForSample final : public CLI::Success {
 public:
  CallForSample() : CLI::Success("CallForSample", "the sample", CLI::ExitCodes::Success) {}
};

class ConfigFile {
 public:
  // Adds its options to `app`, which must live as long. It is created before the app's other
  // options, or after them.
  explicit ConfigFile(CLI::App& app);
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;

  // Returns the error of CLI::App::parse as a sentence with a place, if a value of the file or the
  // file itself is the cause; otherwise an empty text.
  [[nodiscard]] std::string explain(const CLI::ParseError& error) const;
  // Returns "FILE:LINE:COLUMN: " if the value of this option ("--name") is from the file, otherwise
  // an empty text.
  [[nodiscard]] std::string place_of(const std::string& option) const;
  // Returns true if --check-config was given: then the program ends after its checks.
  [[nodiscard]] bool check_only() const { return check_only_; }
  // Returns the line that --check-config prints when nothing is wrong.
  [[nodiscard]] std::string nothing_wrong() const;
  // Returns a file with every option, each with its help text and commented out.
  [[nodiscard]] std::string sample() const;

 private:
  class Reader;

  [[nodiscard]] std::vector<CLI::ConfigItem> read(std::string_view text);

  CLI::App& app_;
  CLI::Option* option_ = nullptr;
  bool check_only_ = false;
  std::string problems_;                       // of the file itself; one a line
  std::map<std::string, std::string> places_;  // "--name": "FILE:LINE:COLUMN: "
};

}  // namespace muster::config

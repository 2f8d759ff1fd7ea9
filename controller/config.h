// Parses the controller's command line: flags, each with a MUSTER_CONTROLLER_* variable and a key
// in the file of --config, checked as a whole. main() calls it once on the main thread. It reads
// arguments, environment and that file (common/config); for --check-config the access file, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"

namespace muster::controller {

struct Config {
  std::filesystem::path state_dir;
  // At least one is a unix socket; unix:STATE_DIR/controller.sock is added where none is named.
  std::vector<std::string> listen;
  std::string enrol;                    // HOST:PORT of the enrolment port; empty: there is none
  std::string login_socket;             // path of the enrolment socket; empty: there is none
  std::filesystem::path endpoint_file;  // empty: STATE_DIR/endpoint.json
  std::filesystem::path outputs_root;   // absolute; empty: STATE_DIR/outputs
  std::filesystem::path inputs_root;    // absolute; empty: STATE_DIR/inputs
  std::string log_level = "info";
  std::filesystem::path access_file;  // empty: none
  std::filesystem::path secrets_key;  // empty: STATE_DIR/secrets.key
  std::filesystem::path log_file;     // empty: stderr and state_dir/controller.log
  std::uint64_t log_quota = 20ull << 30;
  bool accept_loss = false;
  Duration archive_after = std::chrono::minutes(10);
  Duration archive_keep = std::chrono::hours(24 * 90);
  Duration heartbeat_interval = std::chrono::seconds(1);
  std::uint16_t port_first = 20'000, port_last = 29'999;
  std::filesystem::path dump;  // not empty: print the ledger of this state directory and exit
};

std::string_view version();

struct CommandLine {
  Config config;
  int exit_code = -1;  // >= 0: exit now (help, version, a check, a mistake), after printing `text`
  std::string text;
};
CommandLine parse_command_line(int argc, const char* const* argv);

Result<std::pair<std::uint16_t, std::uint16_t>> parse_port_range(std::string_view text);

}  // namespace muster::controller

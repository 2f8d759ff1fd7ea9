// Parses the launcher shim's report of the launches inside a script (worker/shim/report.cc). Plain
// functions; Supervisor calls them on the worker's one thread.
//
// The script's own status may be that of a `tee` after the launcher, so the worker needs this
// report. The job's user can write the file, so it may contain any bytes. The report has these
// lines:
//   begin PID START
//   end PID CODE SIGNAL NAME
//   gone PID                                 an earlier launch that is dead and reported no end
//   saves FIRST COUNT alone|whole DIR        after its "begin": where it would have saved
//   log RANK PATH                            after its "begin": for each rank
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::worker {

struct LaunchEnd {
  int code = 0;  // -1 when signal is set
  int signal = 0;
  // The process that ended: "rank 3". Empty: the launch reported no end (it was killed).
  std::string name;
  bool launched = false;  // there was a launch
  [[nodiscard]] bool bad() const { return code != 0 || signal != 0; }
};

struct LaunchSaves {
  std::uint32_t first_rank = 0, ranks = 0;
  bool weights_alone = false;
  std::string dir;  // absolute
};
struct LaunchLog {
  std::uint32_t rank = 0;  // of the training
  std::string path;        // absolute
};
struct Launches {
  bool any = false;
  std::optional<LaunchSaves> saves;  // of the first launch that would have saved
  std::vector<LaunchLog> logs;
};
Launches parse_launches(std::string_view text);

// Returns the first bad end after which no launch has begun: if a script tried again, only the
// later launch counts. A launch without an end was killed, unless a later launch has reported it as
// gone.
LaunchEnd parse_launch_report(std::string_view text);
// Empty: the file does not exist or is no regular file.
std::string read_launches(const std::filesystem::path& path);
// A missing file means no launch and no bad end.
LaunchEnd read_launch_report(const std::filesystem::path& path);

}  // namespace muster::worker

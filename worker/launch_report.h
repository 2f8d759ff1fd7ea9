// What the launcher shim has written of the launches inside a script (worker/shim/report.cc):
// "begin PID START", "end PID CODE SIGNAL NAME", "gone PID" of a launch before this one that lives
// no more and has told no end, and behind its "begin" "saves FIRST COUNT alone|whole DIR" where it
// would have saved, and "log RANK PATH" of each rank, a line each. The script's own status may be
// that of a `tee` behind the launcher. The file is
// the job's user's: any bytes.
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
  // of the process whose end it was: "rank 3"; empty: of a launch that has told no end (it was
  // killed)
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
  std::optional<LaunchSaves> saves;  // of the first launch that would have saved somewhere
  std::vector<LaunchLog> logs;
};
Launches parse_launches(std::string_view text);

// The first bad end with no launch begun after it: a script that tried again has the last word. A
// launch without an end was killed, unless one that was begun after it found it gone.
LaunchEnd parse_launch_report(std::string_view text);
// empty: it is not there, or is no plain file
std::string read_launches(const std::filesystem::path& path);
// a file that is not there: no launch, no bad end
LaunchEnd read_launch_report(const std::filesystem::path& path);

}  // namespace muster::worker

// What the launcher shim has written of the launches inside a script (worker/shim/report.cc): "begin PID START", "end PID CODE SIGNAL NAME", and "gone PID" of
// a launch before this one that lives no more and has told no end, a line each. The script's own status may be that of a `tee` behind the launcher. The file is
// the job's user's: any bytes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace muster::worker {

struct LaunchEnd {
  int code = 0;  // -1 when signal is set
  int signal = 0;
  std::string name;       // of the process whose end it was: "rank 3"; empty: of a launch that has told no end (it was killed)
  bool launched = false;  // there was a launch
  [[nodiscard]] bool bad() const { return code != 0 || signal != 0; }
};

// The first bad end with no launch begun after it: a script that tried again has the last word. A launch without an end was killed,
// unless one that was begun after it found it gone.
LaunchEnd parse_launch_report(std::string_view text);
LaunchEnd read_launch_report(const std::filesystem::path& path);  // a file that is not there: no launch, no bad end

}  // namespace muster::worker

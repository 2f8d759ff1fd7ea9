// The exit codes of the daemons with which another start would end, too. Neither systemd
// (RestartPreventExitStatus in deploy/package) nor muster's own supervisor starts them again.
#pragma once

namespace muster {

inline constexpr int kExitUsage = 64;    // the options are wrong
inline constexpr int kExitRefused = 77;  // agent: its join was refused for good

}  // namespace muster

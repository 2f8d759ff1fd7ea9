// Builds the paths of a private cluster on this machine (muster local up). Pure, except for reading
// the environment.
//
// No other code builds these paths. $MUSTER_LOCAL_DIR replaces the default directory.
//
//   <dir>/                 mode 0700; default ${XDG_STATE_HOME:-~/.local/state}/muster/local
//     endpoint             how clients find the controller (common/rpc/endpoint_file.h)
//     controller.sock      unix socket, 0600; elsewhere when the path is too long for a socket
//                          (local/local_socket.h)
//     controller/          the controller's state directory
//     agents/<name>/       an agent's state directory
//     cards/<name>         an agent's stand-in devices (--device-type)
//     log/<daemon>.log     the daemons' logs
//     processes            JSON: which daemons were to be started: pid, start time, devices of an
//                          agent
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace muster::client {

inline std::filesystem::path default_local_dir() {
  if (const char* dir = std::getenv("MUSTER_LOCAL_DIR"); dir != nullptr && *dir != '\0') return dir;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::filesystem::path(state) / "muster/local";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr && *home != '\0' ? home : "/tmp") /
         ".local/state/muster/local";
}
inline std::filesystem::path local_endpoint(const std::filesystem::path& dir) {
  return dir / "endpoint";
}
inline std::filesystem::path local_socket(const std::filesystem::path& dir) {
  return dir / "controller.sock";
}
inline std::filesystem::path local_controller_dir(const std::filesystem::path& dir) {
  return dir / "controller";
}
inline std::filesystem::path local_agent_dir(const std::filesystem::path& dir,
                                             const std::string& node) {
  return dir / "agents" / node;
}
inline std::filesystem::path local_cards(const std::filesystem::path& dir,
                                         const std::string& node) {
  return dir / "cards" / node;
}
inline std::filesystem::path local_log(const std::filesystem::path& dir,
                                       const std::string& daemon) {
  return dir / "log" / (daemon + ".log");
}
inline std::filesystem::path local_processes(const std::filesystem::path& dir) {
  return dir / "processes";
}

}  // namespace muster::client

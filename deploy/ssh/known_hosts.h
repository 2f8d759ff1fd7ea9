// Reads the text of known_hosts files and answers whether a host's key is the recorded one. Pure:
// text in, answers out; time is linear in the text for each question.
//
// Hostile input is bounded: a file has at most kFileBytesMost (its reader's limit) and a line at
// most kLineBytesMost. A line that cannot be read is skipped, with a problem "FILE:LINE: why".
//
// Source of the format: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". As with ssh(1), a key that no line
// has is "changed" when a line has another key of that host, of whatever type. A line for the name
// without the port is also accepted for another port than 22, but never makes a key "changed"
// there. Certificates of hosts are not used, so @cert-authority lines are skipped with a note.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::ssh {

inline constexpr std::size_t kFileBytesMost = std::size_t{4} << 20U;
inline constexpr std::size_t kLineBytesMost = std::size_t{64} << 10U;
inline constexpr std::uint16_t kSshPort = 22;

// Where a key is recorded: "/path/known_hosts:12".
struct KnownPlace {
  std::string file;
  std::size_t line = 0;
  [[nodiscard]] std::string text() const { return file + ":" + std::to_string(line); }
};

enum class KeyState : std::uint8_t { Known, Unknown, Changed, Revoked };
std::string_view to_string(KeyState state);

struct KeyAnswer {
  KeyState state = KeyState::Unknown;
  KnownPlace at;              // of Known, Changed, Revoked
  std::string recorded_type;  // of Changed
};

class KnownHosts {
 public:
  // Adds the lines of one file behind those of the files before it.
  void add(const std::string& file, std::string_view text);

  // `name` is what ssh(1) looks up: the host name after ssh_config, or its HostKeyAlias.
  [[nodiscard]] KeyAnswer check(std::string_view name, std::uint16_t port,
                                std::string_view blob) const;
  // The types of the recorded keys, without repetitions, in the order of the lines. A client asks
  // for them first, so that a host with several keys shows one that is recorded.
  [[nodiscard]] std::vector<std::string> types(std::string_view name, std::uint16_t port) const;
  // What was skipped. At most kProblemsMost, and then one that counts the others.
  [[nodiscard]] std::vector<std::string> problems() const;

 private:
  struct Line {
    KnownPlace place;
    std::string names;  // the field as it is
    std::string blob;
    bool revoked = false;
  };
  void add_line(const std::string& file, std::size_t number, std::string_view line);
  void problem(const std::string& file, std::size_t number, std::string_view why);

  std::vector<Line> lines_;
  std::vector<std::string> problems_;
  std::size_t more_problems_ = 0;
};

inline constexpr std::size_t kProblemsMost = 20;

// The line that records a key, with its line end. `salt`: 20 random bytes hide the name; empty:
// the name is readable. InvalidArgument: a name that cannot stand in a line.
Result<std::string> known_hosts_line(std::string_view name, std::uint16_t port,
                                     std::string_view blob, std::string_view salt);

}  // namespace muster::ssh

// A Session is a connection to one host over SSH that runs commands there, one after another.
// connect() makes one, by libssh2 or by OpenSSH's program `ssh`, and checks the host's key first.
//
// Blocking, and thread-compatible: one thread at a time uses a session, and different sessions may
// be used by different threads. connect() may be called from any number of threads. Every step has
// a deadline, so a server that stops answering ends in an error and never blocks for ever.
//
// Errors name the host and say what would help. Unreachable: no address, no route, refused, the
// connection broke, or it has no common algorithm. TimedOut: the deadline passed. NotAllowed: the
// host's key is unknown, changed or revoked, or the host refused the authentication. Nothing is
// ever sent to a host whose key is not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "deploy/ssh/prompts.h"

namespace muster::ssh {

// What a person writes about a host. What is empty comes from ssh_config(5), by `ssh -G`, if there
// is a program `ssh`; otherwise from the defaults of ssh_config(5).
struct Target {
  std::string host;        // a name, an address or an alias of ssh_config
  std::string address;     // as HostName of ssh_config(5); empty: ssh_config's, or `host`
  std::uint16_t port = 0;  // 0: ssh_config's, or 22
  std::string user;        // empty: ssh_config's, or the user that runs this program
  std::string identity_file;
  std::string jump;                      // as ProxyJump: "[USER@]HOST[:PORT][,...]", or "none"
  std::vector<std::string> known_hosts;  // empty: ssh_config's, or OpenSSH's default files
  // Records the key of a host that no file names. A changed or revoked key stays an error.
  bool accept_new = false;
};

inline constexpr Duration kConnectTimeMost = std::chrono::seconds(20);

struct Options {
  // for each transport that connect() tries, without the time that a person takes for an answer
  Duration connect_timeout = kConnectTimeMost;
  // OpenSSH's program: absolute, or searched on PATH. Empty: it is never used, not even for
  // ssh_config.
  std::string ssh_program = "ssh";
  // a file in place of ~/.ssh/config and /etc/ssh/ssh_config
  std::string ssh_config;
  // The program that calls run_askpass(), for the questions of `ssh` (askpass.h): an absolute path.
  // Empty: `ssh` gets keys and ssh-agent alone.
  std::string askpass_program;
};

enum class TransportKind : std::uint8_t { Libssh2, OpenSsh };
std::string_view to_string(TransportKind kind);  // "libssh2", "openssh"

struct Transport {
  TransportKind kind = TransportKind::Libssh2;
  std::string why;  // for people: why this one was chosen
  // for people: keys that were recorded, lines of known_hosts that were skipped
  std::vector<std::string> notes;
  bool by_password = false;  // the host itself took a password, and no key
};

// What a command reads as its standard input.
class Source {
 public:
  static Source none() { return {}; }
  // The bytes must outlive the run.
  static Source memory(std::string_view bytes);
  // A regular file, from the descriptor's position to its end; the descriptor stays the caller's.
  static Source file(int fd);

  // The next bytes, at most `most`; empty at the end. They are valid until the next call.
  Result<std::string_view> next(std::size_t most);

 private:
  std::string_view bytes_;
  int fd_ = -1;
  std::string buffer_;
};

inline constexpr std::size_t kOutputBytesMost = std::size_t{1} << 20U;
// The last line of an output that was cut. The rest of it was read and dropped.
inline constexpr std::string_view kOutputCut = "\n[muster: output cut here, after 1 MiB]\n";

inline constexpr std::size_t kCommandBytesMost = std::size_t{30} << 10U;

struct Command {
  // The remote user's login shell runs it. At most kCommandBytesMost; a larger script is an input
  // of `sh`. Others may see it in the lists of processes, so a secret is an input, too. Words that
  // are not fixed are quoted with shell_word() (common/text/shell_word.h).
  std::string text;
};

struct Output {
  std::string out, err;  // at most kOutputBytesMost and kOutputCut each; any bytes
  bool out_cut = false, err_cut = false;
  int status = 0;      // 128 + number for a signal whose number is known, 255 for another one
  std::string signal;  // its name without "SIG", "TERM"; empty: the command ended by itself

  [[nodiscard]] bool ok() const { return status == 0 && signal.empty(); }
};

class Session {
 public:
  virtual ~Session() = default;
  // Ends with the command's end, or with `timeout`. A status that is not 0 is no error. Errors: the
  // connection broke, or TimedOut. After an error the session is closed, and further runs fail. It
  // is not known then whether the command ended, except where it had not begun.
  virtual Result<Output> run(const Command& command, Source input, Duration timeout) = 0;
  [[nodiscard]] virtual const Transport& transport() const = 0;
};

// Errors as above. `prompts` is asked for a passphrase or a password only when the other ways have
// not been accepted.
Result<std::unique_ptr<Session>> connect(const Target& target, const Options& options,
                                         Prompts& prompts);

}  // namespace muster::ssh

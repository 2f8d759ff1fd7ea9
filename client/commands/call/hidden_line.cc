#include "client/commands/call/hidden_line.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "client/render/style.h"
#include "common/io/file.h"
#include "common/io/unique_fd.h"

namespace muster::client {
namespace {

constexpr std::size_t kAnswerMost = 4096;
constexpr char kInterrupt = 3, kEnd = 4, kEraseLine = 21, kQuit = 28;  // Ctrl-C, -D, -U, -backslash

enum class Ending { Whole, None, Interrupted };

// Reads one line without the terminal's own editing.
Ending read_answer(int tty, std::string& answer) {
  for (char c = 0; answer.size() < kAnswerMost;) {
    const ssize_t got = ::read(tty, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1 || c == kEnd) return Ending::None;
    if (c == kInterrupt || c == kQuit) return Ending::Interrupted;
    if (c == '\n' || c == '\r') return Ending::Whole;
    if (c == '\b' || c == '\x7f') {
      if (!answer.empty()) answer.pop_back();
    } else if (c == kEraseLine) {
      answer.clear();
    } else {
      answer += c;
    }
  }
  return Ending::None;
}

}  // namespace

// Ctrl-C is read as a character: a signal would end the program before the terminal shows again
// what is typed.
std::optional<std::string> ask_hidden(const std::string& text) {
  const io::UniqueFd tty(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!tty) return std::nullopt;
  termios before{};
  if (::tcgetattr(tty.get(), &before) != 0) return std::nullopt;
  termios quiet = before;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG);
  quiet.c_cc[VMIN] = 1;
  quiet.c_cc[VTIME] = 0;
  ::tcsetattr(tty.get(), TCSAFLUSH, &quiet);
  std::size_t written = 0;
  (void)io::write_all(tty.get(), render::printable(text) + ": ", written);
  std::string answer;
  answer.reserve(kAnswerMost);  // so that no copy of it stays behind
  const Ending ending = read_answer(tty.get(), answer);
  ::tcsetattr(tty.get(), TCSAFLUSH, &before);
  (void)io::write_all(tty.get(), "\n", written);
  if (ending == Ending::Interrupted) ::kill(::getpid(), SIGINT);
  if (ending != Ending::Whole || answer.empty()) return std::nullopt;
  return answer;
}

}  // namespace muster::client

#include "client/commands/follow/screen.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "client/commands/call/out.h"

namespace muster::client {
namespace {

constexpr std::string_view kClearBelow = "\r\x1b[J";
constexpr std::string_view kClearLine = "\x1b[K";
// the terminal itself cuts rows that are too long
constexpr std::string_view kCut = "\x1b[?7l", kWrap = "\x1b[?7h";
// limit of a line on a terminal; `muster logs` prints all of it
constexpr std::size_t kLineRows = 4;
constexpr std::size_t kBuffer = 64 << 10;
constexpr std::size_t kLineColumns = 1000;  // or this much

bool is_pipe(int fd) {
  struct stat about{};
  return fstat(fd, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode));
}

}  // namespace

Screen::Screen(const render::Style& out, const render::Style& err, bool quiet)
    : out_(out), err_(err) {
  if (quiet) return;
  if (render::is_screen(STDOUT_FILENO)) {
    block_ = stdout;
    // One drawing is one write, so that no other output comes between its rows.
    (void)std::setvbuf(stdout, nullptr, _IOFBF, kBuffer);
  } else if (render::is_screen(STDERR_FILENO) && !render::is_terminal(STDOUT_FILENO) &&
             !is_pipe(STDOUT_FILENO)) {
    block_ = stderr;
  }
}

Screen::~Screen() {
  if (drawn_.empty()) return;
  std::fwrite(kClearBelow.data(), 1, kClearBelow.size(), block_);
  std::fflush(block_);
}

std::size_t Screen::block_width() const {
  return render::terminal_width(block_ == stderr ? STDERR_FILENO : STDOUT_FILENO);
}

void Screen::say(std::string_view line) {
  if (is_one()) {
    erase();
    fmt::print("{}\n", render::clip(line, std::max(kLineRows * block_width(), kLineColumns)));
  } else {
    fmt::print("{}\n", line);
  }
  flush_out();
}

void Screen::draw(const std::vector<std::string>& rows) {
  if (block_ == nullptr) return;
  const std::size_t height =
      render::terminal_height(block_ == stderr ? STDERR_FILENO : STDOUT_FILENO);
  const std::size_t room = height > 2 ? height - 1 : rows.size();  // one row stays above
  const std::size_t count = std::min(rows.size(), room);
  std::string bytes = fmt::format("\r{}{}", kCut, kClearLine);
  for (std::size_t row = 0; row < count; ++row)
    bytes += fmt::format("\n{}{}", rows[row], kClearLine);
  bytes += fmt::format("\x1b[J{}\r", kWrap);
  if (count > 0) bytes += fmt::format("\x1b[{}A", count);
  if (bytes == drawn_) return;
  write_block(bytes);
  drawn_ = std::move(bytes);
}

void Screen::erase() {
  if (drawn_.empty()) return;
  drawn_.clear();
  write_block(std::string(kClearBelow));
}

void Screen::end(const std::vector<std::string>& rows) {
  erase();
  if (block_ != stderr) return;
  std::string bytes;
  for (const std::string& row : rows) bytes += row + "\n";
  write_block(bytes);
}

void Screen::write_block(const std::string& bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), block_);
  if (block_ == stdout)
    flush_out();
  else
    std::fflush(block_);
}

}  // namespace muster::client

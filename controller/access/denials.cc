#include "controller/access/denials.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "common/io/file.h"
#include "common/log/log.h"

namespace muster::controller {
namespace {

constexpr std::size_t kDenialTextMost = 512;

// One word or quoted text in one line, whatever a client sent.
std::string line_text(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kDenialTextMost))
    shown += c == '"' || c == '\\' || (c >= 0 && c < ' ') || c == '\x7f' ? ' ' : c;
  return shown;
}

std::string line_of(const Denial& denial, std::uint64_t count, WallTime at) {
  return utc_text(at) + " user=" + line_text(denial.user) + " method=" + line_text(denial.method) +
         (denial.job.empty() ? "" : " job=" + line_text(denial.job)) +
         " count=" + std::to_string(count) + " why=\"" + line_text(denial.why) + "\"\n";
}

}  // namespace

Denials::~Denials() { write(true); }

void Denials::note(Denial denial) {
  const BootTime now = clock_.now().boot;
  {
    const MutexLock lock(mutex_);
    if (causes_.size() >= kCausesMost && !causes_.contains(denial))
      denial = {.user = "*", .method = "*", .job = "", .why = "more causes than are kept apart"};
    Counted& counted = causes_[std::move(denial)];
    ++counted.since;
    if (asked_ || (!counted.due(now) && now - taken_ < kWindow)) return;
    asked_ = true;
  }
  later_([this] { write(false); });
}

void Denials::write(bool all) {
  const MutexLock lock(file_mutex_);
  const std::string lines = take(all);
  if (lines.empty()) return;
  if (const int error = append(lines); error == 0) {
    trouble_.over();
  } else if (trouble_.first(std::to_string(error))) {
    log::warn("refusals of calls are not written down",
              {{"file", file_.string()}, {"why", std::generic_category().message(error)}});
  }
}

std::string Denials::take(bool all) {
  const Now now = clock_.now();
  std::string lines;
  const MutexLock lock(mutex_);
  asked_ = false;
  taken_ = now.boot;
  for (auto at = causes_.begin(); at != causes_.end();) {
    auto& [denial, counted] = *at;
    if (!all && !counted.due(now.boot)) {
      ++at;
    } else if (counted.since == 0) {
      at = causes_.erase(at);
    } else {
      lines += line_of(denial, std::exchange(counted.since, 0), now.wall);
      counted.written = now.boot;
      ++at;
    }
  }
  return lines;
}

int Denials::append(std::string_view lines) const {
  const io::UniqueFd fd(
      ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return errno;
  std::size_t written = 0;
  if (const int error = io::write_all(fd.get(), lines, written); error != 0) return error;
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || std::cmp_less(status.st_size, file_most_)) return 0;
  std::filesystem::path old = file_;
  old.replace_extension(".1.log");
  std::error_code ignored;  // then the file grows on until it can be renamed
  std::filesystem::rename(file_, old, ignored);
  return 0;
}

}  // namespace muster::controller

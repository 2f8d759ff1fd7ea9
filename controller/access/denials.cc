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

}  // namespace

Denials::~Denials() {
  const MutexLock lock(mutex_);
  write_old(clock_.now().boot, true);
}

void Denials::note(Denial denial) {
  const BootTime now = clock_.now().boot;
  const MutexLock lock(mutex_);
  if (now - swept_ >= kWindow) write_old(now, false);
  if (causes_.size() >= kCausesMost && !causes_.contains(denial))
    denial = {.user = "*", .method = "*", .job = "", .why = "more causes than are kept apart"};
  const auto [entry, fresh] = causes_.try_emplace(denial);
  ++entry->second.since;
  if (!fresh && now - entry->second.written < kWindow) return;
  write(denial, std::exchange(entry->second.since, 0));
  entry->second.written = now;
}

// A cause whose minute is over is forgotten, after what was counted of it.
void Denials::write_old(BootTime now, bool all) {
  swept_ = now;
  for (auto at = causes_.begin(); at != causes_.end();) {
    if (!all && now - at->second.written < kWindow) {
      ++at;
      continue;
    }
    if (at->second.since > 0) {
      write(at->first, std::exchange(at->second.since, 0));
      at->second.written = now;
      ++at;
    } else {
      at = causes_.erase(at);
    }
  }
}

void Denials::write(const Denial& denial, std::uint64_t count) {
  append(utc_text(clock_.now().wall) + " user=" + line_text(denial.user) + " method=" +
         line_text(denial.method) + (denial.job.empty() ? "" : " job=" + line_text(denial.job)) +
         " count=" + std::to_string(count) + " why=\"" + line_text(denial.why) + "\"\n");
}

void Denials::append(std::string_view line) {
  const auto failed = [&](int error) {
    if (trouble_.first(std::to_string(error)))
      log::warn("refusals of calls are not written down",
                {{"file", file_.string()}, {"why", std::generic_category().message(error)}});
  };
  const io::UniqueFd fd(
      ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return failed(errno);
  std::size_t written = 0;
  if (const int error = io::write_all(fd.get(), line, written); error != 0) return failed(error);
  trouble_.over();
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || std::cmp_less(status.st_size, file_most_)) return;
  std::filesystem::path old = file_;
  old.replace_extension(".1.log");
  std::error_code ignored;  // then the file grows on until it can be renamed
  std::filesystem::rename(file_, old, ignored);
}

}  // namespace muster::controller

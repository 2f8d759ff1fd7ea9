#include "agent/outputs/send_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/outputs/rclone_name.h"
#include "agent/store/rclone_run.h"
#include "agent/store/rclone_verdict.h"
#include "common/base/controls.h"
#include "common/digest/file_digests.h"
#include "common/io/memory_file.h"
#include "common/io/unique_fd.h"
#include "common/log/log.h"
#include "common/store/store_url.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLogMost = 16 << 20;
// A run of rclone takes at most so much, so that an outage loses no more than one of them.
constexpr std::size_t kBatchFiles = 1'000;
constexpr std::uint64_t kBatchBytes = std::uint64_t{4} << 30;
// So often a file may be found changed after it was sent.
constexpr int kChangesMost = 5;
constexpr std::string_view kAlways = "--no-check-dest";
// Within this time two writes may have the same time.
constexpr std::int64_t kTickNs = 1'000'000'000;

// What its log says that it has copied, in its own spelling.
std::multiset<std::string> copied(std::string_view log) {
  std::multiset<std::string> names;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string_view line = log.substr(at, end - at);
    at = end + 1;
    if (!line.contains(R"("msg":"Copied )")) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object()) names.insert(json.value("object", ""));
  }
  return names;
}

class Sender {
 public:
  Sender(const UploadWork& work, const FilesToSend& what, const RcloneRun& rclone)
      : work_(work), what_(what), rclone_(rclone), sent_(read_sent(work.sent, work.upload.url())) {}

  Uploaded run() {
    auto until = Clock::now() + work_.away_most;
    std::chrono::milliseconds pause = seconds(1);
    while (!work_.abandoned.is_set()) {
      moved_on_ = false;
      const std::string why = once();
      if (why.empty() || is_final_) return result(why);
      if (moved_on_) {
        until = Clock::now() + work_.away_most;
        pause = seconds(1);
      }
      if (Clock::now() > until) return result(why);
      work_.abandoned.wait(pause);
      pause = std::min<std::chrono::milliseconds>(2 * pause, seconds(30));
    }
    return {};
  }

 private:
  // Why it is not done; empty: it is.
  std::string once() {
    auto listed = what_.list();
    // What was written just now would not be remembered: two writes may have one time.
    const auto is_recent = [before = now_ns() - kTickNs](const auto& file) {
      return file.second.modified_ns >= before;
    };
    if (listed && what_.remembers && std::ranges::any_of(*listed, is_recent) &&
        !work_.abandoned.wait(seconds(1)))
      listed = what_.list();
    if (!listed) return end(listed.error().message);
    files_ = *std::move(listed);
    there_.clear();
    const std::size_t left_out =
        std::erase_if(files_, [](const auto& file) { return !rclone_name(file.first); });
    const auto is_sent = [&](const std::string& name, FileState& state) {
      const auto found = sent_.find(name);
      if (!what_.remembers || found == sent_.end() || !are_same(found->second, state)) return false;
      state.sha256 = found->second.sha256;
      return !state.sha256.empty() || !wants_sums();
    };
    for (const bool last : {false, true}) {
      std::vector<std::string> again, fresh;
      for (auto& [name, state] : files_)
        if ((what_.is_last && what_.is_last(name)) == last)
          (is_sent(name, state) ? again : fresh).push_back(name);
      if (!what_.checks) there_.insert(again.begin(), again.end());
      if (auto why = what_.checks ? send_all(again, "--size-only") : ""; !why.empty()) return why;
      if (!fresh.empty() && what_.before_fresh) what_.before_fresh(fresh);
      auto why = send_all(fresh, kAlways);
      remember();
      if (!why.empty()) return why;
      if (why = changed_since(fresh); !why.empty())
        return ++changes_ < kChangesMost ? why : end(why);
    }
    if (left_out > 0)
      return end(
          fmt::format("{} file{} left out: rclone writes a control character as a sign that "
                      "is in the name",
                      left_out, left_out == 1 ? " is" : "s are"));
    return {};
  }

  // `how`: what rclone does about those that are there. A file that cannot be read stops no others.
  std::string send_all(const std::vector<std::string>& names, std::string_view how) {
    std::string first_why;
    for (std::size_t first = 0; first < names.size();) {
      std::size_t last = first;
      std::uint64_t bytes = 0;
      while (last < names.size() && last - first < kBatchFiles && bytes < kBatchBytes)
        bytes += files_.at(names[last++]).bytes;
      auto why = send({names.begin() + static_cast<std::ptrdiff_t>(first),
                       names.begin() + static_cast<std::ptrdiff_t>(last)},
                      how);
      if (!why.empty() && verdict_ != Verdict::NodeFault) return why;
      if (first_why.empty()) first_why = std::move(why);
      first = last;
    }
    return first_why;
  }

  std::string send(const std::vector<std::string>& names, std::string_view how) {
    std::string lines;
    for (const std::string& name : names) lines += rclone_name(name).value_or(name) + "\n";
    const auto list = io::MemoryFile::make(lines);
    if (!list) return end(list.error().message);
    const std::int64_t before = now_ns();
    std::vector<std::string> words = {"--files-from-raw", list->path(), std::string(how),
                                      "--multi-thread-streams", "0", "--s3-no-check-bucket",
                                      // changed_since() sees it, for one file at a time
                                      "--local-no-check-updated", "--verbose"};
    if (work_.rate_limit > 0)
      words.insert(words.end(), {"--bwlimit", fmt::format("{}B", work_.rate_limit)});
    words.insert(words.end(), {what_.dir, rclone_.source()});
    const process::ToolAnswer answer =
        rclone_.run(runner_, "copy", std::move(words), Patience::Long,
                    {.each = std::chrono::hours(24),
                     .total = std::chrono::hours(24),
                     .bytes = kLogMost,
                     .cancel_fd = work_.abandoned.fd()});
    const bool sends = how == kAlways;
    const std::multiset<std::string> done = copied(answer.output);
    const bool failed = !answer.why.empty() || answer.absent;
    // It says nothing about a name of the list that it does not find.
    const bool left_some =
        !failed && sends && done.size() < names.size() && done.size() < names.size() - gone(names);
    for (const std::string& name : names) {
      const bool is_there = failed || left_some ? done.contains(*rclone_name(name)) : true;
      if (!is_there) continue;
      there_.insert(name);
      if (sends) moved_on_ = true;
      FileState& state = files_.at(name);
      if (sends) state.sha256 = sum_of(name);
      if (state.modified_ns < before - kTickNs) sent_[name] = state;
    }
    if (left_some) {
      verdict_ = Verdict::NodeFault;
      return end(fmt::format("rclone has copied {} of {} files", done.size(), names.size()));
    }
    if (failed) {
      const RunFailure failure = why_failed(answer);
      verdict_ = answer.absent ? Verdict::Refused
                               : verdict_of(failure.message, what_.dir, rclone_.has_own_ca());
      const bool may_pass = verdict_ != Verdict::Refused && verdict_ != Verdict::NodeFault;
      return may_pass ? failure.text : end(failure.text);
    }
    if (Clock::now() > remembered_ + seconds(10)) remember();
    return {};
  }

  [[nodiscard]] bool wants_sums() const { return !work_.upload.node().empty() && what_.remembers; }

  // rclone has just read it, so it is in memory, unless it is large. Empty: it is not wanted, or it
  // cannot be read any more. If it was written meanwhile, changed_since() sees that.
  [[nodiscard]] std::string sum_of(const std::string& name) const {
    if (!wants_sums()) return {};
    const io::UniqueFd file(::open(fmt::format("{}/{}", what_.dir, name).c_str(),
                                   O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file) return {};
    const auto digests =
        digests_of(file.get(), Digests::Sha256, [this] { return work_.abandoned.is_set(); });
    return digests ? digests->sha256 : "";
  }

  // It is lost at worst, and the files are sent again.
  void remember() {
    if (!what_.remembers) return;
    remembered_ = Clock::now();
    if (auto kept = write_sent(work_.sent, work_.upload.url(), sent_); !kept)
      log::warn("what was uploaded is not remembered", {{"why", kept.error().message}});
  }

  [[nodiscard]] std::size_t gone(const std::vector<std::string>& names) const {
    const auto now = what_.list();
    if (!now) return 0;
    return static_cast<std::size_t>(std::ranges::count_if(
        names, [&](const std::string& name) { return !now->contains(name); }));
  }

  // The first of these files that has other bytes now. Empty: none.
  std::string changed_since(const std::vector<std::string>& names) {
    const auto now = what_.list();
    if (!now) return end(now.error().message);
    std::string first;
    for (const std::string& name : names) {
      const auto found = now->find(name);
      if (found != now->end() && are_same(found->second, files_.at(name))) continue;
      sent_.erase(name);
      there_.erase(name);
      if (first.empty() && found != now->end()) first = name;
    }
    return first.empty()
               ? first
               : fmt::format("'{}' was written while it was uploaded", without_controls(first));
  }

  // Another try would end in the same way.
  std::string end(std::string why) {
    is_final_ = true;
    return why;
  }

  [[nodiscard]] Uploaded result(const std::string& why) const {
    Uploaded uploaded{.files = 0, .bytes = 0, .problem = why};
    for (const auto& [name, state] : files_) {
      if (!there_.contains(name)) continue;
      ++uploaded.files;
      uploaded.bytes += state.bytes;
      if (!state.sha256.empty()) uploaded.sums.emplace(name, state.sha256);
    }
    return uploaded;
  }

  const UploadWork& work_;
  const FilesToSend& what_;
  const RcloneRun& rclone_;
  SentFiles sent_, files_;
  process::ToolRunner runner_;
  std::set<std::string> there_;
  Verdict verdict_ = Verdict::TryAgain;  // of the last run that failed
  bool is_final_ = false, moved_on_ = false;
  int changes_ = 0;
  Clock::time_point remembered_ = Clock::now();
};

}  // namespace

Uploaded send_files(const UploadWork& work, const FilesToSend& files) {
  const auto url = store::parse_url(work.upload.url());
  if (!url) return Uploaded::failed(url.error());
  const auto rclone = RcloneRun::make(work.upload.profile(), *url, work.key);
  if (!rclone) return Uploaded::failed(rclone.error());
  return Sender(work, files, *rclone).run();
}

}  // namespace muster::agent

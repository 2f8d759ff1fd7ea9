#include "agent/outputs/stored_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/outputs/rclone_name.h"
#include "agent/store/rclone_run.h"
#include "agent/store/rclone_verdict.h"
#include "common/base/controls.h"
#include "common/digest/sha256.h"
#include "common/io/file.h"
#include "common/io/memory_file.h"
#include "common/log/log.h"
#include "common/store/store_url.h"
#include "common/store/sums.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAnswerMost = 16 << 20, kListMost = 128 << 20;
constexpr std::chrono::minutes kRunMost{2};  // the next seal tries again

// It stays below the directory that it is below.
bool is_below(const std::string& name) {
  const fs::path path(name);
  return path.is_relative() && path.lexically_normal() == path && !name.starts_with("..");
}

// A save directory in the store.
class StoredSaves {
 public:
  static Result<std::unique_ptr<StoredSaves>> open(const UploadWork& work, std::string dir) {
    auto url = store::parse_url(work.upload.url());
    if (!url) return fail(std::move(url.error()));
    auto rclone = RcloneRun::make(work.upload.profile(), *url, work.key);
    if (!rclone) return fail(std::move(rclone.error()));
    const bool has_dirs = url->scheme != store::Scheme::S3 && url->scheme != store::Scheme::Obs;
    return std::unique_ptr<StoredSaves>(
        new StoredSaves(work, *std::move(rclone), std::move(dir), has_dirs));
  }

  // Lists by their names, of those that `which` fit ("step-*/*.sha256"; rclone's filters).
  struct List {
    std::string sha256;
    store::Sums sums;
  };
  Result<std::map<std::string, List>> lists(const std::vector<std::string>& which) {
    const fs::path copy = work_.sent.native() + ".lists";  // Uploads::forget_all_but() knows it
    std::error_code wrong;
    fs::remove_all(copy, wrong);
    std::map<std::string, List> lists;
    std::vector<std::string> words = {at(store::kSumsDir), copy.native()};
    for (const std::string& one : which)
      words.insert(words.end(), {"--include", fmt::format("/{}", one)});
    auto done = run("copy", std::move(words));
    if (!done && is_absent_) return lists;
    for (fs::recursive_directory_iterator one(copy, wrong), end; done && !wrong && one != end;
         one.increment(wrong)) {
      if (!one->is_regular_file()) continue;
      const std::string name =
          (fs::path(store::kSumsDir) / one->path().lexically_relative(copy)).native();
      const auto text = io::read_file(one->path(), kListMost);
      auto sums = text ? store::parse_sums(*text) : Result<store::Sums>(fail(Error(text.error())));
      if (sums)
        lists.emplace(name, List{.sha256 = sha256_hex(*text), .sums = *std::move(sums)});
      else
        done = fail(std::move(sums.error()).in(fmt::format("'{}'", without_controls(name))));
    }
    fs::remove_all(copy, wrong);
    if (!done) return fail(std::move(done.error()));
    return lists;
  }

  Result<void> rename(const std::string& from, const std::string& to) {
    return run("moveto", {at(from), at(to)});
  }

  Result<void> remove(const std::set<std::string>& names) {
    if (names.empty()) return {};
    std::string lines;
    for (const std::string& name : names) lines += rclone_name(name).value_or(name) + "\n";
    const auto list = io::MemoryFile::make(lines);
    if (!list) return fail(Error(list.error()));
    auto done = run("delete", {"--files-from-raw", list->path(), "--no-traverse", at("")});
    return !done && is_absent_ ? Result<void>() : std::move(done);
  }

  // Directories in which no file is, where the store has directories.
  void remove_empty(const std::set<std::string>& names) {
    std::set<std::string> tops;
    for (const std::string& name : names)
      if (const std::size_t slash = name.find('/'); has_dirs_ && slash != std::string::npos)
        tops.insert(name.substr(0, slash));
    for (const std::string& top : tops) (void)run("rmdirs", {at(top)});
  }

 private:
  StoredSaves(const UploadWork& work, RcloneRun rclone, std::string dir, bool has_dirs)
      : work_(work), rclone_(std::move(rclone)), dir_(std::move(dir)), has_dirs_(has_dirs) {}

  [[nodiscard]] std::string at(std::string_view below) const {
    return fmt::format("{}/{}{}{}", rclone_.source(), dir_, below.empty() ? "" : "/", below);
  }

  Result<void> run(const char* verb, std::vector<std::string> words) {
    const process::ToolAnswer answer = rclone_.run(runner_, verb, std::move(words), Patience::Short,
                                                   {.each = kRunMost,
                                                    .total = kRunMost,
                                                    .bytes = kAnswerMost,
                                                    .cancel_fd = work_.abandoned.fd()});
    is_absent_ = false;
    if (answer.why.empty() && !answer.absent) return {};
    const RunFailure failure = why_failed(answer);
    is_absent_ =
        !answer.absent && verdict_of(failure.message, "", rclone_.has_own_ca()) == Verdict::Absent;
    return fail(ErrorCode::Unreachable, failure.text);
  }

  const UploadWork& work_;
  const RcloneRun rclone_;
  const std::string dir_;
  const bool has_dirs_;
  process::ToolRunner runner_;
  bool is_absent_ = false;  // what the last run was to read or remove
};

void log_sealed(const UploadWork& work, const Error& error) {
  log::warn("a list of a checkpoint that is written again stays in the store",
            {{"job", work.job}, {"why", error.message}});
}

}  // namespace

void unseal(const UploadWork& work, const StoredCheckpoint& checkpoint) {
  const auto saves = StoredSaves::open(work, checkpoint.dir);
  if (!saves) return log_sealed(work, saves.error());
  if (auto done = (*saves)->remove({store::step_sums_name(checkpoint.step)}); !done)
    log_sealed(work, done.error());
}

void unseal_all(const UploadWork& work, const std::string& dir,
                const std::vector<std::string>& names) {
  const std::set<std::string_view> written(names.begin(), names.end());
  const auto saves = StoredSaves::open(work, dir);
  if (!saves) return log_sealed(work, saves.error());
  const auto lists = (*saves)->lists({fmt::format(
      "step-*/{}.sha256", work.upload.has_others() ? work.upload.node() : std::string("*"))});
  if (!lists) return log_sealed(work, lists.error());
  std::set<std::string> tops;
  for (const auto& [name, list] : *lists)
    if (std::ranges::any_of(list.sums,
                            [&](const auto& one) { return written.contains(one.first); }))
      tops.insert(fs::path(name).parent_path().native() + ".sha256");
  if (auto done = (*saves)->remove(tops); !done) log_sealed(work, done.error());
}

Result<void> remove_checkpoint(const UploadWork& work, const StoredCheckpoint& checkpoint,
                               const engine::CheckpointLayout& layout, bool with_mark) {
  const auto saves = StoredSaves::open(work, checkpoint.dir);
  if (!saves) return fail(Error(saves.error()));
  const std::string top = store::step_sums_name(checkpoint.step);
  const std::string removed = fs::path(top).replace_extension(".removed");
  const std::string dir = fmt::format("step-{}", checkpoint.step);
  const auto found = (*saves)->lists({dir + ".sha256", dir + ".removed", dir + "/*.sha256"});
  if (!found) return fail(Error(found.error()));
  const auto sealed = found->find(found->contains(top) ? top : removed);
  if (sealed == found->end()) return {};
  std::set<std::string> marks, files, lists;
  if (with_mark)
    for (const auto& [name, content] : layout.marks(checkpoint.step)) marks.insert(name);
  for (const auto& [name, sha256] : sealed->second.sums) {
    const auto list = found->find(name);
    if (list == found->end()) continue;           // an earlier removal was interrupted behind it
    if (list->second.sha256 != sha256) continue;  // of another checkpoint, which is there now
    lists.insert(name);
    for (const auto& [file, sum] : list->second.sums) {
      if (!is_below(file))
        return fail(
            ErrorCode::DataLoss,
            fmt::format("'{}' has the name '{}'", without_controls(name), without_controls(file)));
      files.insert(file);
    }
  }
  if (sealed->first == top)
    if (auto done = (*saves)->rename(top, removed); !done) return done;
  const std::set<std::string> last = {removed};
  for (const std::set<std::string>* some :
       {&std::as_const(marks), &std::as_const(files), &std::as_const(lists), &last})
    if (auto done = (*saves)->remove(*some); !done) return done;
  (*saves)->remove_empty(files);
  (*saves)->remove_empty(lists);
  return {};
}

}  // namespace muster::agent

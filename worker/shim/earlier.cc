#include "worker/shim/earlier.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "common/io/file.h"

namespace muster::shim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTracker = "latest_checkpointed_iteration.txt";
constexpr std::string_view kIteration = "iter_", kRelease = "release";
constexpr std::size_t kStepDigitsLeast = 7;

std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

std::string steps_text(const std::vector<Earlier::Checkpoint>& checkpoints) {
  std::string text;
  for (const Earlier::Checkpoint& one : checkpoints)
    text += (text.empty() ? "" : ", ") + std::to_string(one.step);
  return text;
}

// Whether Megatron gives this name to the directory of a checkpoint: iter_%07d, or release for
// converted weights. common/engine/megatron/checkpoints.cc has the whole layout.
bool is_checkpoint_name(std::string_view name) {
  if (name == kRelease) return true;
  if (!name.starts_with(kIteration)) return false;
  name.remove_prefix(kIteration.size());
  return name.size() >= kStepDigitsLeast &&
         name.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string unreadable(const std::string& dir, int error_number) {
  return "'" + dir + "' cannot be read on this node (" +
         std::generic_category().message(error_number) + ")";
}

// Returns why --load stays as the script has it. Empty: the directory does not exist, or it has no
// checkpoint. Another job's weights never replace files of the user. What is no directory, or
// cannot be read, is left to the training program.
std::string reason_to_stay(const std::string& dir) {
  struct stat info{};
  if (::stat(dir.c_str(), &info) != 0) {
    const int error_number = errno;
    if (error_number == ENOENT || error_number == ENOTDIR) return {};
    return unreadable(dir, error_number);
  }
  if (!S_ISDIR(info.st_mode)) return "'" + dir + "' is no directory";
  const std::string own = "the files in '" + dir + "' itself are loaded";
  const std::string tracker = dir + "/" + kTracker;
  if (::stat(tracker.c_str(), &info) != 0) {
    if (errno != ENOENT) return unreadable(dir, errno);
  } else if (S_ISREG(info.st_mode)) {
    return own + ", as its " + kTracker + " says";
  }
  std::string last;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    if (is_checkpoint_name(name) && at->is_directory(ignored)) last = std::max(last, name);
  }
  if (error) return unreadable(dir, error.value());
  if (last.empty()) return {};
  return own + " ('" + last + "'), where the program finds them without a " + kTracker;
}

// Other nodes of a shared file system create the same links at the same time.
Result<void> make_links(const Earlier& earlier, const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return fail_errno("making the directory of links '" + dir + "'", error.value());
  for (const Earlier::Checkpoint& one : earlier.checkpoints) {
    struct stat info{};
    if (::stat(one.path.c_str(), &info) != 0)
      return fail(ErrorCode::NotFound, "its checkpoint '" + one.path +
                                           "' is not there on this node; keep checkpoints on a "
                                           "file system that every node sees");
    const std::string link = dir + "/" + fs::path(one.path).filename().string();
    if (::symlink(one.path.c_str(), link.c_str()) != 0 && errno != EEXIST)
      return fail_errno("linking '" + link + "' to '" + one.path + "'", errno);
  }
  auto written = io::replace_file(
      dir + "/" + kTracker, std::to_string(earlier.checkpoints.front().step), io::Durable::No);
  if (written && ::chmod((dir + "/" + kTracker).c_str(), 0644) != 0 && errno != ENOENT)
    return fail_errno("opening the tracker in '" + dir + "'", errno);
  return written;
}

}  // namespace

std::string absolute_path(const std::string& path) {
  // Without fs::absolute, a relative path whose first part does not exist would stay relative.
  std::error_code error;
  const fs::path below_here = fs::absolute(path, error),
                 canonical = fs::weakly_canonical(below_here, error);
  std::string text = (error ? below_here.lexically_normal() : canonical).string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

Earlier saved_in(std::string_view lines, std::string_view dir) {
  Earlier earlier;
  while (!lines.empty()) {
    std::string_view line = take_until(lines, '\n');
    if (take_until(line, '\t') != dir) continue;
    earlier.job = take_until(line, '\t');
    const std::string_view number = take_until(line, '\t');
    Earlier::Checkpoint one;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), one.step);
    if (error != std::errc() || end != number.data() + number.size() || line.empty()) continue;
    one.path = line;
    earlier.checkpoints.push_back(std::move(one));
  }
  std::ranges::stable_sort(earlier.checkpoints, std::ranges::greater(), &Earlier::Checkpoint::step);
  return earlier;
}

Result<LoadAnswer> answer_load(const ScriptOptions& given, std::string_view lines,
                               const std::string& links_dir) {
  if (given.load.empty() || lines.empty() || links_dir.empty()) return LoadAnswer();
  const std::string dir = absolute_path(given.load);
  const Earlier earlier = saved_in(lines, dir);
  if (earlier.job.empty()) return LoadAnswer();
  const std::string doing = "--load " + given.load + ": job " + earlier.job +
                            " would have saved there, and saved in a directory of its own";
  const std::string how = "write start: {from: 'job:" + earlier.job + "', as: resume}";
  if (const std::string reason = reason_to_stay(dir); !reason.empty())
    return LoadAnswer{
        .dir = {},
        .notice = doing + "; --load stays as it is: " + reason +
                  (earlier.checkpoints.empty() ? "; that job has no whole checkpoint"
                                               : "; to go on from that job's checkpoints " + how)};
  const bool own = !given.save.empty() && absolute_path(given.save) == dir;
  if (own && earlier.checkpoints.empty()) return LoadAnswer();
  if (own)
    return LoadAnswer{.dir = {},
                      .notice = doing +
                                ". This launch saves there as well, and would go on from what it "
                                "has saved itself: it begins without that job's; to go on from "
                                "them " +
                                how};
  if (earlier.checkpoints.empty())
    return fail(ErrorCode::NotFound, doing +
                                         "; it has no whole checkpoint to begin with: take --load "
                                         "out to begin from the beginning");
  const std::string links = links_dir + "/" + earlier.job;
  if (auto made = make_links(earlier, links); !made) return fail(std::move(made).error().in(doing));
  return LoadAnswer{.dir = links,
                    .notice = doing + "; loaded are its checkpoints, by links in '" + links +
                              "' (step " + steps_text(earlier.checkpoints) + ")"};
}

}  // namespace muster::shim

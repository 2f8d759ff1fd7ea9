#include "agent/container/image_progress.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "common/io/file.h"
#include "common/text/sizes.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kProcessesMost = 8;       // podman without root works in a child process
constexpr std::size_t kDescriptorsMost = 1024;  // read per process
constexpr std::size_t kStagedMost = 4096;       // files read in a staging directory

template <class Visit>
void each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns the directory of "/var/tmp/storage582972879/4", or of a newer release's
// "/var/tmp/container_images_storage582972879/4". Empty: it is another file.
std::string staging_of(const fs::path& file) {
  constexpr std::string_view kWord = "storage";
  const std::string dir = file.parent_path().filename().string();
  const std::size_t at = dir.rfind(kWord);
  if (at == std::string::npos || !is_number(std::string_view(dir).substr(at + kWord.size())) ||
      !is_number(file.filename().string()))
    return {};
  return file.parent_path().string();
}

std::vector<pid_t> with_children(pid_t pid) {
  std::vector<pid_t> all = {pid};
  for (std::size_t at = 0; at < all.size() && all.size() < kProcessesMost; ++at) {
    const auto children =
        io::read_file(fmt::format("/proc/{}/task/{}/children", all[at], all[at]), 4096);
    if (!children) continue;
    for (const char *from = children->data(), *end = from + children->size();
         from < end && all.size() < kProcessesMost;) {
      pid_t child = 0;
      const auto [next, error] = std::from_chars(from, end, child);
      if (error != std::errc() || child <= 0) break;
      all.push_back(child);
      from = next + 1;
    }
  }
  return all;
}

// Calls visit(number, path that the descriptor is open on).
template <class Visit>
void each_descriptor(pid_t pid, const Visit& visit) {
  std::error_code error;
  std::size_t seen = 0;
  for (fs::directory_iterator at(fmt::format("/proc/{}/fd", pid), error), end;
       !error && at != end && ++seen <= kDescriptorsMost; at.increment(error)) {
    std::error_code gone;
    const fs::path target = fs::read_symlink(at->path(), gone);
    if (!gone) visit(at->path().filename().string(), target);
  }
}

std::uint64_t size_of_files(const std::string& dir) {
  std::uint64_t bytes = 0;
  std::size_t seen = 0;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end && ++seen <= kStagedMost;
       at.increment(error)) {
    struct stat info{};
    if (::lstat(at->path().c_str(), &info) == 0 && S_ISREG(info.st_mode))
      bytes += static_cast<std::uint64_t>(info.st_size);
  }
  return bytes;
}

std::uint64_t position_of(pid_t pid, const std::string& descriptor) {
  constexpr std::string_view kField = "pos:\t";
  const auto text = io::read_file(fmt::format("/proc/{}/fdinfo/{}", pid, descriptor), 4096);
  std::uint64_t position = 0;
  if (text && text->starts_with(kField))
    (void)std::from_chars(text->data() + kField.size(), text->data() + text->size(), position);
  return position;
}

}  // namespace

void ImageNews::tell(std::string text) {
  const MutexLock lock(mutex_);
  text_ = std::move(text);
  other_.reset();
}

void ImageNews::follow(std::shared_ptr<const ImageNews> other) {
  const MutexLock lock(mutex_);
  other_ = std::move(other);
}

std::string ImageNews::text() const {
  std::shared_ptr<const ImageNews> other;
  {
    const MutexLock lock(mutex_);
    if (!other_) return text_;
    other = other_;
  }
  const MutexLock lock(other->mutex_);
  return other->text_.empty() ? "fetched by another start"
                              : other->text_ + ", fetched by another start";
}

ImageTurns::Turn::~Turn() {
  const MutexLock lock(turns_.mutex_);
  turns_.under_way_.erase(image_);
  turns_.free_.notify_all();
}

std::unique_ptr<ImageTurns::Turn> ImageTurns::take(const std::string& image, BootTime until,
                                                   const std::shared_ptr<ImageNews>& news) {
  const MutexLock lock(mutex_);
  bool waited = false;
  for (auto at = under_way_.find(image); at != under_way_.end(); at = under_way_.find(image)) {
    waited = true;
    news->follow(at->second);
    const Duration left = until - system_clock().now().boot;
    if (left <= Duration::zero()) return nullptr;
    free_.wait_for(mutex_, left);
  }
  news->tell("");
  under_way_.emplace(image, news);
  return std::make_unique<Turn>(*this, image, waited);
}

std::string docker_layers(std::string_view output) {
  std::set<std::string_view> all, done;
  each_line(output, [&](std::string_view line) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) return;
    const std::string_view layer = line.substr(0, colon), what = line.substr(colon + 2);
    const bool there = what == "Pull complete" || what == "Already exists";
    if (there || what == "Pulling fs layer") all.insert(layer);
    if (there) done.insert(layer);
  });
  return all.empty() ? std::string() : fmt::format("{} of {} layers", done.size(), all.size());
}

std::string podman_layers(std::string_view output, std::uint64_t bytes) {
  std::size_t begun = 0;
  bool all = false;
  each_line(output, [&](std::string_view line) {
    begun += line.starts_with("Copying blob ") ? 1 : 0;
    all = all || line.starts_with("Copying config ");
  });
  if (begun == 0) return {};
  if (all) return fmt::format("{0} of {0} layers", begun);
  std::string text = fmt::format("{} layer{} begun", begun, begun == 1 ? "" : "s");
  if (bytes > 0) text += fmt::format(", {} fetched", size_text(bytes));
  return text;
}

std::string ImageProgress::update(pid_t pid, std::string_view output) {
  const bool load = !archive_.empty();
  if (docker_ && !load) return docker_layers(output);
  for (const pid_t one : with_children(pid)) {
    each_descriptor(one, [&](const std::string& descriptor, const fs::path& target) {
      if (docker_ && target.string() == archive_)
        bytes_ = std::max(bytes_, position_of(one, descriptor));
      if (docker_) return;
      if (std::string dir = staging_of(target); !dir.empty()) staging_.insert(std::move(dir));
    });
  }
  std::uint64_t staged = 0;
  for (const std::string& dir : staging_) staged += size_of_files(dir);
  bytes_ = std::max(bytes_, staged);  // the directory is removed at the end
  if (!load) return podman_layers(output, bytes_);
  return bytes_ == 0 || size_ == 0 ? std::string() : part_text(bytes_, size_);
}

}  // namespace muster::agent

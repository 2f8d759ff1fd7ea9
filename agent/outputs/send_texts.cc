#include "agent/outputs/send_texts.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/controls.h"
#include "common/io/file.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

Result<SentFiles> write_all(const fs::path& dir, const std::map<std::string, std::string>& texts) {
  SentFiles files;
  for (const auto& [name, text] : texts) {
    const fs::path file = dir / name;
    if (auto made = io::make_dirs(file.parent_path(), 0700); !made)
      return fail(std::move(made.error()));
    if (auto written = io::replace_file(file, text, io::Durable::No); !written)
      return fail(std::move(written.error()));
    struct stat status{};
    if (::lstat(file.c_str(), &status) != 0)
      return fail_errno(without_controls(file.native()), errno);
    files.emplace(name, state_of(status));
  }
  return files;
}

}  // namespace

Uploaded send_texts(const UploadWork& work, const std::map<std::string, std::string>& texts,
                    std::function<bool(const std::string&)> is_last) {
  const fs::path dir = work.sent.native() + ".texts";  // Uploads::forget_all_but() knows it
  std::error_code wrong;
  fs::remove_all(dir, wrong);  // of an agent that was killed
  const auto files = write_all(dir, texts);
  Uploaded sent = files ? send_files(work, {.dir = dir,
                                            .checks = false,
                                            .remembers = false,
                                            .list = [&] { return files; },
                                            .is_last = std::move(is_last)})
                        : Uploaded::failed(files.error());
  fs::remove_all(dir, wrong);
  return sent;
}

}  // namespace muster::agent

#include "agent/container/container_image.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "agent/launch/nearest_file.h"
#include "agent/launch/now_preparing.h"
#include "common/base/time.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kFileScheme = "file://";
constexpr milliseconds kAnswerMost{60'000};  // for a question about what exists
constexpr const char* kInspectFormat = "{{.Id}}\n{{json .Config.Env}}";

std::string short_hash(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  ::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha256(), nullptr);
  std::string hex;
  for (std::size_t i = 0; i < 12; ++i) hex += fmt::format("{:02x}", digest.at(i));
  return hex;
}

// A registry gives the same refusals to any node.
ErrorCode code_of(std::string text, ErrorCode otherwise) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto says = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(
        words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
  };
  if (says({"no space left", "disk quota exceeded"})) return ErrorCode::ResourceExhausted;
  if (says({"docker daemon", "podman.sock"})) return ErrorCode::Unreachable;
  if (says({"manifest unknown", "not found", "unauthorized", "denied", "invalid reference",
            "short-name", "did not resolve to an alias"}))
    return ErrorCode::NotFound;
  return otherwise;
}

std::string how(const ContainerAnswer& answer) {
  const std::string output = last_output_line(answer.output);
  return output.empty() ? answer.why : fmt::format("{}: {}", answer.why, output);
}

std::unexpected<Error> failed(const std::string& doing, const ContainerAnswer& answer,
                              ErrorCode code) {
  if (answer.late)
    return fail(ErrorCode::TimedOut,
                fmt::format("{}: {}; give it longer by runtime.setup.timeout", doing, how(answer)));
  return fail(code, fmt::format("{}: {}", doing, how(answer)));
}

Result<ContainerImage> inspect(const ContainerTool& tool, const std::string& name) {
  const auto answer = ask_container_tool(
      tool, {"image", "inspect", "--format", kInspectFormat, name}, kAnswerMost, false);
  if (!answer.good()) return fail(ErrorCode::NotFound, answer.why);
  return parse_image(answer.output);
}

// True if the archive may be a tar of a root file system: `load` refuses such a tar by itself,
// before it copies a layer. An archive of an image that could not be loaded (a full disk, a killed
// tool) must not be imported. The import would succeed, and the archive's files would be the image
// from then on.
bool may_be_root_tar(const ContainerAnswer& loaded) {
  if (!loaded.ended || loaded.good() || loaded.output.find("Copying blob") != std::string::npos)
    return false;
  const ErrorCode code = code_of(loaded.output, ErrorCode::InvalidArgument);
  return code != ErrorCode::ResourceExhausted && code != ErrorCode::Unreachable;
}

// Returns the one image that the names belong to. An archive may have several names for one image.
Result<std::string> only_image(const ContainerTool& tool, const std::string& path,
                               const std::vector<std::string>& names) {
  std::set<std::string> ids;
  for (const std::string& name : names) {
    auto image = inspect(tool, name);
    if (!image)
      return fail(
          ErrorCode::Io,
          fmt::format("loading image '{}': '{}', which it had, is not to be found", path, name));
    ids.insert(std::move(image->id));
  }
  if (ids.size() != 1)
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("loading image '{}': it has {} images; save one alone", path, ids.size()));
  return *ids.begin();
}

// Progress goes to `news`.
std::function<void(pid_t, std::string_view)> watched(ImageProgress& progress, ImageNews& news) {
  return [&progress, &news](pid_t pid, std::string_view output) {
    news.tell(progress.update(pid, output));
  };
}

Result<void> load(const ContainerTool& tool, const std::string& path, const std::string& name,
                  std::uint64_t size, milliseconds most, ImageNews& news) {
  now_preparing(fmt::format("loading image '{}'", path));
  const std::string doing = fmt::format("loading image '{}'", path);
  ImageProgress progress(tool.docker, path, size);
  const auto loaded =
      ask_container_tool(tool, {"load", "--input", path}, most, true, watched(progress, news));
  if (const auto names = loaded_images(loaded.output); loaded.good() && !names.empty()) {
    const auto id = only_image(tool, path, names);
    if (!id) return fail(Error(id.error()));
    if (const auto tagged = ask_container_tool(tool, {"tag", *id, name}, kAnswerMost, true);
        !tagged.good())
      return failed(doing, tagged, ErrorCode::Io);
    return {};
  }
  if (loaded.good()) return fail(ErrorCode::InvalidArgument, fmt::format("{}: it has none", doing));
  if (!may_be_root_tar(loaded)) {
    const ErrorCode code = code_of(loaded.output, ErrorCode::Io);
    return failed(doing, loaded, code == ErrorCode::NotFound ? ErrorCode::Io : code);
  }
  ImageProgress again(tool.docker, path, size);
  const auto imported =
      ask_container_tool(tool, {"import", path, name}, most, true, watched(again, news));
  if (imported.good()) return {};
  if (!imported.ended) return failed(doing, imported, ErrorCode::Io);
  const std::string why =
      fmt::format("as an archive of an image: {}; as one of a root file system: {}", how(loaded),
                  how(imported));
  return fail(code_of(why, ErrorCode::InvalidArgument), fmt::format("{}: {}", doing, why));
}

Result<void> pull(const ContainerTool& tool, const std::string& name, milliseconds most,
                  ImageNews& news) {
  now_preparing(fmt::format("pulling image '{}'", name));
  ImageProgress progress(tool.docker, "", 0);
  const auto pulled = ask_container_tool(tool, {"pull", name}, most, true, watched(progress, news));
  if (!pulled.good())
    return failed(fmt::format("pulling image '{}'", name), pulled,
                  code_of(how(pulled), ErrorCode::Io));
  return {};
}

}  // namespace

std::vector<std::string> loaded_images(const std::string& output) {
  std::vector<std::string> names;
  for (std::string_view rest = output; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    for (const std::string_view begin :
         {"Loaded image: ", "Loaded image(s): ", "Loaded image ID: "}) {
      if (line.starts_with(begin) && line.size() > begin.size() && line[begin.size()] != '-')
        names.emplace_back(line.substr(begin.size()));
    }
  }
  return names;
}

Result<ContainerImage> parse_image(const std::string& inspected) {
  const std::size_t end = std::min(inspected.find('\n'), inspected.size());
  ContainerImage image{.id = inspected.substr(0, end), .env = {}};
  const auto env = nlohmann::json::parse(
      std::string_view(inspected).substr(std::min(end + 1, inspected.size())), nullptr, false);
  if (image.id.empty() || env.is_discarded())
    return fail(ErrorCode::Io, "inspecting an image: the answer of 'image inspect' cannot be read");
  if (!env.is_array()) return image;
  for (const auto& variable : env) {
    if (variable.is_string()) image.env.push_back(variable.get<std::string>());
  }
  return image;
}

Result<ContainerImage> ready_image(const ContainerTool& tool, const std::string& image,
                                   milliseconds most, const ImageFetch& fetching) {
  if (image.empty() || image.starts_with('-'))
    return fail(ErrorCode::InvalidArgument,
                fmt::format("looking for image '{}': that is no name of one", image));
  now_preparing(fmt::format("looking for image '{}'", image));
  const BootTime until = system_clock().now().boot + most;
  const bool file = image.starts_with(kFileScheme);
  const std::string path = file ? image.substr(kFileScheme.size()) : "";
  std::string name = image;
  std::uint64_t size = 0;
  if (file) {
    struct stat info{};
    if (const int number = ::stat(path.c_str(), &info) == 0 ? 0 : errno; number != 0) {
      auto error = fail_errno(fmt::format("loading image '{}'", path), number);
      if (number != EIO && number != ESTALE) error.error().code = ErrorCode::NotFound;
      error.error().message +=
          " (is it on a file system that this node sees?)" + nearest_text(path);
      return error;
    }
    if (!S_ISREG(info.st_mode))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("loading image '{}': it is not a file", path));
    size = static_cast<std::uint64_t>(info.st_size);
    name = "localhost/muster-image:" +
           short_hash(fmt::format("{} {} {} {}.{:09}", path, info.st_ino, info.st_size,
                                  info.st_mtim.tv_sec, info.st_mtim.tv_nsec));
  }
  if (auto there = inspect(tool, name)) return there;
  now_preparing(fmt::format("waiting for another start that fetches image '{}'", image));
  const auto turn = fetching.turns->take(name, until, fetching.news);
  if (!turn) {
    const std::string patience =
        fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(most).count());
    return fail(
        ErrorCode::TimedOut,
        fmt::format(
            "waiting for image '{}', which another start on this node fetches: it has not arrived "
            "within {}; give it longer by runtime.setup.timeout, or kill '{} {}' there if it hangs",
            image, patience, tool.docker ? "docker" : "podman", file ? "load" : "pull"));
  }
  if (turn->waited()) {
    if (auto there = inspect(tool, name)) return there;
  }
  const auto left = std::max(
      std::chrono::duration_cast<milliseconds>(until - system_clock().now().boot), milliseconds(1));
  ImageNews& news = *fetching.news;
  if (auto fetched = file ? load(tool, path, name, size, left, news) : pull(tool, name, left, news);
      !fetched)
    return fail(std::move(fetched).error());
  auto there = inspect(tool, name);
  if (!there)
    return fail(ErrorCode::Io, fmt::format("looking for image '{}', which was just fetched: {}",
                                           image, there.error().message));
  return there;
}

}  // namespace muster::agent

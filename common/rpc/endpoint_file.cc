#include "common/rpc/endpoint_file.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "common/io/file.h"

namespace muster::rpc {
namespace {

constexpr std::size_t kFileBytesMax = 64 << 10;

}  // namespace

Result<void> write_endpoint_file(const std::filesystem::path& path, const EndpointFile& file) {
  const nlohmann::ordered_json json = {{"address", file.address},
                                       {"token_file", file.token_file},
                                       {"cluster_id", file.cluster_id},
                                       {"pid", file.pid}};
  if (auto written = io::replace_file(path, json.dump(2) + "\n", io::Durable::No); !written)
    return fail(std::move(written.error()).in("writing the endpoint file"));
  return {};
}

Result<EndpointFile> read_endpoint_file(const std::filesystem::path& path) {
  auto text = io::read_file(path, kFileBytesMax);
  if (!text) return fail(std::move(text.error()).in("reading the endpoint file"));
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  EndpointFile file;
  try {
    file = {.address = json.at("address").get<std::string>(),
            .token_file = json.value("token_file", std::string()),
            .cluster_id = json.value("cluster_id", std::string()),
            .pid = json.value("pid", std::uint64_t{0})};
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::InvalidArgument, "reading the endpoint file '" + path.string() +
                                                "': not the JSON that a controller writes");
  }
  if (auto sound = check_address(file.address); !sound)
    return fail(std::move(sound.error()).in("reading the endpoint file '" + path.string() + "'"));
  return file;
}

Result<std::string> read_token_file(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return fail(ErrorCode::NotAllowed,
                "reading the token file '" + path.string() +
                    "': others may read it; chmod 600 it, or make a new one");
  }
  auto read = io::read_file(path, kFileBytesMax);
  if (!read) return fail(std::move(read.error()).in("reading the token file"));
  std::string text = std::move(*read);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  for (const char c : text) {
    if (c <= ' ' || c > '~')
      return fail(ErrorCode::InvalidArgument,
                  "reading the token file '" + path.string() +
                      "': it must hold one line of printable characters");
  }
  if (text.empty())
    return fail(ErrorCode::InvalidArgument,
                "reading the token file '" + path.string() + "': it is empty");
  return text;
}

Result<std::string> make_token_file(const std::filesystem::path& path) {
  const std::string doing = "making the token file '" + path.string() + "'";
  std::array<unsigned char, 32> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return fail_errno(doing, errno);
  std::string token;
  for (const unsigned char byte : random) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  auto made = io::create_file(path, token + "\n");
  if (!made) return fail(std::move(made.error()).in("making the token file"));
  if (!*made) return fail(ErrorCode::Conflict, doing + ": it is there already");
  return token;
}

Result<Endpoint> load_endpoint(const std::filesystem::path& endpoint_file) {
  auto file = read_endpoint_file(endpoint_file);
  if (!file) return fail(std::move(file.error()));
  Endpoint endpoint{.address = file->address};
  if (!file->token_file.empty()) {
    auto token = read_token_file(file->token_file);
    if (!token) return fail(std::move(token.error()));
    endpoint.token = std::move(*token);
  }
  return endpoint;
}

}  // namespace muster::rpc

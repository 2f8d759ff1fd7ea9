#include "common/rpc/endpoint_file.h"

#include <nlohmann/json.hpp>

#include "common/io/file.h"

namespace muster::rpc {
namespace {

constexpr std::size_t kFileBytesMax = 64 << 10;

}  // namespace

Result<void> write_endpoint_file(const std::filesystem::path& path, const EndpointFile& file) {
  nlohmann::ordered_json json = {{"address", file.address},
                                 {"tcp", file.tcp},
                                 {"cluster_id", file.cluster_id},
                                 {"pid", file.pid}};
  if (!file.enrol.empty()) json["enrol"] = file.enrol;
  if (!file.login.empty()) json["login"] = file.login;
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
            .tcp = json.value("tcp", std::vector<std::string>()),
            .enrol = json.value("enrol", std::string()),
            .cluster_id = json.value("cluster_id", std::string()),
            .pid = json.value("pid", std::uint64_t{0}),
            .login = json.value("login", std::string())};
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::InvalidArgument, "reading the endpoint file '" + path.string() +
                                                "': not the JSON that a controller writes");
  }
  if (auto sound = check_address(file.address); !sound)
    return fail(std::move(sound.error()).in("reading the endpoint file '" + path.string() + "'"));
  return file;
}

Result<Endpoint> load_endpoint(const std::filesystem::path& endpoint_file,
                               const std::filesystem::path& credentials_file) {
  auto file = read_endpoint_file(endpoint_file);
  if (!file) return fail(std::move(file.error()));
  return endpoint_at(file->address, credentials_file);
}

}  // namespace muster::rpc

// The two small files by which clients and agents find a private cluster: the endpoint file (JSON:
// address, token_file, cluster_id, pid) and the token file (one line). Both mode 0600, replaced by
// rename; a token file that others may read is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/base/error.h"
#include "common/rpc/channel.h"

namespace muster::rpc {

struct EndpointFile {
  std::string address;
  std::string token_file;  // empty: the address is a unix socket
  std::string cluster_id;
  std::uint64_t pid = 0;  // of the controller that wrote it
  friend bool operator==(const EndpointFile&, const EndpointFile&) = default;
};

Result<void> write_endpoint_file(const std::filesystem::path& path, const EndpointFile& file);
// NotFound when there is none.
Result<EndpointFile> read_endpoint_file(const std::filesystem::path& path);

// The token's text. NotFound; NotAllowed when group or others may read it; InvalidArgument when it
// is empty or has odd bytes.
Result<std::string> read_token_file(const std::filesystem::path& path);
// 256 random bits in hex, to a file that must not exist yet.
Result<std::string> make_token_file(const std::filesystem::path& path);

// Both together: what make_channel() and authorize() need.
Result<Endpoint> load_endpoint(const std::filesystem::path& endpoint_file);

}  // namespace muster::rpc

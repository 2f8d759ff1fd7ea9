// Reads and writes the two small files by which clients and agents find a private cluster. The
// controller writes both files. Stateless functions, any thread; blocking.
//
// The endpoint file is JSON: address, token_file, cluster_id, pid. The token file is one line. Both
// have mode 0600 and are replaced by rename. A token file that others may read is refused.
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
// NotFound if the file does not exist.
Result<EndpointFile> read_endpoint_file(const std::filesystem::path& path);

// Returns the token's text. Errors: NotFound; NotAllowed when group or others may read the file;
// InvalidArgument when the text is empty or has odd bytes.
Result<std::string> read_token_file(const std::filesystem::path& path);
// Writes 256 random bits in hex to a file that must not exist yet.
Result<std::string> make_token_file(const std::filesystem::path& path);

// Reads both files: the result has what make_channel() and authorize() need.
Result<Endpoint> load_endpoint(const std::filesystem::path& endpoint_file);

}  // namespace muster::rpc

// Reads and writes the small file by which clients and agents of one machine find the controller,
// which writes it. Stateless functions, any thread; blocking.
//
// It is JSON: address (the first unix socket), tcp (every TCP address), enrol (the enrolment port,
// if there is one), login (the path of the enrolment socket, if there is one), cluster_id, pid. Its
// mode is 0600, and it is replaced by rename.
//
// 'muster login' writes one, too: there address is the TCP address that it found, and pid is 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/rpc/channel.h"

namespace muster::rpc {

struct EndpointFile {
  std::string address;
  std::vector<std::string> tcp;  // for callers with a certificate
  std::string enrol;             // HOST:PORT; empty: there is none
  std::string cluster_id;
  std::uint64_t pid = 0;   // of the controller that wrote it
  std::string login = {};  // path of the enrolment socket; empty: there is none
  friend bool operator==(const EndpointFile&, const EndpointFile&) = default;
};

Result<void> write_endpoint_file(const std::filesystem::path& path, const EndpointFile& file);
// NotFound if the file does not exist.
Result<EndpointFile> read_endpoint_file(const std::filesystem::path& path);

// How to call the controller that wrote the file. The credentials are used only if its address is
// not a unix socket.
Result<Endpoint> load_endpoint(const std::filesystem::path& endpoint_file,
                               const std::filesystem::path& credentials_file);

}  // namespace muster::rpc

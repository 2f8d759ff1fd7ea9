#include "agent/code/needed_files.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "agent/code/config_checks.h"
#include "agent/code/source_file.h"
#include "agent/container/container_command.h"

namespace muster::agent {

Result<void> check_needed_file(const v1::NodeLaunch& order, const v1::NeededFile& file) {
  if (auto good = check_source(file.source()); !good) return good;
  if (order.has_container() && !is_nodes_own(order, file.source())) return {};
  struct stat info{};
  const int error = ::stat(file.source().c_str(), &info) == 0 ? 0 : errno;
  if (order.has_setup() && (error == ENOENT || error == ENOTDIR)) return {};
  if (error != 0) return source_failed(order, file.key(), file.source(), error);
  if (auto refusal = config_refusal(file))
    return fail(ErrorCode::InvalidArgument, *std::move(refusal));
  return {};
}

}  // namespace muster::agent

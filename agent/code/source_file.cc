#include "agent/code/source_file.h"

#include <fmt/format.h>

#include <cerrno>

#include "agent/launch/spec_keys.h"
#include "common/compat/patch/document.h"

namespace muster::agent {

std::string named_source(std::string_view key, std::string_view source) {
  return fmt::format("{}: '{}'", key, patch::shown_path(source));
}

Result<void> check_source(std::string_view source) {
  if (source.starts_with('/') && source.find('\0') == std::string_view::npos) return {};
  return fail(ErrorCode::InvalidArgument,
              fmt::format("reading '{}': it is not an absolute path", patch::shown_path(source)));
}

std::unexpected<Error> source_failed(const v1::NodeLaunch& order, std::string_view key,
                                     const std::string& source, int error) {
  if (error == ENOENT || error == ENOTDIR)
    return fail(ErrorCode::NotFound, missing_file(order, key, source));
  auto result = fail_errno(fmt::format("reading {}", named_source(key, source)), error);
  if (error == EACCES || error == EPERM) result.error().code = ErrorCode::NotAllowed;
  if (error == ELOOP || error == ENAMETOOLONG) result.error().code = ErrorCode::InvalidArgument;
  return result;
}

}  // namespace muster::agent

// Digests of a whole file, read once. Any thread; blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/error.h"

namespace muster {

// MD5 takes about twice the time of SHA-256 where the processor has instructions for that one.
enum class Digests : std::uint8_t { Sha256, Sha256AndMd5 };

struct FileDigests {
  std::uint64_t bytes = 0;
  std::string sha256, md5;  // lower-case hexadecimal digits; md5 is empty if it was not asked for
};

// From its begin to its end; `fd` is open for reading. `stop` is asked after each MiB, and true
// ends the reading. Errors without a path: Io; Unreachable: it was stopped.
Result<FileDigests> digests_of(int fd, Digests which, const std::function<bool()>& stop = {});

}  // namespace muster

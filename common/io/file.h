// Whole files: read with a bound, replaced or created in one step that no reader can see half of.
// Any thread; blocking.
// A path that is not there is ErrorCode::NotFound, everything else ErrorCode::Io with the path in
// the text.
//
// Durable::Yes syncs the file and its folder: for what must outlive a power cut (identity,
// secrets). Durable::No is for the launch
// path, where records carry the boot id instead (64 synced directories would cost more than the
// launch).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace muster::io {

enum class Durable : std::uint8_t { No, Yes };

// More than `most` bytes is ErrorCode::ResourceExhausted: nothing of it is returned.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t most);
// Of a folder that others write in: a pipe or a device in the file's place is an error at once,
// where reading it might not end.
Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t most);

// Temporary file of mode 0600 in the same folder, then rename. Readers see the old bytes or the new
// ones.
Result<void> replace_file(const std::filesystem::path& path, std::string_view bytes,
                          Durable durable);

// Over the bytes of a file that is there, in its own room: for a disk that is full. A reader at
// that very moment may see a part of each, so it looks again.
Result<void> overwrite_file(const std::filesystem::path& path, std::string_view bytes);

// As replace_file, but only if `path` is not there yet: false = somebody was first, and theirs
// stays. Of any number of callers at once exactly one gets true, and nobody ever reads a part (so
// it is O_EXCL, with the content inside).
Result<bool> create_file(const std::filesystem::path& path, std::string_view bytes);

// Makes it and its parents with `mode` (not lessened by the umask for the last one); one that
// exists is left as it is.
Result<void> make_dirs(const std::filesystem::path& path, unsigned mode);

// All of `bytes`, over short writes and EINTR. 0, or errno; `written` tells how far it came.
int write_all(int fd, std::string_view bytes, std::size_t& written);

}  // namespace muster::io

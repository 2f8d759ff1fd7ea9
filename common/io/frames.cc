#include "common/io/frames.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>

#include "common/base/assert.h"
#include "common/io/file.h"

namespace muster::io {
namespace {

void put_u32(std::string& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8)
    out.push_back(static_cast<char>((value >> shift) & 0xffU));
}

std::uint32_t get_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

std::uint32_t checksum(std::string_view payload) {
  return static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(payload.data()),
                                            static_cast<uInt>(payload.size())));
}

void put_frame(std::string& out, std::string_view payload) {
  MUSTER_ASSERT(!payload.empty() && payload.size() <= kFramePayloadMax,
                "a frame holds 1 byte to 64 MiB");
  put_u32(out, static_cast<std::uint32_t>(payload.size()));
  put_u32(out, checksum(payload));
  out.append(payload);
}

std::unexpected<Error> failed(const char* doing, const std::filesystem::path& path, int error) {
  return fail_errno(std::string(doing) + " '" + path.string() + "'", error);
}

int no_follow(Links links) { return links == Links::Follow ? 0 : O_NOFOLLOW; }

// What is wrong with a file that is open, whatever its bytes are. Empty: nothing.
std::string wrong_with(const struct stat& status, Links links) {
  if (links == Links::Follow) return {};
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  return links == Links::Own ? not_own(status) : std::string();
}

}  // namespace

std::string encode_frame(std::string_view payload) {
  std::string out;
  out.reserve(kFrameHeaderBytes + payload.size());
  put_frame(out, payload);
  return out;
}

Decoded decode_frames(std::string_view bytes) {
  Decoded decoded;
  while (decoded.used < bytes.size()) {
    const auto rest = bytes.substr(decoded.used);
    if (rest.size() < 4) {
      decoded.tail = Tail::Torn;
      break;
    }
    const std::size_t length = get_u32(rest);
    if (length == 0 || length > kFramePayloadMax) {
      decoded.tail = Tail::Damaged;
      break;
    }
    if (rest.size() < kFrameHeaderBytes + length) {
      decoded.tail = Tail::Torn;
      break;
    }
    const auto payload = rest.substr(kFrameHeaderBytes, length);
    if (checksum(payload) != get_u32(rest.substr(4))) {
      decoded.tail = Tail::Damaged;
      break;
    }
    decoded.payloads.push_back(payload);
    decoded.used += kFrameHeaderBytes + length;
  }
  return decoded;
}

Result<FramesRead> read_frames(const At& at, std::uint64_t offset, std::size_t most, Links links) {
  const auto& path = at.shown;
  FramesRead read{.frames = {}, .next = offset, .tail = Tail::Clean, .more = false, .wrong = {}};
  const auto damaged = [&](const std::string& wrong) {
    read.tail = Tail::Damaged;
    read.wrong = "reading '" + path.string() + "': " + wrong + "; it is not believed";
    return std::move(read);
  };
  UniqueFd fd(
      ::openat(at.dir, at.path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | no_follow(links)));
  if (!fd && errno == ENOENT) return read;
  if (!fd && errno == ELOOP && links != Links::Follow) return damaged("it is a link");
  if (!fd) return failed("opening", path, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return failed("reading", path, errno);
  if (const std::string wrong = wrong_with(status, links); !wrong.empty()) return damaged(wrong);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < offset) {
    read.tail = Tail::Damaged;
    return read;
  }
  std::uint64_t want = std::min<std::uint64_t>(size - offset, most);
  for (std::string bytes;;) {
    bytes.resize(want);
    std::size_t used = 0;
    while (used < want) {
      const ssize_t count =
          ::pread(fd.get(), bytes.data() + used, want - used, static_cast<off_t>(offset + used));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed("reading", path, errno);
      if (count == 0) break;  // its writer cut the file after fstat
      used += static_cast<std::size_t>(count);
    }
    bytes.resize(used);
    const auto decoded = decode_frames(bytes);
    const bool whole = offset + want >= size;
    // The bound fell into the first frame: read on to the end of that frame.
    if (decoded.payloads.empty() && decoded.tail == Tail::Torn && !whole) {
      const std::uint64_t frame =
          bytes.size() < 4 ? kFrameHeaderBytes : kFrameHeaderBytes + get_u32(bytes);
      want = std::min<std::uint64_t>(size - offset, frame);
      continue;
    }
    read.frames.assign(decoded.payloads.begin(), decoded.payloads.end());
    read.next = offset + decoded.used;
    read.tail = decoded.tail;
    if (!whole && decoded.tail != Tail::Damaged) {
      read.more = true;
      read.tail = Tail::Clean;
    }
    return read;
  }
}

Result<FrameWriter> FrameWriter::open(const At& at, Links links) {
  const auto& path = at.shown;
  UniqueFd fd(::openat(at.dir, at.path.c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | no_follow(links),
                       0600));
  if (!fd) return failed("opening", path, errno);
  if (links == Links::Own) {
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return failed("opening", path, errno);
    std::string wrong = wrong_with(status, links);
    if (wrong.empty() && status.st_nlink > 1) wrong = "it has another name, too (a hard link)";
    if (!wrong.empty())
      return fail(ErrorCode::DataLoss, "opening '" + path.string() + "' for appending: " + wrong +
                                           "; it is not written");
  }
  std::uint64_t end = 0;
  for (;;) {
    auto read = read_frames(at, end, kReadMost, links);
    if (!read) return fail(std::move(read.error()));
    end = read->next;
    if (read->tail == Tail::Damaged) {
      return fail(ErrorCode::DataLoss, "opening '" + path.string() +
                                           "' for appending: damaged behind byte " +
                                           std::to_string(end));
    }
    if (read->more) continue;
    if (read->tail == Tail::Torn && ::ftruncate(fd.get(), static_cast<off_t>(end)) != 0)
      return failed("cutting the torn tail of", path, errno);
    return FrameWriter(path, std::move(fd), end);
  }
}

Result<void> FrameWriter::append(const std::vector<std::string>& payloads) {
  if (payloads.empty()) return {};
  if (cut_pending_) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
      error_ = errno;
      return failed("cutting the torn tail of", path_, error_);
    }
    cut_pending_ = false;
  }
  std::string bytes;
  for (const auto& payload : payloads) put_frame(bytes, payload);
  std::size_t written = 0;
  const int error = write_all(fd_.get(), bytes, written);
  error_ = error;
  if (error != 0) {
    if (written > 0) cut_pending_ = ::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0;
    return failed("appending to", path_, error);
  }
  size_ += bytes.size();
  return {};
}

Result<void> FrameWriter::append(const std::string& payload) {
  return append(std::vector<std::string>{payload});
}

void FrameWriter::reserve(std::uint64_t bytes) {
  // Plain fallocate and not posix_fallocate: the latter would write zeros where the file system
  // cannot reserve.
  (void)::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_),
                    static_cast<off_t>(bytes));
}

}  // namespace muster::io

#include "tests/support/stub_trainer/checkpoint.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/stub_trainer/mesh.h"

namespace stub {
namespace {

constexpr const char* kEntry = "archive/data.pkl";
constexpr std::size_t kLocalHead = 30;
constexpr int kPieces = 8;

void put(std::string& out, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
}

std::uint64_t get(const std::string& bytes, std::size_t at, unsigned count) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < count; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

std::uint32_t checksum(const std::string& bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// Fields that the local and the central header share: version, flags, method (stored), time, date,
// crc, sizes, name length, extra length.
void put_common(std::string& out, const std::string& payload) {
  put(out, 20, 2);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, 0x21, 2);
  put(out, checksum(payload), 4);
  put(out, payload.size(), 4);
  put(out, payload.size(), 4);
  put(out, std::strlen(kEntry), 2);
  put(out, 0, 2);
}

std::string zip_of(const std::string& payload) {
  std::string out;
  put(out, 0x04034b50, 4);
  put_common(out, payload);
  out += kEntry;
  out += payload;
  const std::size_t directory = out.size();
  put(out, 0x02014b50, 4);
  put(out, 20, 2);
  put_common(out, payload);
  put(out, 0, 2);  // comment
  put(out, 0, 2);  // disk
  put(out, 0, 2);  // attributes
  put(out, 0, 4);
  put(out, 0, 4);  // offset of the local header
  out += kEntry;
  const std::size_t directory_bytes = out.size() - directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, 1, 2);
  put(out, 1, 2);
  put(out, directory_bytes, 4);
  put(out, directory, 4);
  put(out, 0, 2);
  return out;
}

std::string iteration_dir(const std::string& dir, std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "/iter_%07lld", static_cast<long long>(step));
  return dir + name;
}

std::string shard_dir(const Options& options, const std::string& dir, std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "/mp_rank_%02u", options.rank);
  return iteration_dir(dir, step) + name;
}

void write_piece(const Options& options, int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(fd, data, size);
    if (count <= 0)
      die_like_python(
          options,
          "[enforce fail at inline_container.cc] . unexpected pos: no space left on device");
    data += count;
    size -= static_cast<std::size_t>(count);
  }
}

std::string read_all(const std::string& path) {
  std::string bytes;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return bytes;
  char room[65536];
  for (ssize_t count = 0; (count = ::read(fd, room, sizeof room)) > 0;)
    bytes.append(room, static_cast<std::size_t>(count));
  ::close(fd);
  return bytes;
}

}  // namespace

void save_shard(const Options& options, const State& state) {
  ::mkdir(options.save.c_str(), 0755);
  ::mkdir(iteration_dir(options.save, state.step).c_str(), 0755);
  const auto dir = shard_dir(options, options.save, state.step);
  ::mkdir(dir.c_str(), 0755);
  std::string payload;
  put(payload, static_cast<std::uint64_t>(state.step), 8);
  put(payload, options.rank, 4);
  put(payload, options.world, 4);
  put(payload, options.seed, 8);
  put(payload, state.shared, 8);
  put(payload, state.local, 8);
  if (payload.size() < options.shard_bytes)
    payload.resize(options.shard_bytes, static_cast<char>(state.local & 0x7fU));
  const auto bytes = zip_of(payload);
  const int fd =
      ::open((dir + "/model_optim_rng.pt").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) die_like_python(options, ("Parent directory " + dir + " does not exist").c_str());
  const std::size_t piece = bytes.size() / kPieces + 1;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    write_piece(options, fd, bytes.data() + at, std::min(piece, bytes.size() - at));
    if (options.save_ms > 0)
      ::poll(nullptr, 0, std::max(1, static_cast<int>(options.save_ms / kPieces)));
  }
  ::close(fd);
}

void write_tracker(const Options& options, std::int64_t step) {
  const int fd = ::open((options.save + "/latest_checkpointed_iteration.txt").c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const auto text = std::to_string(step);
  if (fd < 0)
    die_like_python(options, "No such file or directory: latest_checkpointed_iteration.txt");
  write_piece(options, fd, text.data(), text.size());
  ::close(fd);
}

std::int64_t read_tracker(const std::string& dir) {
  const auto text = read_all(dir + "/latest_checkpointed_iteration.txt");
  return text.empty() ? -1 : std::atoll(text.c_str());
}

State load_shard(const Options& options, std::int64_t step) {
  const auto path = shard_dir(options, options.load, step) + "/model_optim_rng.pt";
  const auto bytes = read_all(path);
  const std::size_t head = kLocalHead + std::strlen(kEntry);
  if (bytes.size() < head + 40)
    die_like_python(
        options,
        ("PytorchStreamReader failed reading zip archive: failed finding central directory: " +
         path)
            .c_str());
  const auto size = static_cast<std::size_t>(get(bytes, 18, 4));
  if (bytes.size() < head + size + 22 || zip_of(bytes.substr(head, size)) != bytes) {
    die_like_python(
        options,
        ("PytorchStreamReader failed reading zip archive: failed finding central directory: " +
         path)
            .c_str());
  }
  State state{.step = static_cast<std::int64_t>(get(bytes, head, 8)),
              .shared = get(bytes, head + 24, 8),
              .local = get(bytes, head + 32, 8)};
  if (state.step != step || get(bytes, head + 8, 4) != options.rank ||
      get(bytes, head + 12, 4) != options.world || get(bytes, head + 16, 8) != options.seed) {
    die_like_python(options,
                    ("the checkpoint is of another step, rank, world or seed: " + path).c_str());
  }
  return state;
}

}  // namespace stub

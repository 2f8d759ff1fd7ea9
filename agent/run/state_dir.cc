#include "agent/run/state_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/run/state_lock.h"
#include "common/io/file.h"
#include "common/io/frames.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::agent {
namespace {

constexpr std::uint32_t kIdentityVersion = 1;
constexpr std::size_t kIdentityBytesMax = 64 << 10;

Result<InstanceId> new_instance() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail_errno("drawing an instance id", errno);
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return InstanceId(text);
}

std::string encode(const Identity& identity) {
  rundir::v1::Identity record;
  record.set_version(kIdentityVersion);
  record.set_instance(identity.instance.str());
  record.set_cluster_id(identity.cluster.str());
  record.set_lineage_generation(identity.lineage.generation);
  record.set_lineage_id(identity.lineage.id);
  record.set_highest_epoch(identity.highest_epoch.value);
  record.set_acked_index(identity.acked.value);
  return io::encode_frame(record.SerializeAsString());
}

}  // namespace

Result<Identity> read_identity(const rundir::AgentLayout& layout) {
  auto bytes = io::read_file(layout.identity(), kIdentityBytesMax);
  if (!bytes) return fail(std::move(bytes).error().in("reading this agent's identity"));
  const io::Decoded decoded = io::decode_frames(*bytes);
  rundir::v1::Identity record;
  if (decoded.payloads.size() != 1 ||
      !record.ParseFromArray(decoded.payloads[0].data(),
                             static_cast<int>(decoded.payloads[0].size())) ||
      record.instance().empty() ||
      !well_formed({.generation = record.lineage_generation(), .id = record.lineage_id()})) {
    return fail(ErrorCode::DataLoss,
                fmt::format("reading this agent's identity '{}': it is damaged; if no run of this "
                            "node is wanted any more, remove the state directory: the node then "
                            "joins as a new instance",
                            layout.identity().string()));
  }
  if (record.version() != kIdentityVersion) {
    return fail(ErrorCode::Unsupported,
                fmt::format("reading this agent's identity '{}': version {}, this agent knows {}; "
                            "start the newer agent",
                            layout.identity().string(), record.version(), kIdentityVersion));
  }
  return Identity{.instance = InstanceId(record.instance()),
                  .cluster = ClusterId(record.cluster_id()),
                  .lineage = {.generation = record.lineage_generation(), .id = record.lineage_id()},
                  .highest_epoch = Epoch(record.highest_epoch()),
                  .acked = JournalIndex(record.acked_index())};
}

Result<StateDir> StateDir::open(const std::filesystem::path& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (error)
    return fail(ErrorCode::Io,
                fmt::format("opening state directory '{}': {}", path.string(), error.message()));
  if (auto made = io::make_dirs(absolute, 0700); !made)
    return fail(std::move(made).error().in("opening the state directory"));
  struct stat info{};
  if (::stat(absolute.c_str(), &info) != 0)
    return fail_errno(fmt::format("opening state directory '{}'", absolute.string()), errno);
  if (info.st_uid != geteuid()) {
    return fail(ErrorCode::NotAllowed,
                fmt::format("opening state directory '{}': it belongs to user {}, this agent runs "
                            "as user {}; give one of its own with --state-dir",
                            absolute.string(), info.st_uid, geteuid()));
  }
  if ((info.st_mode & 0077U) != 0 && ::chmod(absolute.c_str(), 0700) != 0) {
    return fail_errno(fmt::format("closing state directory '{}' to others", absolute.string()),
                      errno);
  }
  rundir::AgentLayout layout(absolute);
  auto lock = take_state_lock(layout);
  if (!lock) return fail(std::move(lock).error());
  StateDir state(std::move(layout), std::move(*lock));
  if (auto loaded = state.load_or_make_identity(); !loaded) return fail(std::move(loaded).error());
  if (auto made = io::make_dirs(state.layout_.runs(), 0700); !made)
    return fail(std::move(made).error());
  return state;
}

Result<void> StateDir::load_or_make_identity() {
  auto found = read_identity(layout_);
  if (found) {
    identity_ = std::move(*found);
    return {};
  }
  if (found.error().code != ErrorCode::NotFound) return fail(std::move(found).error());
  auto instance = new_instance();
  if (!instance) return fail(std::move(instance).error());
  return store(Identity{.instance = *instance});
}

Result<void> StateDir::store(const Identity& identity) {
  if (auto stored = io::replace_file(layout_.identity(), encode(identity), io::Durable::Yes);
      !stored) {
    return fail(std::move(stored).error().in("storing this agent's identity"));
  }
  identity_ = identity;
  return {};
}

int write_error(const rundir::AgentLayout& layout) {
  const std::string path = layout.write_test().string();
  const io::UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno;
  std::size_t written = 0;
  const int error = io::write_all(file.get(), std::string(4096, '\n'), written);
  ::unlink(path.c_str());
  return error;
}

}  // namespace muster::agent

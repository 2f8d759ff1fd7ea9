#include "common/rundir/records.h"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>

#include "common/io/file.h"
#include "common/io/frames.h"

namespace muster::rundir {
namespace {

constexpr std::size_t kRecordBytesMax = 64U << 20U;

std::unexpected<Error> damaged(const std::filesystem::path& path) {
  return fail(ErrorCode::DataLoss,
              "reading '" + path.string() + "': damaged: its checksum does not fit");
}

// A frame is never empty, but a message of default values is. So every record has at least its boot
// id.
template <class Record>
Result<std::string> frame_of(const Record& record) {
  const auto payload = record.SerializeAsString();
  if (payload.empty())
    return fail(ErrorCode::InvalidArgument,
                "writing a record into a run directory: it is empty; give it a boot id");
  return io::encode_frame(payload);
}

// `path` has one part below the run directory.
Result<io::Beneath> dir_of(const std::filesystem::path& path) {
  return io::Beneath::open(path.parent_path());
}

template <class Record>
Result<std::optional<Record>> read_record(const std::filesystem::path& path) {
  const auto dir = dir_of(path);
  auto bytes = dir ? io::read_regular_file(dir->at(path.filename().string()), kRecordBytesMax,
                                           io::Links::Own)
                   : Result<std::string>(fail(Error(dir.error())));
  if (!bytes && bytes.error().code == ErrorCode::NotFound) return std::optional<Record>();
  if (!bytes) return fail(std::move(bytes.error()));
  const auto decoded = io::decode_frames(*bytes);
  if (decoded.payloads.size() != 1 || decoded.tail != io::Tail::Clean) return damaged(path);
  Record record;
  if (!record.ParseFromArray(decoded.payloads.front().data(),
                             static_cast<int>(decoded.payloads.front().size())))
    return damaged(path);
  return std::optional<Record>(std::move(record));
}

}  // namespace

Result<io::Beneath> open_run(const RunLayout& run) { return io::Beneath::open(run.root()); }

Result<void> make_run(const RunLayout& run) {
  const auto above = run.root().parent_path();
  if (auto made = io::make_dirs(above, 0700); !made) return made;
  // the state directory is trusted, and so is a link of the site in it
  const auto runs = io::Beneath::open(above, io::Links::Follow);
  if (!runs) return fail(Error(runs.error()));
  const std::string name = run.root().filename().string();
  if (auto made = runs->make_dir(name, 0700); !made) return made;
  const auto dir = runs->below(name);
  if (!dir) return fail(Error(dir.error()));
  if (auto made = dir->make_dir(run.logs().filename().string(), 0700); !made) return made;
  (void)!::mkfifoat(dir->fd(), run.wake_fifo().filename().c_str(), 0600);
  return {};
}

Result<void> write_launch(const RunLayout& run, const v1::Launch& launch) {
  auto frame = frame_of(launch);
  if (!frame) return fail(std::move(frame.error()));
  const auto dir = open_run(run);
  if (!dir) return fail(Error(dir.error()));
  return io::replace_file(dir->at(run.launch().filename().string()), *frame, io::Durable::No);
}

Result<std::optional<v1::Launch>> read_launch(const RunLayout& run) {
  auto launch = read_record<v1::Launch>(run.launch());
  if (launch && *launch && ((*launch)->version() < 1 || (*launch)->version() > kVersion)) {
    return fail(ErrorCode::Unsupported, "reading '" + run.launch().string() + "': version " +
                                            std::to_string((*launch)->version()) +
                                            ", this program knows " + std::to_string(kVersion) +
                                            "; a newer muster wrote it");
  }
  return launch;
}

Result<bool> write_claim(const RunLayout& run, const v1::Claim& claim) {
  auto frame = frame_of(claim);
  if (!frame) return fail(std::move(frame.error()));
  const auto dir = open_run(run);
  if (!dir) return fail(Error(dir.error()));
  return io::create_file(dir->at(run.claim().filename().string()), *frame, io::Durable::No);
}

Result<std::optional<v1::Claim>> read_claim(const RunLayout& run) {
  return read_record<v1::Claim>(run.claim());
}

Result<void> write_lease(const RunLayout& run, BootTime until, const BootId& boot) {
  v1::Lease lease;
  lease.set_until_boot_ns(until.time_since_epoch().count());
  lease.set_boot_id(boot.str());
  const std::string frame = io::encode_frame(lease.SerializeAsString());
  const auto dir = open_run(run);
  if (!dir) return fail(Error(dir.error()));
  const io::At at = dir->at(run.lease().filename().string());
  auto replaced = io::replace_file(at, frame, io::Durable::No);
  // A full disk is no reason to let healthy ranks die. The existing file has enough space for
  // another record of this kind.
  if (!replaced && replaced.error().code == ErrorCode::ResourceExhausted &&
      io::overwrite_file(at, frame))
    return {};
  return replaced;
}

Result<std::optional<v1::Lease>> read_lease(const RunLayout& run) {
  return read_record<v1::Lease>(run.lease());
}

std::optional<BootTime> lease_end(const v1::Lease& lease, const BootId& boot) {
  if (lease.boot_id() != boot.str()) return std::nullopt;
  return BootTime(Duration(lease.until_boot_ns()));
}

Result<std::vector<RunFound>> list_runs(const AgentLayout& agent) {
  std::vector<RunFound> runs;
  std::error_code error;
  for (std::filesystem::directory_iterator at(agent.runs(), error), end; !error && at != end;
       at.increment(error)) {
    if (auto name = AgentLayout::parse_run_name(at->path().filename().string()))
      runs.push_back({.job = std::move(name->first), .attempt = name->second});
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return fail_errno("listing '" + agent.runs().string() + "'", error.value());
  std::ranges::sort(runs, {}, [](const RunFound& run) { return std::pair(run.job, run.attempt); });
  return runs;
}

}  // namespace muster::rundir

// The devices that were announced last, kept beyond the agent's life: when the tools hang at its
// next start, they are told all the same, and whoever waits for that agent (ranks with a short
// orphan grace, a job that is to be restarted) does not wait for a tool. Any thread; blocking.
// The file (common/rundir/layout.h: `devices`): one frame (common/io/frames.h) with a
// muster.v1.Hello of instance, boot id, version and the inventory's devices and findings. Whole or
// not at all, synced, mode 0600. Format: docs/run-directory.md.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "muster/v1/node.pb.h"

namespace muster::agent::probe {

inline constexpr std::size_t kKeptDevicesMax = 1024;
inline constexpr std::size_t kKeptBytesMax = 1 << 20;

struct KeptDevices {
  v1::Inventory inventory;
  bool this_boot = false;
};

// The whole file. Of `inventory` only devices and findings.
std::string encode_kept(const InstanceId& instance, const BootId& boot, const std::string& version,
                        const v1::Inventory& inventory);
Result<void> store_kept(const std::filesystem::path& file, const std::string& bytes);

// Nothing: none were kept, or there is no card among them (CPU slots are no tool's to tell). Error:
// what is there is not this agent's, or not sound.
Result<std::optional<KeptDevices>> load_kept(const std::filesystem::path& file,
                                             const InstanceId& instance, const BootId& boot);

}  // namespace muster::agent::probe

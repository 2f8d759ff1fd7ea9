// Stores and loads the devices that were announced last, so that they survive the agent. Plain
// functions for any thread; they block.
//
// If the tools hang at the agent's next start, the agent announces these devices all the same.
// Ranks with a short orphan grace, and a job that is to be restarted, then do not wait for a tool.
//
// The file (common/rundir/layout.h: `devices`) is one frame (common/io/frames.h). It holds a
// muster.v1.Hello with instance, boot id, version and the inventory's devices and findings. It is
// written completely or not at all, synced, with mode 0600. Format: docs/run-directory.md.
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

// Returns the content of the file. Uses only devices and findings of `inventory`.
std::string encode_kept(const InstanceId& instance, const BootId& boot, const std::string& version,
                        const v1::Inventory& inventory);
Result<void> store_kept(const std::filesystem::path& file, const std::string& bytes);

// Returns nullopt if no devices were stored, or none of them is a card (CPU slots need no tool).
// Errors: the file belongs to another agent, or is damaged.
Result<std::optional<KeptDevices>> load_kept(const std::filesystem::path& file,
                                             const InstanceId& instance, const BootId& boot);

}  // namespace muster::agent::probe

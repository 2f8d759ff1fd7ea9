#include "agent/probe/kept_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/probe/device.h"
#include "common/io/file.h"
#include "common/io/frames.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent::probe {
namespace {

// Returns why no agent can have announced these devices; empty: they are sound.
std::string unsound(const v1::Inventory& inventory) {
  if (static_cast<std::size_t>(inventory.devices_size()) > kKeptDevicesMax)
    return fmt::format("there are more than {} devices in it", kKeptDevicesMax);
  std::set<std::uint32_t> ids;
  for (const v1::Device& device : inventory.devices()) {
    if (!ids.insert(device.id()).second)
      return fmt::format("device {} is in it twice", device.id());
    if (!device_type(device.type()))
      return fmt::format("device {} is of no type that this agent knows", device.id());
  }
  return {};
}

}  // namespace

std::string encode_kept(const InstanceId& instance, const BootId& boot, const std::string& version,
                        const v1::Inventory& inventory) {
  v1::Hello hello;
  hello.set_version(version);
  hello.set_instance(instance.str());
  hello.set_boot_id(boot.str());
  *hello.mutable_inventory()->mutable_devices() = inventory.devices();
  *hello.mutable_inventory()->mutable_findings() = inventory.findings();
  return io::encode_frame(hello.SerializeAsString());
}

Result<void> store_kept(const std::filesystem::path& file, const std::string& bytes) {
  if (auto stored = io::replace_file(file, bytes, io::Durable::Yes); !stored)
    return fail(std::move(stored).error().in("keeping the devices"));
  return {};
}

Result<std::optional<KeptDevices>> load_kept(const std::filesystem::path& file,
                                             const InstanceId& instance, const BootId& boot) {
  const std::string reading =
      fmt::format("reading the devices that were kept in '{}'", file.string());
  auto bytes = io::read_regular_file(file, kKeptBytesMax);
  if (!bytes) {
    if (bytes.error().code == ErrorCode::NotFound) return std::optional<KeptDevices>();
    return fail(std::move(bytes).error().in(reading));
  }
  const io::Decoded decoded = io::decode_frames(*bytes);
  v1::Hello hello;
  if (decoded.payloads.size() != 1 || decoded.used != bytes->size() ||
      !hello.ParseFromArray(decoded.payloads[0].data(),
                            static_cast<int>(decoded.payloads[0].size()))) {
    return fail(ErrorCode::DataLoss, reading + ": it is damaged");
  }
  if (hello.instance() != instance.str())
    return fail(ErrorCode::Conflict, fmt::format("{}: they are those of another agent ('{}')",
                                                 reading, hello.instance()));
  if (const std::string why = unsound(hello.inventory()); !why.empty())
    return fail(ErrorCode::DataLoss, fmt::format("{}: {}", reading, why));
  const bool card = std::ranges::any_of(hello.inventory().devices(), [](const v1::Device& device) {
    return device.type() != to_string(DeviceType::Cpu);
  });
  if (!card) return std::optional<KeptDevices>();
  return KeptDevices{.inventory = std::move(*hello.mutable_inventory()),
                     .this_boot = hello.boot_id() == boot.str()};
}

}  // namespace muster::agent::probe

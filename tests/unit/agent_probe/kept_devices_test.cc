#include "agent/probe/kept_devices.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/io/frames.h"
#include "folder.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent::probe {
namespace {

const InstanceId kInstance("0123"), kOther("4567");
const BootId kBoot("boot-1");

v1::Inventory inventory_of(int count, const std::string& type = "ascend910b") {
  v1::Inventory inventory;
  inventory.set_hostname("not kept");
  inventory.add_findings("one card is warm");
  for (int id = 0; id < count; ++id) {
    v1::Device& device = *inventory.add_devices();
    device.set_id(static_cast<std::uint32_t>(id));
    device.set_type(type);
    device.set_bus_id("0000:c" + std::to_string(id) + ":00.0");
  }
  return inventory;
}

class Kept : public testing::Test {
 protected:
  void write(const std::string& bytes) { folder_.write("devices", bytes); }
  [[nodiscard]] auto load(const InstanceId& instance = kInstance,
                          const BootId& boot = kBoot) const {
    return load_kept(file_, instance, boot);
  }

  Folder folder_;
  std::filesystem::path file_ = folder_.path() / "devices";
};

TEST_F(Kept, ComeBack) {
  const auto none = load();
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(*none) << "nothing was kept yet";
  ASSERT_TRUE(store_kept(file_, encode_kept(kInstance, kBoot, "1.0", inventory_of(2))));
  struct stat info{};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  const auto kept = load();
  ASSERT_TRUE(kept && *kept);
  EXPECT_TRUE((*kept)->this_boot);
  EXPECT_EQ((*kept)->inventory.devices_size(), 2);
  EXPECT_EQ((*kept)->inventory.devices(1).bus_id(), "0000:c1:00.0");
  EXPECT_EQ((*kept)->inventory.findings(0), "one card is warm");
  EXPECT_EQ((*kept)->inventory.hostname(), "");
  const auto rebooted = load(kInstance, BootId("boot-2"));
  ASSERT_TRUE(rebooted && *rebooted);
  EXPECT_FALSE((*rebooted)->this_boot);
}

TEST_F(Kept, CpuSlotsAreNoToolsToTell) {
  write(encode_kept(kInstance, kBoot, "1.0", inventory_of(2, "cpu")));
  const auto kept = load();
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_FALSE(*kept);
}

TEST_F(Kept, WhatIsNotOursOrNotSoundIsRefusedWithASentence) {
  const std::string good = encode_kept(kInstance, kBoot, "1.0", inventory_of(2));
  std::string flipped = good;
  flipped[good.size() / 2] ^= 0x10;
  v1::Inventory twice = inventory_of(2);
  twice.mutable_devices(1)->set_id(0);
  struct Row {
    const char* what;
    std::string bytes, says;
  };
  for (const Row& row :
       {Row{"garbage", "no frame at all", "it is damaged"},
        Row{"zeros", std::string(4096, '\0'), "it is damaged"}, Row{"empty", "", "it is damaged"},
        Row{"torn", good.substr(0, good.size() - 3), "it is damaged"},
        Row{"a flipped bit", flipped, "it is damaged"},
        Row{"two frames", good + good, "it is damaged"},
        Row{"bytes behind it", good + "x", "it is damaged"},
        Row{"a frame of something else", io::encode_frame("\xff\xff\xff"), "it is damaged"},
        Row{"of another state directory", encode_kept(kOther, kBoot, "1.0", inventory_of(2)),
            "they are those of another agent ('4567')"},
        Row{"of no agent",
            io::encode_frame(v1::Hello::default_instance().SerializeAsString() +
                             std::string("\x08\x01")),
            "another agent ('')"},
        Row{"a device twice", encode_kept(kInstance, kBoot, "1.0", twice),
            "device 0 is in it twice"},
        Row{"a type of nobody's", encode_kept(kInstance, kBoot, "1.0", inventory_of(1, "abacus")),
            "device 0 is of no type that this agent knows"},
        Row{"too many",
            encode_kept(kInstance, kBoot, "1.0",
                        inventory_of(static_cast<int>(kKeptDevicesMax) + 1)),
            "there are more than 1024 devices in it"},
        Row{"without end", std::string(kKeptBytesMax + 1, 'x'),
            "reading the devices that were kept"}}) {
    write(row.bytes);
    const auto kept = load();
    ASSERT_FALSE(kept) << row.what;
    EXPECT_NE(kept.error().message.find(row.says), std::string::npos)
        << row.what << ": " << kept.error().message;
    EXPECT_NE(kept.error().message.find(file_.string()), std::string::npos)
        << row.what << ": " << kept.error().message;
  }
}

}  // namespace
}  // namespace muster::agent::probe

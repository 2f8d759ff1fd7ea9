// The whole agent with stand-in tools on its path: what it reports to a controller about its
// devices, and when.
#include <poll.h>
#include <sys/inotify.h>

#include <array>
#include <condition_variable>
#include <cstring>

#include "agent/loop.h"
#include "agent/probe/kept_devices.h"
#include "common/io/unique_fd.h"
#include "common/log/log.h"
#include "common/rpc/channel.h"
#include "tests/unit/agent_link/fake_controller.h"
#include "tests/unit/agent_probe/folder.h"
#include "tests/unit/agent_run/support.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;

// Records what happens to the names in a directory, from its creation on.
class FolderEvents {
 public:
  explicit FolderEvents(const std::filesystem::path& folder) {
    EXPECT_TRUE(fd_);
    EXPECT_GE(::inotify_add_watch(fd_.get(), folder.c_str(), IN_DELETE | IN_MOVED_TO), 0) << folder;
  }
  // Waits until one of these events happens to a name that contains `part`. Returns false if it
  // does not happen within a minute.
  bool wait_for(std::uint32_t what, const std::string& part) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (;;) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd one{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) <= 0) return false;
      alignas(inotify_event) std::array<char, 4096> bytes{};
      const ssize_t got = ::read(fd_.get(), bytes.data(), bytes.size());
      bool seen = false;
      for (ssize_t at = 0; at < got;) {
        inotify_event event{};
        std::memcpy(&event, bytes.data() + at, sizeof(event));
        const char* const name = bytes.data() + at + sizeof(event);
        seen = seen || ((event.mask & what) != 0 && event.len > 0 &&
                        std::string_view(name).find(part) != std::string_view::npos);
        at += static_cast<ssize_t>(sizeof(event) + event.len);
      }
      if (seen) return true;
    }
  }

 private:
  io::UniqueFd fd_{::inotify_init1(IN_CLOEXEC)};
};

class AgentDevices : public ::testing::Test {
 protected:
  AgentDevices() {
    static const auto logging = log::set_up({.daemon = "test", .level = "off"});
    EXPECT_TRUE(logging);
    address_ = "unix:" + (dir_.path() / "s").string();
    controller_ = std::make_unique<FakeController>(
        address_, [this](FakeController::Stream& stream, const v1::ConnectRequest& request) {
          v1::ConnectResponse response;
          if (request.has_hello()) {
            response = welcome_message();
            response.mutable_welcome()->mutable_heartbeat_interval()->set_seconds(0);
            response.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(20'000'000);
          } else if (request.has_heartbeat() && acks_) {
            response.mutable_heartbeat_ack()->set_number(request.heartbeat().number());
            response.mutable_heartbeat_ack()->set_epoch(1);
          } else {
            return std::optional<grpc::Status>();
          }
          stream.Write(response);
          return std::optional<grpc::Status>();
        });
    machine("910b_container");
    for (const char* tool : {"npu-smi", "hccn_tool"}) tools_.tool(tool, "recorded");
  }
  ~AgentDevices() override {
    leave();
    controller_.reset();
    ::unsetenv("MUSTER_RECORDED");
  }
  // Sets what the tools print from now on.
  void machine(const std::string& name) {
    tools_.write("next.txt", read_text(probe::Recorded(name).path()));
    show();
  }
  void show() {
    std::filesystem::rename(tools_.path() / "next.txt", tools_.path() / "machine.txt");
    ASSERT_EQ(::setenv("MUSTER_RECORDED", tools_.file("machine.txt").c_str(), 1), 0);
  }
  void leave() {
    if (agent_) {
      agent_->stop();
      loop_->stop();
    }
    agent_.reset();
    loop_.reset();
  }
  void begin(Duration interval, Duration bound = std::chrono::seconds(120),
             const BootId& boot = *process::boot_id()) {
    auto state = StateDir::open(dir_.path() / "state");
    ASSERT_TRUE(state) << state.error().message;
    loop_ = std::make_unique<async::Loop>("test-agent");
    AgentOptions options{
        .host = {.layout = state->layout(),
                 .self = {.instance = state->identity().instance, .boot_id = boot},
                 .node = kNode,
                 .worker = worker_binary(),
                 .min_free_bytes = 1},
        .network = network_,
        .probe = probe::ProbeOptions{.path = tools_.path().string() + ":/usr/bin:/bin",
                                     .each = milliseconds(120'000),
                                     .total = milliseconds(120'000)},
        .probe_interval = interval,
        .first_probe_bound = bound,
        .version = "test",
        .endpoint = [this]() -> Result<rpc::Endpoint> {
          return rpc::Endpoint{.address = address_};
        }};
    agent_ = std::make_unique<Agent>(*loop_, std::move(*state), std::move(options));
    auto started = agent_->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  std::optional<v1::Inventory> reported(const std::function<bool(const v1::Inventory&)>& fits) {
    const auto heard = controller_->wait_for(
        [&](const v1::ConnectRequest& request) {
          return request.has_hello() && fits(request.hello().inventory());
        },
        std::chrono::seconds(60));
    if (!heard) return std::nullopt;
    return heard->hello().inventory();
  }
  // Waits for the first heartbeat with such a reading of the device.
  bool read(std::uint32_t device, v1::DeviceHealth health, const std::string& part = "") {
    const auto fits = [&](const v1::DeviceReading& one) {
      return one.id() == device && one.health() == health &&
             one.health_text().find(part) != std::string::npos;
    };
    return controller_
        ->wait_for(
            [&](const v1::ConnectRequest& request) {
              return request.has_heartbeat() &&
                     std::ranges::any_of(request.heartbeat().devices(), fits);
            },
            std::chrono::seconds(60))
        .has_value();
  }

  // Reports its devices once, and ends.
  void first_incarnation() {
    begin(Duration::zero());
    ASSERT_TRUE(read(0, v1::DEVICE_HEALTH_OK));
    leave();
  }
  std::vector<v1::Inventory> hellos() {
    std::vector<v1::Inventory> all;
    for (const v1::ConnectRequest& request : controller_->heard()) {
      if (request.has_hello()) all.push_back(request.hello().inventory());
    }
    return all;
  }

  TempDir dir_;
  probe::Folder tools_;
  std::function<void(v1::Inventory&)> network_;
  std::string address_;
  std::atomic<bool> acks_ = true;
  std::unique_ptr<FakeController> controller_;
  std::unique_ptr<async::Loop> loop_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentDevices, ComeWithTheHelloAndTheirReadingsWithTheFirstHeartbeat) {
  begin(Duration::zero());
  const auto inventory = reported([](const v1::Inventory&) { return true; });
  ASSERT_TRUE(inventory);
  ASSERT_EQ(inventory->devices_size(), 4);
  EXPECT_EQ(inventory->devices(0).id(), 0U);
  EXPECT_EQ(inventory->devices(0).physical_id(), 4U);
  EXPECT_EQ(inventory->devices(0).addresses(0), "192.168.4.21");
  ASSERT_TRUE(read(3, v1::DEVICE_HEALTH_OK));
  ASSERT_TRUE(controller_->wait_for([n = 0](const v1::ConnectRequest& request) mutable {
    return request.has_heartbeat() && ++n == 10;
  }));
  const auto heard = controller_->heard();
  const auto first = std::ranges::find_if(
      heard, [](const v1::ConnectRequest& request) { return request.has_heartbeat(); });
  EXPECT_EQ(first->heartbeat().devices_size(), 4) << "nothing may be placed before it";
  EXPECT_FALSE(heard.back().heartbeat().devices_size() > 0) << "said, and acknowledged";
}

TEST_F(AgentDevices, AProbeIsReportedUntilItIsAcknowledged) {
  acks_ = false;
  begin(Duration::zero());
  EXPECT_TRUE(controller_->wait_for([n = 0](const v1::ConnectRequest& request) mutable {
    return request.has_heartbeat() && request.heartbeat().devices_size() == 4 && ++n == 5;
  }));
}

TEST_F(AgentDevices, TheHelloDoesNotWaitForAToolThatHangs) {
  tools_.tool("npu-smi", "hang");
  begin(Duration::zero(), milliseconds(1));
  const auto inventory = reported([](const v1::Inventory&) { return true; });
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->devices_size(), 0) << "not CPU slots";
  ASSERT_EQ(inventory->findings_size(), 1);
  EXPECT_EQ(inventory->findings(0),
            "the tools have not answered yet: the devices are announced as soon as they are known");
}

TEST_F(AgentDevices, WhatComesLateIsReportedWithAnotherHello) {
  begin(Duration::zero(), Duration::zero());
  EXPECT_TRUE(
      reported([](const v1::Inventory& inventory) { return inventory.devices_size() == 4; }));
  EXPECT_TRUE(read(0, v1::DEVICE_HEALTH_OK));
}

// Regression: while a tool hung, a restarted agent did not connect to its controller, and ranks
// with a short grace were stopped.
TEST_F(AgentDevices, OfTheLastIncarnationAreReportedWhileAToolHangs) {
  first_incarnation();
  tools_.tool("npu-smi", "hang");
  begin(Duration::zero());
  const auto heartbeat =
      controller_->wait_for([hellos = 0](const v1::ConnectRequest& request) mutable {
        hellos += request.has_hello() ? 1 : 0;
        return hellos == 2 && request.has_heartbeat();
      });
  ASSERT_TRUE(heartbeat);
  EXPECT_EQ(heartbeat->heartbeat().devices_size(), 0)
      << "nobody has looked at them: nothing is placed on them";
  const auto reported = hellos();
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[1].SerializeAsString(), reported[0].SerializeAsString())
      << "no other node than before";
  EXPECT_TRUE(reported[1].probes_devices());
}

TEST_F(AgentDevices, OfTheLastIncarnationAreConfirmedByTheFirstProbe) {
  first_incarnation();
  const std::string kept = read_text(dir_.path() / "state/devices");
  const BootId other("another-boot");
  begin(Duration::zero(), std::chrono::seconds(120), other);
  const auto heartbeat =
      controller_->wait_for([hellos = 0](const v1::ConnectRequest& request) mutable {
        hellos += request.has_hello() ? 1 : 0;
        return hellos == 2 && request.has_heartbeat() && request.heartbeat().devices_size() == 4;
      });
  ASSERT_TRUE(heartbeat);
  leave();
  EXPECT_EQ(hellos().size(), 2U) << "there was nothing else to say";
  const auto again =
      probe::load_kept(dir_.path() / "state/devices",
                       StateDir::open(dir_.path() / "state")->identity().instance, other);
  ASSERT_TRUE(again && *again);
  EXPECT_TRUE((*again)->this_boot) << "they are this boot's since that look";
  EXPECT_NE(read_text(dir_.path() / "state/devices"), kept);
}

TEST_F(AgentDevices, OfTheLastIncarnationAreReplacedByTheFirstProbe) {
  first_incarnation();
  machine("910b_alarm");
  begin(std::chrono::hours(1));
  ASSERT_TRUE(reported([](const v1::Inventory& inventory) {
    return inventory.devices_size() == 4 && inventory.devices(3).id() == 7;
  }));
  const auto reported = hellos();
  ASSERT_EQ(reported.size(), 3U);
  EXPECT_EQ(reported[1].devices(3).id(), 3U);
}

TEST_F(AgentDevices, WhatWasKeptAndIsNoUseIsIgnored) {
  first_incarnation();
  ASSERT_EQ(std::filesystem::status(dir_.path() / "state/devices").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  dir_.write("state/devices", "rubbish");
  tools_.tool("npu-smi", "hang");
  begin(Duration::zero(), milliseconds(1));
  ASSERT_TRUE(reported([](const v1::Inventory& inventory) {
    return inventory.devices_size() == 0;
  })) << "it waited for the look, and no longer than its bound";
  EXPECT_EQ(hellos().size(), 2U);
}

// Regression: the disk was full when the devices were reported. The next start would have waited
// for a tool that hangs.
TEST_F(AgentDevices, WhatTheDiskDidNotTakeIsKeptAfterALaterProbe) {
  const auto file = dir_.path() / "state/devices";
  ASSERT_TRUE(StateDir::open(dir_.path() / "state"));
  std::filesystem::create_directories(file / "in-the-way");
  FolderEvents events(dir_.path() / "state");
  begin(milliseconds(20));
  ASSERT_TRUE(events.wait_for(IN_DELETE, "devices"))
      << "what was written beside it goes when it cannot take its place";
  std::filesystem::remove_all(file);
  ASSERT_TRUE(events.wait_for(IN_MOVED_TO, "devices"));
  leave();
  const auto kept = probe::load_kept(
      file, StateDir::open(dir_.path() / "state")->identity().instance, *process::boot_id());
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->inventory.devices_size(), 4);
}

TEST_F(AgentDevices, AnInterfaceThatComesLaterIsReportedWithAnotherHello) {
  first_incarnation();
  network_ = [](v1::Inventory& inventory) {
    inventory.clear_interfaces();
    v1::NetworkInterface& one = *inventory.add_interfaces();
    one.set_name("bond0");
    one.add_addresses("10.0.0.9");
    inventory.set_address("10.0.0.9");
  };
  begin(Duration::zero());
  const auto inventory =
      reported([](const v1::Inventory& one) { return one.interfaces_size() == 1; });
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->interfaces(0).name(), "bond0");
  EXPECT_EQ(inventory->address(), "10.0.0.9");
  EXPECT_EQ(inventory->devices_size(), 4);
  ASSERT_EQ(hellos().size(), 3U);
  EXPECT_EQ(hellos()[1].interfaces_size(), 0);
}

TEST_F(AgentDevices, ACardThatVanishesAndComesBack) {
  const std::string whole = read_text(probe::Recorded("910b_container").path());
  begin(milliseconds(1));
  ASSERT_TRUE(
      reported([](const v1::Inventory& inventory) { return inventory.devices_size() == 4; }));
  // As the tools show it when card 7 has failed: it is neither in the table nor in the numbers.
  std::string fewer;
  std::istringstream lines(whole);
  bool second_row = false;
  for (std::string line; std::getline(lines, line);) {
    const bool row = line.starts_with("| 7 ") || line.starts_with("\t7 ");
    if (!row && !second_row) fewer += line + "\n";
    second_row = line.starts_with("| 7     910B3");
  }
  tools_.write("next.txt", fewer);
  show();
  // Between the two probes that agree, its reading is Bad (DeviceBook's test shows it). Whether a
  // heartbeat carries that one depends on when the second probe ends.
  ASSERT_TRUE(
      reported([](const v1::Inventory& inventory) { return inventory.devices_size() == 3; }));
  const int before = controller_->connections();
  tools_.write("next.txt", whole);
  show();
  ASSERT_TRUE(controller_->wait_for(
      [n = 0](const v1::ConnectRequest& request) mutable {
        return request.has_hello() && request.hello().inventory().devices_size() == 4 && ++n == 2;
      },
      std::chrono::seconds(60)));
  EXPECT_GT(controller_->connections(), before);
}

// An upgrade of the driver removes the tools while the agent runs.
TEST_F(AgentDevices, ToolsThatGoTakeNoDevicesAway) {
  begin(milliseconds(1));
  ASSERT_TRUE(read(0, v1::DEVICE_HEALTH_OK));
  std::filesystem::remove(tools_.path() / "npu-smi");
  ASSERT_TRUE(read(0, v1::DEVICE_HEALTH_BAD, "the tools do not show it"));
  EXPECT_EQ(controller_->connections(), 1);
}

}  // namespace
}  // namespace muster::agent

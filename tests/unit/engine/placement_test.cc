// What a node is and what it has been given, as its ranks see it: kinds of device, interfaces,
// ports for HCCL, and what an agent must be able to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_specs.h"

namespace muster::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

LaunchPlan planned(const LaunchRequest& request) {
  auto plan = plan_launch(request);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *std::move(plan) : LaunchPlan();
}

TEST(DeviceType, AscendAsksForEveryKindOfThem) {
  for (const char* kind : {"ascend", "ascend910", "ascend910b", "ascend910_93"}) {
    EXPECT_TRUE(is_device_type("ascend", kind)) << kind;
    EXPECT_TRUE(is_device_type(kind, kind)) << kind;
    EXPECT_FALSE(is_device_type("nvidia", kind)) << kind;
  }
  EXPECT_FALSE(is_device_type("ascend910", "ascend910b"));
  EXPECT_FALSE(is_device_type("ascend910b", "ascend"));
  EXPECT_FALSE(is_device_type("ascend", "cpu"));
}

TEST(DeviceType, EveryKindOfAscendHasItsVariables) {
  for (const char* kind : {"ascend", "ascend910", "ascend910b", "ascend910_93"}) {
    auto spec = spec_of("torch", {});
    spec.mutable_resources()->set_type("auto");
    auto request = request_of(spec);
    for (PlacedNode& node : request.nodes) node.device_type = kind;
    const LaunchPlan by_node = planned(request);
    EXPECT_EQ(env(by_node.ranks[2], "ASCEND_RT_VISIBLE_DEVICES"), "0,1") << kind;
    EXPECT_EQ(env(by_node.ranks[2], "HCCL_IF_IP"), "10.0.0.2") << kind;
    EXPECT_EQ(env(by_node.ranks[2], "TORCH_NPU_ELASTIC_USE_AGENT_STORE"), "False") << kind;
    spec.mutable_resources()->set_type(kind);
    spec.mutable_resources()->add_device_ids(1);
    spec.mutable_resources()->add_device_ids(0);
    EXPECT_THAT(problem_text(spec), testing::HasSubstr("does not ascend")) << kind;
  }
}

// CUDA numbers the fastest card first, nvidia-smi and the agent number by bus: with two models in a
// node, the numbers mean different cards.
TEST(DeviceType, CudaCountsAsTheInventoryDoes) {
  auto spec = spec_of("torch", {});
  spec.mutable_resources()->set_type("nvidia");
  EXPECT_EQ(env(planned(request_of(spec)).ranks[0], "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  (*spec.mutable_runtime()->mutable_env())["CUDA_DEVICE_ORDER"] = "FASTEST_FIRST";
  EXPECT_EQ(env(planned(request_of(spec)).ranks[0], "CUDA_DEVICE_ORDER"), "FASTEST_FIRST");
  spec.mutable_resources()->set_type("cpu");
  spec.mutable_runtime()->clear_env();
  EXPECT_EQ(env(planned(request_of(spec)).ranks[0], "CUDA_DEVICE_ORDER"), "(unset)");
}

struct Network {
  const char *type, *named, *address;
  const char *gloo, *hccl_ip, *hccl, *nccl;
};

TEST(HostNetwork, FollowsTheInterfaceOfTheNode) {
  constexpr const char* kNone = "(unset)";
  for (const Network& row : std::initializer_list<Network>{
           {"ascend910b", "auto", "10.0.0.1", "eth2", "10.0.0.1", kNone, kNone},
           {"ascend910b", "eth2", "10.0.0.1", "eth2", "10.0.0.1", "=eth2", kNone},
           {"ascend910b", "eth2", "127.0.0.1", "eth2", kNone, "=eth2", kNone},
           {"ascend910b", "eth2", "node-1.cluster", "eth2", kNone, "=eth2", kNone},
           {"nvidia", "auto", "10.0.0.1", "eth2", kNone, kNone, kNone},
           {"nvidia", "eth2", "10.0.0.1", "eth2", kNone, kNone, "=eth2"},
           {"cpu", "eth2", "10.0.0.1", "eth2", kNone, kNone, kNone},
       }) {
    SCOPED_TRACE(testing::Message() << row.type << " " << row.named << " " << row.address);
    auto spec = spec_of("torch", {}, 1);
    spec.mutable_resources()->set_type(row.type);
    spec.mutable_network()->set_interface(row.named);
    auto request = request_of(spec, 1);
    request.nodes[0].address = row.address;
    const LaunchPlan plan = planned(request);
    EXPECT_EQ(env(plan.ranks[1], "GLOO_SOCKET_IFNAME"), row.gloo);
    EXPECT_EQ(env(plan.ranks[1], "HCCL_IF_IP"), row.hccl_ip);
    EXPECT_EQ(env(plan.ranks[1], "HCCL_SOCKET_IFNAME"), row.hccl);
    EXPECT_EQ(env(plan.ranks[1], "NCCL_SOCKET_IFNAME"), row.nccl);
  }
}

TEST(HostNetwork, TheSpecsOwnWordsStand) {
  auto spec = spec_of("torch", {}, 1);
  spec.mutable_network()->set_interface("eth2");
  auto& own = *spec.mutable_runtime()->mutable_env();
  own["HCCL_SOCKET_IFNAME"] = "eth7";
  own["GLOO_SOCKET_IFNAME"] = "eth8";
  const LaunchPlan plan = planned(request_of(spec, 1));
  EXPECT_EQ(env(plan.ranks[0], "HCCL_SOCKET_IFNAME"), "eth7");
  EXPECT_EQ(env(plan.ranks[0], "HCCL_IF_IP"), "(unset)") << "would hide it";
  EXPECT_EQ(env(plan.ranks[0], "GLOO_SOCKET_IFNAME"), "eth8");
}

TEST(HcclPort, IsTheNodesUnlessTheSpecHasOne) {
  for (const char* engine : {"mindformers", "megatron", "mindspeed-mm", "torch"}) {
    auto spec = spec_of(engine, {});
    auto request = request_of(spec);
    request.nodes[0].hccl_port = 29'952;
    request.nodes[1].hccl_port = 29'984;
    EXPECT_TRUE(wants_hccl_port(spec)) << engine;
    EXPECT_EQ(env(planned(request).ranks[0], "HCCL_IF_BASE_PORT"), "29952") << engine;
    EXPECT_EQ(env(planned(request).ranks[2], "HCCL_IF_BASE_PORT"), "29984") << engine;
    request.nodes[0].hccl_port = 0;
    EXPECT_EQ(env(planned(request).ranks[0], "HCCL_IF_BASE_PORT"), "(unset)") << engine;
    (*spec.mutable_runtime()->mutable_env())["HCCL_IF_BASE_PORT"] = "50000";
    EXPECT_FALSE(wants_hccl_port(spec)) << engine;
    EXPECT_EQ(env(planned(request).ranks[2], "HCCL_IF_BASE_PORT"), "50000") << engine;
  }
  auto command = spec_of("command", {});
  EXPECT_FALSE(wants_hccl_port(command));
  auto gpus = spec_of("torch", {});
  gpus.mutable_resources()->set_type("nvidia");
  auto request = request_of(gpus);
  request.nodes[0].hccl_port = 29'952;
  EXPECT_EQ(env(planned(request).ranks[0], "HCCL_IF_BASE_PORT"), "(unset)");
}

TEST(Scheduler, RunsWhereMsrunsRanksFindEachOther) {
  auto spec = spec_of("mindformers", {});
  EXPECT_FALSE(has_scheduler(spec)) << "they have a rank table";
  spec.mutable_launch()->set_launcher(v1::LAUNCHER_MSRUN);
  EXPECT_TRUE(has_scheduler(spec));
  spec.mutable_launch()->set_per(v1::LAUNCH_PER_NODE);
  EXPECT_FALSE(has_scheduler(spec)) << "the script starts its own";
  spec.mutable_launch()->clear_per();
  spec.mutable_resources()->set_nodes(1);
  spec.mutable_resources()->set_devices(1);
  EXPECT_FALSE(has_scheduler(spec)) << "one rank needs no other";
  EXPECT_FALSE(has_scheduler(spec_of("torch", {})));
}

// What vendors' scripts export about one process, or what a shell has from another launch, is
// removed at its end.
TEST(Setup, GoesToEveryNodeAsItStands) {
  auto spec = spec_of("torch", {});
  EXPECT_FALSE(node_launch(request_of(spec), planned(request_of(spec)), 0).has_setup());
  spec.mutable_runtime()->add_setup("source /opt/env.sh && echo \"${HOME}\"");
  spec.mutable_runtime()->add_setup("if true; then\n  pip list\nfi");
  spec.mutable_runtime()->mutable_setup_timeout()->set_seconds(90);
  const auto request = request_of(spec);
  const LaunchPlan plan = planned(request);
  for (std::size_t node = 0; node < 2; ++node) {
    const v1::NodeLaunch order = node_launch(request, plan, node);
    const v1::Setup& setup = order.setup();
    EXPECT_THAT(setup.commands(), ElementsAre(spec.runtime().setup(0), spec.runtime().setup(1),
                                              testing::StartsWith("unset ")));
    for (const char* name : {"RANK_TABLE_FILE", "MA_JOB_DIR", "RANK_ID", "DEVICE_ID", "LOCAL_RANK"})
      EXPECT_THAT(setup.commands(2), testing::HasSubstr(std::string(" ") + name + " "));
    EXPECT_EQ(setup.timeout().seconds(), 90);
    EXPECT_EQ(setup.cwd(), "/srv");
  }
  spec.set_engine("command");
  EXPECT_EQ(node_launch(request_of(spec), planned(request_of(spec)), 0).setup().commands_size(), 2)
      << "which has no variables of its own";
}

TEST(Container, GoesWithTheJobsMountsAndTheCode) {
  auto spec = spec_of("torch", {});
  EXPECT_FALSE(node_launch(request_of(spec), planned(request_of(spec)), 0).has_container());
  spec.mutable_runtime()->set_image("img:1");
  v1::MountSpec& mount = *spec.mutable_runtime()->add_mounts();
  mount.set_source("/data");
  mount.set_target("/mnt");
  mount.set_read_only(true);
  const v1::Container container =
      node_launch(request_of(spec), planned(request_of(spec)), 1).container();
  EXPECT_EQ(container.image(), "img:1");
  ASSERT_EQ(container.mounts_size(), 2);
  EXPECT_EQ(container.mounts(0).source() + ">" + container.mounts(0).target(), "/data>/mnt");
  EXPECT_TRUE(container.mounts(0).read_only());
  EXPECT_EQ(container.mounts(1).source() + ">" + container.mounts(1).target(), "/srv>")
      << "where it is on the node";
  spec.mutable_code()->set_at("/");
  EXPECT_EQ(node_launch(request_of(spec), planned(request_of(spec)), 0).container().mounts_size(),
            1);
}

}  // namespace
}  // namespace muster::engine

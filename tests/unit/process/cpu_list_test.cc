#include "common/process/cpu_list.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

namespace muster::process {
namespace {

TEST(CpuList, IsReadAsTheKernelWritesIt) {
  EXPECT_EQ(parse_cpu_list("0-3,8\n"), (CpuList{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list(" 5 "), (CpuList{5}));
  EXPECT_EQ(parse_cpu_list("\n"), CpuList()) << "a NUMA node of memory alone";
  EXPECT_EQ(parse_cpu_list("8191"), (CpuList{8191}));
  for (const char* wrong : {"a", "1,", ",1", "3-1", "1-", "-1", "1--2", "1,1", "2,1", "0-3,2",
                            "8192", "99999999999", "1 2", "0x3", "0-8192"})
    EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
}

TEST(CpuList, IsWrittenTheSameWay) {
  for (const char* text : {"", "0", "0-15,64-79", "1,3,5-6"})
    EXPECT_EQ(cpu_list_text(*parse_cpu_list(text)), text);
}

TEST(CpuList, AThreadRunsWhereItIsPut) {
  const auto all = allowed_cpus();
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_FALSE(all->empty());
  std::thread([&] {
    EXPECT_EQ(run_on_cpus({all->back()}), 0);
    const auto now = allowed_cpus();
    ASSERT_TRUE(now);
    EXPECT_EQ(*now, (CpuList{all->back()}));
    EXPECT_EQ(run_on_cpus({}), EINVAL);
    EXPECT_EQ(run_on_cpus({kCpusMost - 1}), EINVAL) << "which no machine here has";
  }).join();
  EXPECT_EQ(*allowed_cpus(), *all);
}

}  // namespace
}  // namespace muster::process

#include "agent/probe/interface_news.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "agent/probe/interfaces.h"
#include "common/io/unique_fd.h"

namespace muster::agent {
namespace {

bool readable(const InterfaceNews& news, int within_ms) {
  pollfd item{.fd = news.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&item, 1, within_ms) == 1;
}

bool set_up(const char* name) {
  const io::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof(request.ifr_name) - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

// Runs in a network namespace of the thread's own, whose loopback is down.
TEST(InterfaceNews, ComesWhenAnInterfaceGoesUp) {
  bool allowed = true;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      allowed = false;
      return;
    }
    auto news = InterfaceNews::open();
    ASSERT_TRUE(news) << news.error().message;
    EXPECT_FALSE(readable(*news, 0));
    EXPECT_TRUE(network_interfaces().empty());
    ASSERT_TRUE(set_up("lo"));
    EXPECT_TRUE(readable(*news, 30'000));
    ASSERT_EQ(network_interfaces().size(), 1U);
    EXPECT_EQ(network_interfaces()[0].addresses(0), "127.0.0.1");
    news->take();
    EXPECT_FALSE(readable(*news, 0));
  }).join();
  if (!allowed) GTEST_SKIP() << "this user may make no network of its own";
}

// Adds a route to 10.0.0.0/8 through the loopback.
bool add_route() {
  const io::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  rtentry route{};
  const auto set = [](sockaddr& where, in_addr_t address) {
    sockaddr_in text{};
    text.sin_family = AF_INET;
    text.sin_addr.s_addr = htonl(address);
    std::memcpy(&where, &text, sizeof(text));
  };
  set(route.rt_dst, 0x0A00'0000);
  set(route.rt_genmask, 0xFF00'0000);
  char device[] = "lo";
  route.rt_dev = device;
  route.rt_flags = RTF_UP;
  return ::ioctl(socket.get(), SIOCADDRT, &route) == 0;
}

TEST(InterfaceNews, ComesWhenARouteIsAdded) {
  bool allowed = true;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      allowed = false;
      return;
    }
    ASSERT_TRUE(set_up("lo"));
    auto news = InterfaceNews::open();
    ASSERT_TRUE(news) << news.error().message;
    news->take();
    EXPECT_FALSE(readable(*news, 0));
    ASSERT_TRUE(add_route());
    EXPECT_TRUE(readable(*news, 30'000));
  }).join();
  if (!allowed) GTEST_SKIP() << "this user may make no network of its own";
}

}  // namespace
}  // namespace muster::agent

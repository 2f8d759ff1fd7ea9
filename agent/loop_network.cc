// The network part of the Agent: a change of the node's interfaces or routes while the agent runs
// is sent to the controller with a new Hello.
//
//   listening --news--> waits (deaf) --1 s--> read --nothing has changed--> listening
//                         ^                     |
//                         |                     +--last Hello for this >= 1 min ago--> new Hello,
//                         |                     |                                      listening
//                         +---rest of 1 min-----+
//
// While the agent waits it does not listen. So flapping routes, on a host with many containers or
// on a router, cost at most one read per second.
#include <google/protobuf/util/message_differencer.h>

#include "agent/loop.h"
#include "common/log/log.h"

namespace muster::agent {
namespace {

// a bond or a DHCP lease changes in several steps
constexpr Duration kSettle = std::chrono::seconds(1);
// between two Hellos because of the network: a flapping interface or route costs the controller a
// record each time
constexpr Duration kHellosApart = std::chrono::minutes(1);

}  // namespace

void Agent::watch_network() {
  loop_.assert_on();
  if (!options_.network) return;
  auto news = InterfaceNews::open();
  if (!news) {
    log::warn(news.error().message +
              "; they stay as they are announced now until the agent is started again");
    return;
  }
  interface_news_.emplace(std::move(*news));
  probe_network_after(kSettle);  // it may have changed since it was read
}

// The first requested time is kept: endless news must not postpone the read for ever.
void Agent::probe_network_after(Duration after) {
  loop_.assert_on();
  if (!network_later_.want_one()) return;
  news_ready_.reset();
  network_timer_.arm(after, [this] {
    loop_.assert_on();
    network_later_.ended();
    probe_network();
    if (!network_later_.under_way()) listen_to_network();
  });
}

void Agent::listen_to_network() {
  loop_.assert_on();
  news_ready_ = std::make_unique<async::Readable>(loop_, "network", interface_news_->fd(),
                                                  [this] { probe_network_after(kSettle); });
}

void Agent::probe_network() {
  loop_.assert_on();
  interface_news_->take();  // before the read: later changes are news
  v1::Inventory now = options_.inventory;
  options_.network(now);
  if (google::protobuf::util::MessageDifferencer::Equals(now, options_.inventory)) return;
  const BootTime at = options_.clock->now().boot;
  if (network_reported_at_ && at - *network_reported_at_ < kHellosApart)
    return probe_network_after(*network_reported_at_ + kHellosApart - at);
  network_reported_at_ = at;
  options_.inventory = std::move(now);
  log::info("the network interfaces or routes have changed; they are announced with a new Hello",
            {{"address", options_.inventory.address()}});
  if (link_) link_->say_hello_again();
}

}  // namespace muster::agent

#include "tests/sim/network.h"

#include <algorithm>

#include "tests/sim/agent_model.h"
#include "tests/sim/controller_model.h"
#include "tests/sim/world.h"

namespace muster::sim {

Time Network::delay() {
  if (world_.scenario.slow_network) return world_.rng.skewed(kMillisecond, 400 * kMillisecond);
  return world_.rng.skewed(50 * kMicrosecond, 5 * kMillisecond);
}

bool Network::reachable(const Machine& machine) const {
  const auto cut = cut_off_.find(machine.name());
  return machine.on() && world_.controller.listening() &&
         (cut == cut_off_.end() || cut->second <= world_.timeline.now());
}

LinkPtr Network::newest(const Machine& machine) const {
  const auto found = newest_.find(machine.name());
  return found == newest_.end() ? nullptr : found->second;
}

bool Network::underway_to(const Machine& machine) const {
  const LinkPtr link = newest(machine);
  return link != nullptr && link->down.in_flight > 0;
}

LinkPtr Network::connect(Machine& machine) {
  if (!reachable(machine)) return nullptr;
  auto link = std::make_shared<Link>();
  link->id = ConnectionId(next_id_++);
  link->machine = &machine;
  link->agent_incarnation = machine.agent().incarnation();
  link->controller_incarnation = world_.controller.incarnation();
  newest_[machine.name()] = link;
  return link;
}

template <class Deliver>
void Network::carry(Link::Direction Link::* direction, const LinkPtr& link, Deliver deliver) {
  Link::Direction& way = (*link).*direction;
  const Time when = std::max({way.last, way.stalled_until, world_.timeline.now() + delay()});
  way.last = when;
  ++way.in_flight;
  world_.timeline.at(when, [this, link, direction, deliver = std::move(deliver)] {
    Link::Direction& later = (*link).*direction;
    --later.in_flight;
    if (world_.timeline.now() >= later.lost_from) {
      world_.coverage.hit(Fault::MessageLost);
      return;
    }
    deliver();
  });
}

void Network::send_up(const LinkPtr& link, v1::ConnectRequest message) {
  if (!link->agent_open) return;
  carry(&Link::up, link,
        [this, link, message = std::make_shared<v1::ConnectRequest>(std::move(message))] {
          if (newest(*link->machine) != link) world_.coverage.hit(Fault::LateOldConnection);
          if (world_.timeline.now() > link->controller_reads_until ||
              world_.controller.incarnation() != link->controller_incarnation)
            return;
          world_.controller.receive(link, message);
        });
}

void Network::send_down(const LinkPtr& link, std::shared_ptr<const Down> message) {
  if (!link->controller_open) return;
  carry(&Link::down, link, [this, link, message = std::move(message)] {
    AgentModel& agent = link->machine->agent();
    // An agent that has closed a stream gets nothing more from it; the mutant's transport still
    // delivers to it.
    const bool stale =
        !link->agent_open && world_.mutant == Mutant::StaleOrders && message->what.has_orders();
    if (agent.incarnation() != link->agent_incarnation || (!link->agent_open && !stale)) return;
    agent.receive(link, message);
  });
}

void Network::tell_agent(const LinkPtr& link, Time after) {
  // It arrives after the messages in flight: a stream ends after its last message.
  const Time when = std::max(world_.timeline.now() + after, link->down.last);
  world_.timeline.at(when, [link] {
    if (link->agent_open && link->machine->agent().incarnation() == link->agent_incarnation)
      link->machine->agent().link_closed(link);
  });
}

void Network::tell_controller(const LinkPtr& link, Time after) {
  const Time when = std::max(world_.timeline.now() + after, link->up.last);
  world_.timeline.at(when, [this, link] {
    if (link->controller_open && world_.controller.incarnation() == link->controller_incarnation)
      world_.controller.link_closed(link);
  });
}

void Network::closed_by_agent(const LinkPtr& link) {
  link->agent_open = false;
  if (world_.rng.one_in(4)) link->up.lost_from = world_.timeline.now();
  tell_controller(link, reachable(*link->machine) ? delay() : world_.rng.between(5, 20) * kSecond);
}

void Network::closed_by_controller(const LinkPtr& link) {
  link->controller_open = false;
  link->controller_reads_until = world_.timeline.now() + delay();
  tell_agent(link, reachable(*link->machine) || !world_.controller.listening()
                       ? delay()
                       : world_.rng.between(5, 20) * kSecond);
}

void Network::machine_off(Machine& machine) {
  const LinkPtr link = newest(machine);
  if (link == nullptr) return;
  link->agent_open = false;
  link->up.lost_from = link->down.lost_from = world_.timeline.now();
  tell_controller(link, world_.rng.between(3, 20) * kSecond);
}

void Network::break_link(Machine& machine) {
  const LinkPtr link = newest(machine);
  if (link == nullptr || !link->agent_open || !link->controller_open) return;
  Rng& rng = world_.rng;
  const Time now = world_.timeline.now();
  switch (rng.below(5)) {
    case 0:  // a reset: both know at once, what was in flight is lost
      link->up.lost_from = link->down.lost_from = now;
      tell_agent(link, delay());
      tell_controller(link, delay());
      return;
    case 1:  // the agent knows, and is back before the controller has noticed
      world_.coverage.hit(Fault::HalfOpen);
      if (rng.percent(50)) link->up.lost_from = now + rng.skewed(0, kSecond);
      link->down.lost_from = now;
      tell_agent(link, delay());
      tell_controller(link, rng.between(2, 20) * kSecond);
      return;
    case 2:  // the controller knows, the agent still sends to nobody
      world_.coverage.hit(Fault::HalfOpen);
      link->up.lost_from = link->down.lost_from = now;
      tell_controller(link, delay());
      tell_agent(link, rng.between(2, 15) * kSecond);
      return;
    // Nothing is lost, but the old stream's last messages arrive after the new one's first.
    case 3: {
      const Time late = now + rng.between(300, 8'000) * kMillisecond;
      link->up.stalled_until = late;
      link->up.last = std::max(link->up.last, late);
      if (link->agent_open && machine.agent().alive()) machine.agent().last_words(link);
      tell_agent(link, delay());
      tell_controller(link, late - now + delay());
      return;
    }
    default: {  // the same in the other direction
      const Time late = now + rng.between(300, 8'000) * kMillisecond;
      link->down.stalled_until = late;
      link->down.last = std::max(link->down.last, late);
      world_.timeline.after(rng.between(0, 2'000) * kMillisecond, [link] {
        if (link->agent_open && link->machine->agent().incarnation() == link->agent_incarnation)
          link->machine->agent().link_closed(link);
      });
      tell_controller(link, late - now + delay());
      return;
    }
  }
}

void Network::stall(Machine& machine, Time until) {
  const LinkPtr link = newest(machine);
  if (link == nullptr) return;
  world_.coverage.hit(Fault::Delay);
  if (!world_.rng.one_in(3)) link->up.stalled_until = until;
  if (!world_.rng.one_in(3)) link->down.stalled_until = until;
}

void Network::partition(Machine& machine, Time until) {
  world_.coverage.hit(Fault::Partition);
  cut_off_[machine.name()] = until;
  const LinkPtr link = newest(machine);
  if (link == nullptr) return;
  if (world_.rng.percent(50)) {
    // Silence: both ends find out by their own keep-alive, or the cut is over before that, and only
    // time was lost.
    link->up.stalled_until = link->down.stalled_until = until;
    if (until - world_.timeline.now() < 10 * kSecond) return;
  } else {
    link->up.lost_from = link->down.lost_from = world_.timeline.now();
  }
  tell_agent(link, world_.rng.between(0, 15) * kSecond);
  tell_controller(link, world_.rng.between(0, 15) * kSecond);
}

void Network::heal() {
  cut_off_.clear();
  for (auto& [node, link] : newest_) {
    link->up.stalled_until = std::min(link->up.stalled_until, world_.timeline.now());
    link->down.stalled_until = std::min(link->down.stalled_until, world_.timeline.now());
  }
}

}  // namespace muster::sim

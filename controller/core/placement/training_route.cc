#include "controller/core/placement/training_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "common/engine/ranktable/words.h"

namespace muster::core {
namespace {

using ranktable::Address;

// The number of leading bits that both share.
unsigned common_bits(const Address& a, const Address& b) {
  unsigned bits = 0;
  const std::size_t bytes = a.v6 ? 16 : 4;
  for (std::size_t at = 0; at < bytes; ++at, bits += 8) {
    const auto differ = static_cast<unsigned char>(a.bytes[at] ^ b.bytes[at]);
    if (differ != 0) return bits + static_cast<unsigned>(std::countl_zero(differ));
  }
  return bits;
}

}  // namespace

struct TrainingRoutes::Place {
  std::string text, interface;
  std::optional<Address> address;
  bool own = false;  // Inventory.address
};

struct TrainingRoutes::Way {
  // No address: use the node's training address and the interface that has it.
  std::string address, interface;
};

struct TrainingRoutes::View {
  struct Own {
    Address address;
    const std::string* text;
    const std::string* interface;
  };
  struct Route {
    Address destination;
    std::uint32_t bits;
    const v1::NetworkRoute* reported;
  };
  std::vector<Own> addresses;
  std::vector<Route> routes;
  std::optional<Address> training;
  std::string_view training_interface;

  explicit View(const NodeRecord& node)
      : training(ranktable::parse_address(node.inventory.address())) {
    for (const v1::NetworkInterface& one : node.inventory.interfaces()) {
      for (const std::string& text : one.addresses()) {
        if (const auto address = ranktable::parse_address(text))
          addresses.push_back({.address = *address, .text = &text, .interface = &one.name()});
      }
    }
    for (const v1::NetworkRoute& one : node.inventory.routes()) {
      const std::string_view text = one.destination();
      const std::size_t slash = text.find('/');
      if (slash == std::string_view::npos) continue;
      const auto destination = ranktable::parse_address(text.substr(0, slash));
      const auto bits = ranktable::parse_number(text.substr(slash + 1), 128);
      if (destination && bits && *bits <= (destination->v6 ? 128U : 32U))
        routes.push_back({.destination = *destination, .bits = *bits, .reported = &one});
    }
    if (const Own* own = training ? having(*training) : nullptr)
      training_interface = *own->interface;
  }

  [[nodiscard]] const Own* having(const Address& address) const {
    const auto found = std::ranges::find(addresses, address, &Own::address);
    return found == addresses.end() ? nullptr : &*found;
  }

  [[nodiscard]] const Route* towards(const Address& to) const {
    const Route* best = nullptr;
    for (const Route& one : routes) {
      if (one.destination.v6 != to.v6 || common_bits(one.destination, to) < one.bits) continue;
      if (best == nullptr || goes_before(one, *best)) best = &one;
    }
    return best;
  }
  // Of equal routes the kernel takes the one that was made first, which it does not report. The
  // training address belongs to the route that the kernel took.
  [[nodiscard]] bool goes_before(const Route& one, const Route& other) const {
    if (one.bits != other.bits) return one.bits > other.bits;
    if (one.reported->metric() != other.reported->metric())
      return one.reported->metric() < other.reported->metric();
    return one.reported->interface() == training_interface &&
           other.reported->interface() != training_interface;
  }

  // The source address of packets to `to` by this route.
  [[nodiscard]] std::optional<Way> by(const Route& route, const Address& to) const {
    if (const std::string& source = route.reported->source(); !source.empty()) {
      const auto address = ranktable::parse_address(source);
      if (!address || address->v6 != to.v6) return std::nullopt;
      const auto is_it = [&](const Own& one) {
        return one.address == *address && *one.interface == route.reported->interface();
      };
      if (std::ranges::any_of(addresses, is_it))
        return Way{.address = source, .interface = route.reported->interface()};
      const Own* elsewhere = having(*address);
      return Way{.address = source,
                 .interface = elsewhere == nullptr ? std::string() : *elsewhere->interface};
    }
    const Own* best = nullptr;
    unsigned best_bits = 0;
    for (const Own& one : addresses) {
      if (*one.interface != route.reported->interface() || one.address.v6 != to.v6) continue;
      // Behind a gateway, the destination's network is no network of this node, so common bits mean
      // nothing.
      const unsigned bits =
          route.reported->connected() ? std::min(common_bits(one.address, to), route.bits) : 0;
      const bool preferred = best == nullptr || bits > best_bits ||
                             (bits == best_bits && training && one.address == *training);
      if (preferred) best = &one, best_bits = bits;
    }
    if (best == nullptr) return std::nullopt;
    return Way{.address = *best->text, .interface = *best->interface};
  }
};

TrainingRoutes::TrainingRoutes(const Ledger& ledger, const v1::JobSpec& spec)
    : ledger_(ledger),
      matter_(spec.resources().nodes() > 1 &&
              (spec.network().interface().empty() || spec.network().interface() == "auto")) {}
TrainingRoutes::~TrainingRoutes() = default;

const TrainingRoutes::View& TrainingRoutes::view(const NodeRecord& node) {
  std::unique_ptr<View>& view = views_[&node];
  if (view == nullptr) view = std::make_unique<View>(node);
  return *view;
}

TrainingRoutes::Place TrainingRoutes::own_place(const NodeRecord& first) {
  return {.text = first.inventory.address(),
          .interface = {},
          .address = ranktable::parse_address(first.inventory.address()),
          .own = true};
}

std::optional<TrainingRoutes::Way> TrainingRoutes::way(const NodeRecord& node,
                                                       const NodeRecord& first,
                                                       const Place& place) {
  const std::optional<Way> as_it_is = place.own ? std::optional(Way()) : std::nullopt;
  if (&node == &first)
    return place.own ? Way() : Way{.address = place.text, .interface = place.interface};
  const bool given = node.inventory.address_given();
  if (place.own && (given || node.inventory.routes().empty() || !place.address ||
                    ranktable::is_loopback(*place.address)))
    return as_it_is;
  // A packet to an address that the node itself has never leaves the node. Either both are on the
  // same host, or many hosts have that address (a bridge of containers).
  const View& its = view(node);
  const View::Own* same = its.having(*place.address);
  const bool one_host = node.inventory.address() == first.inventory.address();
  if (one_host && !given)
    return Way{.address = place.text,
               .interface = same == nullptr ? std::string() : *same->interface};
  if (same != nullptr)
    return place.own ? std::optional(Way{.address = place.text, .interface = *same->interface})
                     : std::nullopt;
  const View::Route* route = its.towards(*place.address);
  const bool straight = route != nullptr && route->reported->connected() && route->bits != 0;
  // A longer route may be among those that the node does not report.
  if (!straight && node.inventory.routes_cut()) return as_it_is;
  if (route == nullptr || (!place.own && !straight)) return std::nullopt;
  if (given) return Way();
  if (auto found = its.by(*route, *place.address)) return found;
  return as_it_is;
}

std::vector<TrainingRoutes::Place> TrainingRoutes::others(const NodeRecord& first) {
  std::vector<Place> places;
  if (first.inventory.address_given() || first.inventory.routes().empty()) return places;
  const auto own = ranktable::parse_address(first.inventory.address());
  for (const View::Own& one : view(first).addresses) {
    if (ranktable::is_loopback(one.address) || (own && one.address == *own)) continue;
    places.push_back({.text = *one.text, .interface = *one.interface, .address = one.address});
  }
  std::ranges::stable_partition(
      places, [&](const Place& place) { return own && place.address->v6 == own->v6; });
  return places;
}

bool TrainingRoutes::settle_at(const Place& place, const NodeRecord& first,
                               std::vector<PlacedNode>& nodes) {
  std::vector<Way> ways;
  for (const PlacedNode& node : nodes) {
    auto found = way(ledger_.nodes.at(node.node), first, place);
    if (!found) return false;
    ways.push_back(*std::move(found));
  }
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    if (ways[at].address.empty()) continue;
    nodes[at].address = std::move(ways[at].address);
    nodes[at].interface = std::move(ways[at].interface);
  }
  return true;
}

bool TrainingRoutes::settle(std::vector<PlacedNode>& nodes) {
  if (!matter_ || nodes.size() < 2) return true;
  const NodeRecord& first = ledger_.nodes.at(nodes.front().node);
  if (settle_at(own_place(first), first, nodes)) return true;
  return std::ranges::any_of(others(first),
                             [&](const Place& place) { return settle_at(place, first, nodes); });
}

TrainingRoutes::ReachableSet TrainingRoutes::reachable(
    const std::vector<const NodeRecord*>& candidates, std::size_t first, std::size_t enough,
    Search search, const std::function<bool(std::size_t)>& counts) {
  const NodeRecord& node = *candidates[first];
  const auto around = [&](const Place& place) {
    ReachableSet reachable{.address = place.text, .in = std::vector<bool>(candidates.size())};
    for (std::size_t at = 0;
         at < candidates.size() && (search == Search::All || reachable.size < enough); ++at) {
      reachable.in[at] = at == first || (counts(at) && way(*candidates[at], node, place));
      reachable.size += reachable.in[at] ? 1 : 0;
    }
    return reachable;
  };
  ReachableSet best = around(own_place(node));
  if (best.size >= enough) return best;
  for (const Place& place : others(node)) {
    if (ReachableSet other = around(place); other.size > best.size) best = std::move(other);
    if (best.size >= enough) break;
  }
  return best;
}

std::string no_route_text(const TrainingRoutes::ReachableSet& reachable, const NodeRecord& first) {
  return fmt::format(
      "has no route to {}, {} of '{}'", ranktable::shown(reachable.address),
      reachable.address == first.inventory.address() ? "the training address" : "an address",
      first.name.str());
}

}  // namespace muster::core

// What it means for a transfer that rclone has failed. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::agent {

enum class Verdict : std::uint8_t {
  TryAgain,   // the network, or an end that is busy
  Refused,    // by the store, which would do so again, to each node
  Absent,     // there is nothing of this name
  Directory,  // of some ends, for an object that was asked for by the name of a directory
  DiskFull,   // the node's
  NodeFault,  // another node may do better
};

// `message`: what rclone says, without the name of an object (RunFailure::message). `local`: the
// directory on the node; empty: there is none. `has_own_ca`: all nodes trust the same CA.
Verdict verdict_of(std::string_view message, std::string_view local, bool has_own_ca);

}  // namespace muster::agent

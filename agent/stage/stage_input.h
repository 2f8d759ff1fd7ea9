// Brings one input of a job to this node: from its store into the cache, and from there into the
// job's own tree. A plain function, on the thread of a start; it blocks for as long as that takes.
//
// What is at the URL is listed before and, if anything was fetched, after: a difference fails the
// start with the object's name. Starts on this node that want the same URL take turns, so that it
// is fetched once.
//
// Of a checkpoint whose job has uploaded it with lists of its sums, nothing else is fetched, and
// each file must be what they say.
//
// If the order names what an earlier attempt of the job had, and the node remembers that
// (kept_contents.h), the job gets it again. The store is then asked for what the node does not have
// of it, and for nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "agent/launch/launch_record.h"
#include "agent/stage/input_fetch.h"
#include "common/base/error.h"
#include "muster/v1/agent_service.pb.h"

namespace muster::agent {

// How far it is, for people.
struct StageNews {
  std::uint64_t objects = 0, bytes = 0;  // in all
  std::uint64_t missing = 0, done = 0;   // bytes to fetch, and that have come
};

struct StageCalls {
  FetchCalls fetch;
  std::function<void(const std::string&)> at;  // "waiting for ...": what it does now
  std::function<void(const StageNews&)> news;
};

// `key`: what the store's secret has. `owner`: whose tree it is; nullptr: the agent's own user's.
// `min_free_bytes` stay free on the disk.
//
// Returns what the job has now.
//
// Errors: NotAllowed: the store refuses, or has nothing there. Unreachable: it says nothing for
// `away_most`. Conflict: what is there has changed meanwhile. DataLoss: something is not what its
// list says. ResourceExhausted: the disk has too
// little room, with the numbers. InvalidArgument: it is nothing that can be an input. Io: the
// node's trouble.
Result<v1::InputState> stage_input(const v1::StagedInput& input, const std::string& job,
                                   const std::string& key, const UserEntry* owner,
                                   std::uint64_t min_free_bytes, const StageCalls& calls);

}  // namespace muster::agent

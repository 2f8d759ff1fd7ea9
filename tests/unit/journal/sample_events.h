// One event of every kind, with every field set to a value that is not its default; and histories
// made of such events. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/journal/journal.h"

namespace muster::journal {

std::vector<core::Event> one_of_every_kind();

// Events as a small cluster would make them; their times increase from one second.
core::Event started(std::uint64_t epoch);
core::Event end_lost(std::uint64_t generation);
core::Event registered(const std::string& node, const std::string& boot);
core::Event submitted(const std::string& job, const std::string& name);
core::Event exited(const std::string& job, std::uint32_t rank, std::int32_t code);
core::Event ended(const std::string& job);
core::Event archived(const std::string& job, const std::string& name);
core::Event tombstone_dropped(const std::string& job);

// "3 job_submitted j1": index, kind and, in hexadecimal, all bytes of the record. Equal texts mean
// equal rows.
std::string text_of(const Row& row);

}  // namespace muster::journal

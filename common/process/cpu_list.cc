#include "common/process/cpu_list.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

namespace muster::process {
namespace {

constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);
using CpuMask = std::array<unsigned long, kCpusMost / kWordBits>;

// Removes a number from the front of `text` and returns it.
std::optional<unsigned> take_cpu(std::string_view& text) {
  unsigned cpu = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc() || cpu >= kCpusMost) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return cpu;
}

}  // namespace

std::optional<CpuList> parse_cpu_list(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  CpuList cpus;
  while (!text.empty()) {
    const auto first = take_cpu(text);
    if (!first) return std::nullopt;
    unsigned last = *first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      const auto end = take_cpu(text);
      if (!end || *end < *first) return std::nullopt;
      last = *end;
    }
    if (!cpus.empty() && *first <= cpus.back()) return std::nullopt;
    for (unsigned cpu = *first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (text.empty()) break;
    if (!text.starts_with(',') || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return cpus;
}

std::string cpu_list_text(const CpuList& cpus) {
  std::string text;
  for (std::size_t at = 0; at < cpus.size();) {
    std::size_t last = at;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[at]);
    if (last > at) text += "-" + std::to_string(cpus[last]);
    at = last + 1;
  }
  return text;
}

Result<CpuList> allowed_cpus() {
  CpuMask mask{};
  if (::sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.data())) != 0)
    return fail_errno("asking on which processors this process may run", errno);
  CpuList cpus;
  for (unsigned cpu = 0; cpu < kCpusMost; ++cpu)
    if ((mask[cpu / kWordBits] >> (cpu % kWordBits) & 1U) != 0) cpus.push_back(cpu);
  return cpus;
}

int run_on_cpus(const CpuList& cpus) {
  CpuMask mask{};
  for (const unsigned cpu : cpus)
    if (cpu < kCpusMost) mask[cpu / kWordBits] |= 1UL << (cpu % kWordBits);
  return ::sched_setaffinity(0, sizeof mask, reinterpret_cast<const cpu_set_t*>(mask.data())) == 0
             ? 0
             : errno;
}

}  // namespace muster::process

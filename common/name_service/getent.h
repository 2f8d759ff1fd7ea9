// Asks the host's own getent(1) for an entry of a table. It honours the host's nsswitch.conf:
// files, LDAP, sssd, DNS. muster's programs are static and cannot do that themselves, because the C
// library's name service loads plug-ins of the host's C library (docs/decisions/0017).
//
// Stateless. Any thread; it starts a program and blocks until that ends, at most Tables::most and a
// moment. So it never runs on a loop.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "common/base/error.h"

namespace muster::name_service {

// Where names are looked up. The defaults are the host's own; tests set other ones.
struct Tables {
  std::string path = "/usr/bin:/bin:/usr/sbin:/sbin";  // directories that may have getent
  std::chrono::milliseconds most{5000};
  // what is read where no getent knows the table
  std::string passwd = "/etc/passwd", group = "/etc/group", hosts = "/etc/hosts";
};

inline constexpr std::size_t kTableBytesMost = 16U << 20U;

// Whether getent may be asked for this name. No entry has an empty name, one that begins with '-'
// (an option of getent), or one with ':' or a control character.
bool may_be_name(const std::string& name);

// Returns what `getent TABLE KEY` prints. An empty result means that the host has no getent, or one
// that does not know the table (musl's). Errors are reasons without a context: NotFound when there
// is no such entry, Unreachable when getent gave no answer.
Result<std::optional<std::string>> ask_getent(const Tables& tables, const std::string& table,
                                              const std::string& key);

// Returns a whole file of the host. A file that does not exist is empty.
Result<std::string> read_table(const std::string& path);

}  // namespace muster::name_service

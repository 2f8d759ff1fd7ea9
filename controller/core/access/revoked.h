// Which certificates count no more, as a value that a check of a call can keep. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "controller/core/model/access_records.h"

namespace muster::core {

class Revoked {
 public:
  Revoked() = default;
  explicit Revoked(const AccessRecords& records);

  // Why a certificate does not count: of this subject, with this key, issued then. Its own time is
  // not checked. Nothing: it counts.
  [[nodiscard]] std::optional<Error> refuse(const Subject& subject, const std::string& key,
                                            WallTime issued) const;

 private:
  struct All {
    WallTime before{};
    std::string why;
    std::set<std::string> registered_since;  // keys
  };
  std::map<std::pair<Subject, std::string>, std::string> keys_;  // by key: why
  std::map<Subject, All> all_;
};

}  // namespace muster::core

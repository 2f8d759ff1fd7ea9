#include "tests/support/checkout.h"

namespace muster::test {

std::string checkout(std::string_view name) {
  std::string path = MUSTER_SOURCE_DIR;
  if (!name.empty()) path.append("/").append(name);
  return path;
}

}  // namespace muster::test

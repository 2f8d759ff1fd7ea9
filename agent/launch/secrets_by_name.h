// Values of secrets that the controller gave for an attempt. A plain value.
#pragma once

#include <map>
#include <string>

namespace muster::agent {

// By SecretValue.secret: the name that an order has.
using SecretsByName = std::map<std::string, std::string>;

}  // namespace muster::agent

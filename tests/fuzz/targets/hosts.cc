// hosts.yaml: YAML bytes -> HostsFile. What it accepts becomes words of command lines, here and on
// hosts, so none of them may be an option of another program.
#include <set>
#include <string>

#include "common/base/controls.h"
#include "common/base/names.h"
#include "common/base/utf8.h"
#include "deploy/hosts/hosts.h"
#include "deploy/hosts/ranges.h"
#include "deploy/hosts/values.h"
#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

void check_word(const std::string& word) {
  require(!word.starts_with('-'), "a value is no option", word);
  require(is_utf8(word) && !has_controls(word), "a value is a printable text");
}

void check_login(const hosts::Login& login) {
  require(!login.host.empty(), "a host has an address");
  for (const std::string* word :
       {&login.host, &login.user, &login.identity, &login.jump, &login.known_hosts, &login.prefix})
    check_word(*word);
  require(!hosts::has_range(login.host), "a range was expanded", login.host);
  require(login.prefix.empty() || login.prefix.starts_with('/'), "a prefix is absolute");
}

}  // namespace

void hosts(std::string_view input) {
  const hosts::ReadHosts read = hosts::read_hosts(input);
  require(read.problems.size() <= 101, "problems are bounded");
  for (const spec::Problem& problem : read.problems)
    require(is_message(problem.message), "a problem is a sentence", problem.message);
  if (!read.problems.empty()) {
    require(is_message(spec::format(read.problems, "hosts.yaml")), "problems can be printed");
    return;
  }
  const hosts::HostsFile& file = read.file;
  require(!file.agents.empty() && file.agents.size() <= hosts::kAgentsMost, "agents are bounded");
  check_login(file.controller.login);
  require(hosts::split_address(file.controller.address).port != 0, "agents get a port");
  std::set<std::string> names;
  for (const hosts::Agent& agent : file.agents) {
    require(is_node_name(agent.name) && names.insert(agent.name).second, "names are names");
    check_login(agent.login);
    for (const std::string& word : agent.options)
      require(word.starts_with("--") && word.find('=') != std::string::npos,
              "an option is --FLAG=VALUE", word);
  }
}

}  // namespace muster::fuzz

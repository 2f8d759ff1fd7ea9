#include "deploy/ssh/openssh_args.h"

#include <algorithm>
#include <chrono>

#include "common/text/shell_word.h"

namespace muster::ssh {
namespace {

// `ssh` expands % in these values.
std::string percent_kept(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '%' ? "%%" : std::string(1, c);
  return out;
}

class Args {
 public:
  void option(const std::string& setting) { words.insert(words.end(), {"-o", setting}); }
  std::vector<std::string> words;
};

void add_hop(Args& args, const OpenSshPlan& plan, std::size_t at) {
  const Hop& hop = plan.route.hops[at];
  if (!plan.ssh_config.empty()) args.words.insert(args.words.end(), {"-F", plan.ssh_config});
  args.option(plan.has_answers ? "BatchMode=no" : "BatchMode=yes");
  if (plan.has_answers) {
    args.option("NumberOfPasswordPrompts=1");
    args.option("KbdInteractiveAuthentication=no");  // askpass.h says why
    // `ssh` would send an empty one.
    if (at >= plan.passwords.size() || !plan.passwords[at])
      args.option("PasswordAuthentication=no");
  }
  args.option(std::string("StrictHostKeyChecking=") + (plan.accept_new ? "accept-new" : "yes"));
  std::string files;
  for (const std::string& file : hop.known_hosts)
    files += (files.empty() ? "\"" : " \"") + percent_kept(file) + "\"";
  args.option("UserKnownHostsFile=" + (files.empty() ? "/dev/null" : files));
  for (const char* setting :
       {"GlobalKnownHostsFile=/dev/null", "UpdateHostKeys=no", "VerifyHostKeyDNS=no",
        "CheckHostIP=no", "NoHostAuthenticationForLocalhost=no", "ForwardAgent=no", "ForwardX11=no",
        "PermitLocalCommand=no", "RemoteCommand=none", "RequestTTY=no"})
    args.option(setting);
  args.option("ServerAliveInterval=" + std::to_string(hop.alive.interval.count()));
  args.option("ServerAliveCountMax=" + std::to_string(hop.alive.count));
  // What ssh_config says of the host is in host_name; the target's own address is only there.
  if (hop.host_name != hop.alias) args.option("HostName=" + percent_kept(hop.host_name));
  for (const std::string& file : hop.identity_files) args.option("IdentityFile=\"" + file + "\"");
  args.words.insert(args.words.end(), {"-p", std::to_string(hop.port), "-l", hop.user});
}

std::string proxy_command(const OpenSshPlan& plan, std::size_t at);

void add_way(Args& args, const OpenSshPlan& plan, std::size_t at) {
  if (at > 0)
    args.option("ProxyCommand=" + proxy_command(plan, at - 1));
  else if (plan.route.hops[at].proxy_command.empty())
    args.option("ProxyJump=none");
}

// Connects to hop `at` and from there to the next one.
std::string proxy_command(const OpenSshPlan& plan, std::size_t at) {
  Args args;
  args.words = {*plan.route.program, "-E", plan.log(at)};
  add_hop(args, plan, at);
  for (const char* setting : {"LogLevel=DEBUG1", "ControlMaster=no", "ControlPath=none"})
    args.option(setting);
  add_way(args, plan, at);
  const Hop& next = plan.route.hops[at + 1];
  args.words.insert(args.words.end(),
                    {"-W", "[" + next.host_name + "]:" + std::to_string(next.port), "--",
                     plan.route.hops[at].alias});
  std::string text;  // `ssh` puts "exec" before it
  for (const std::string& word : args.words) text += (text.empty() ? "" : " ") + shell_word(word);
  return percent_kept(text);
}

std::vector<std::string> with_target(Args args, const OpenSshPlan& plan) {
  args.words.insert(args.words.end(), {"--", plan.route.hops.back().alias});
  return std::move(args.words);
}

}  // namespace

std::vector<std::string> master_args(const OpenSshPlan& plan) {
  const std::size_t target = plan.route.hops.size() - 1;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(plan.connect_time).count();
  Args args;
  args.words = {"-f", "-N", "-M", "-S", plan.socket(), "-E", plan.log(target)};
  add_hop(args, plan, target);
  args.option("LogLevel=DEBUG1");
  args.option("ClearAllForwardings=yes");
  // What a person has typed cannot be given again, and another host may wait for a person.
  args.option(plan.has_answers ? "ControlPersist=3600" : "ControlPersist=120");
  args.option("ConnectTimeout=" + std::to_string(std::max<std::int64_t>(seconds, 1)));
  add_way(args, plan, target);
  return with_target(std::move(args), plan);
}

std::vector<std::string> run_args(const OpenSshPlan& plan, const std::string& command) {
  const std::size_t target = plan.route.hops.size() - 1;
  Args args;
  args.words = {"-T", "-S", plan.socket(), "-E", plan.run_log()};
  add_hop(args, plan, target);
  args.option("LogLevel=ERROR");
  args.option("ClearAllForwardings=yes");
  args.option("ControlMaster=no");
  add_way(args, plan, target);
  auto words = with_target(std::move(args), plan);
  words.push_back(command);
  return words;
}

std::vector<std::string> control_args(const OpenSshPlan& plan, const std::string& question) {
  Args args;
  if (!plan.ssh_config.empty()) args.words = {"-F", plan.ssh_config};
  args.words.insert(args.words.end(), {"-S", plan.socket(), "-O", question});
  return with_target(std::move(args), plan);
}

}  // namespace muster::ssh

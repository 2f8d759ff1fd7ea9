#include "client/commands/node/node_facts.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/commands/call/call.h"
#include "client/render/node_text.h"
#include "common/base/label.h"
#include "common/base/time.h"
#include "common/pki/credentials.h"
#include "common/proto/proto_time.h"

namespace muster::client {
namespace {

struct DrainOptions {
  std::string node, deadline, why;
};
struct RenameOptions {
  std::string node, new_name, file, lifetime = "24h";
};
struct LabelOptions {
  std::string node;
  std::vector<std::string> labels;
};

// "n1 draining": the node and its new state.
void print_state(const Context& context, const v1::Node& node) {
  fmt::print("{} {}\n", render::printable(node.name()),
             context.out.paint(render::node_state_tint(node), render::node_state_text(node)));
}

Result<int> drain(const Context& context, const DrainOptions& options) {
  v1::DrainNodeRequest request;
  request.set_name(options.node);
  request.set_why(options.why);
  if (!options.deadline.empty()) {
    const auto deadline = parse_timeout(options.deadline, "--deadline");
    if (!deadline) return fail(Error(deadline.error()));
    *request.mutable_deadline() = to_proto(*deadline);
  }
  const auto answer = ask(context, &Nodes::DrainNode, request);
  if (!answer) return fail(Error(answer.error()));
  print_state(context, answer->node());
  const std::string then =
      render::drain_deadline_text(answer->node().drain(), system_clock().now().wall);
  if (!then.empty())
    fmt::print("{}", render::field_line(context.out, "deadline", then));
  else if (!answer->node().drain().drained())
    fmt::print("{}", render::field_line(
                         context.out, "deadline",
                         "none: what runs there goes on until it ends; --deadline 30m bounds it"));
  return kOk;
}

Result<int> undrain(const Context& context, const std::string& node) {
  v1::UndrainNodeRequest request;
  request.set_name(node);
  const auto answer = ask(context, &Nodes::UndrainNode, request);
  if (!answer) return fail(Error(answer.error()));
  print_state(context, answer->node());
  return kOk;
}

// "rack=r1" sets a label, "rack-" removes one.
Result<int> label(const Context& context, const LabelOptions& options) {
  v1::LabelNodeRequest request;
  request.set_name(options.node);
  std::set<std::string> keys;
  const auto once = [&](const std::string& key) -> Result<void> {
    if (keys.insert(key).second) return {};
    return fail(ErrorCode::InvalidArgument,
                fmt::format("labelling node '{}': the label '{}' is there twice; set it or remove "
                            "it, once",
                            options.node, key));
  };
  for (const std::string& word : options.labels) {
    if (!word.contains('=') && word.ends_with('-')) {
      const std::string key = word.substr(0, word.size() - 1);
      if (auto sound = check_label_key(key); !sound) return fail(std::move(sound.error()));
      if (auto first = once(key); !first) return fail(std::move(first.error()));
      request.add_remove(key);
      continue;
    }
    auto sound = parse_label(word);
    if (!sound) return fail(std::move(sound.error()));
    if (auto first = once(sound->first); !first) return fail(std::move(first.error()));
    (*request.mutable_set())[sound->first] = sound->second;
  }
  const auto answer = ask(context, &Nodes::LabelNode, request);
  if (!answer) return fail(Error(answer.error()));
  fmt::print("{} {}\n", render::printable(answer->node().name()),
             render::labels_text(answer->node()));
  return kOk;
}

Result<int> remove(const Context& context, const std::string& node) {
  v1::RemoveNodeRequest request;
  request.set_name(node);
  const auto answer = ask(context, &Nodes::RemoveNode, request);
  if (!answer) return fail(Error(answer.error()));
  fmt::print("{} removed\n", render::printable(node));
  return kOk;
}

// The next step is on the machine itself, and nobody can do it from here.
Result<int> rename(const Context& context, const RenameOptions& options,
                   const MakeNodeToken& make_token) {
  if (!options.file.empty()) {
    if (auto creatable = pki::check_creatable(options.file, "the token"); !creatable)
      return fail(std::move(creatable.error()));
  }
  const auto lifetime = parse_timeout(options.lifetime, "--lifetime");
  if (!lifetime) return fail(Error(lifetime.error()));
  v1::RenameNodeRequest request;
  request.set_name(options.node);
  request.set_new_name(options.new_name);
  const auto answer = ask(context, &Nodes::RenameNode, request);
  if (!answer) return fail(Error(answer.error()));
  const std::string name = render::printable(answer->node().name());
  fmt::print("{} renamed to {}\n", render::printable(options.node), name);
  fmt::print("{}",
             render::field_line(context.out, "next",
                                fmt::format("start the agent there with --name {0} (name: {0} "
                                            "in its agent.yaml)",
                                            name)));
  if (options.file.empty()) {
    fmt::print("{}", render::field_line(
                         context.out, "then",
                         fmt::format("if it calls over TCP: its certificate counts no more; "
                                     "`muster node replace {} -o FILE` makes a token, with which "
                                     "it joins (--join FILE)",
                                     name)));
    return kOk;
  }
  auto made = make_token(context, options.new_name, options.file, options.lifetime);
  if (made) return made;
  return fail(std::move(made.error())
                  .in(fmt::format("the node is renamed; it has no token yet (`muster node replace "
                                  "{} -o FILE` makes one)",
                                  name)));
}

CLI::App* add_verb(CLI::App& group, const std::string& verb, const std::string& help,
                   std::string& node) {
  CLI::App* command = group.add_subcommand(verb, help);
  command->add_option("node", node, "node name")->required()->type_name("");
  return command;
}

}  // namespace

void add_node_facts(CLI::App& node, Context& context, int& exit, MakeNodeToken make_token) {
  const auto draining = std::make_shared<DrainOptions>();
  CLI::App* command = add_verb(node, "drain",
                               "Place nothing new on this node; what runs there may end, or is "
                               "moved at the deadline",
                               draining->node);
  command
      ->add_option("--deadline", draining->deadline,
                   "from now: what still runs there then is stopped, and goes on on other nodes "
                   "from its last checkpoint; 0s: at once")
      ->type_name("DURATION");
  command->add_option("--why", draining->why, "kept with the node, and shown with it")
      ->type_name("TEXT");
  command->footer(
      "It lasts until 'muster node undrain', also over restarts of the node and the controller.\n"
      "A second drain of a node changes what it names: a new deadline, or a new reason.\n"
      "'muster node ls' shows 'draining', and 'drained' when nothing runs there any more: then the "
      "node may be switched off.\n"
      "A job that is stopped by the deadline loses no restart of its recovery.max_restarts. It "
      "waits if no other node can take it, and 'muster why' says so.");
  on_chosen(*command, context, exit,
            [draining](const Context& chosen) { return drain(chosen, *draining); });

  const auto undrained = std::make_shared<std::string>();
  command = add_verb(node, "undrain", "End a drain: the node takes new work again", *undrained);
  on_chosen(*command, context, exit,
            [undrained](const Context& chosen) { return undrain(chosen, *undrained); });

  const auto labelled = std::make_shared<LabelOptions>();
  command = add_verb(node, "label", "Set labels of a node (KEY=VALUE), or remove them (KEY-)",
                     labelled->node);
  command->add_option("labels", labelled->labels, "rack=r12 sets a label, rack- removes it")
      ->required()
      ->type_name("");
  command->footer(
      "A job asks for nodes with a label by 'resources.select'. What runs already is not moved.\n"
      "A label that is set here goes before one of the agent's --label with the same key.");
  on_chosen(*command, context, exit,
            [labelled](const Context& chosen) { return label(chosen, *labelled); });

  const auto removed = std::make_shared<std::string>();
  command = add_verb(
      node, "rm",
      "Remove a node that is gone for good. A machine of its name joins by 'muster node replace'",
      *removed);
  command->footer(
      "Its agent must not be connected: stop it first. A node on which something may still run is "
      "removed only after 'muster node declare-dead' (exit 12).\n"
      "Its drain and its labels go with it. A machine that connects under this name later is a new "
      "node.");
  on_chosen(*command, context, exit,
            [removed](const Context& chosen) { return remove(chosen, *removed); });

  const auto renamed = std::make_shared<RenameOptions>();
  command = add_verb(node, "rename", "Give a node another name; its labels and its drain go along",
                     renamed->node);
  command->add_option("new", renamed->new_name, "the new name, which no node has")
      ->required()
      ->type_name("");
  command
      ->add_option("-o,--output", renamed->file,
                   "also make a join token for the new name, into this file of mode 0600; it must "
                   "not exist. For a node that calls over TCP")
      ->type_name("FILE");
  command->add_option("--lifetime", renamed->lifetime, "how long the token counts, 1h to 30d")
      ->type_name("TIME")
      ->capture_default_str();
  command->footer(
      "Stop its agent first: a connected node is not renamed, and neither is one on which "
      "something "
      "of a job may still be (exit 12).\n"
      "Then start the agent with --name NEW, on the same state directory. Certificates of the old "
      "name count no more: over TCP the node joins again, with the token. Finished jobs keep the "
      "old name, and so does what they have saved with checkpoint.storage: local.\n"
      "example:  muster node rename gpu-1 gpu-r3-17 -o gpu-r3-17.token");
  on_chosen(*command, context, exit,
            [renamed, make_token = std::move(make_token)](const Context& chosen) {
              return rename(chosen, *renamed, make_token);
            });
}

}  // namespace muster::client

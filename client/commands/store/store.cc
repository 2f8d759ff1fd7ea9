// muster store add | ls | check | rm: where object storage and other stores are, by the URLs of
// data.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "client/commands/call/call.h"
#include "client/commands/call/commands.h"
#include "client/commands/call/secret_value.h"
#include "client/render/json_text.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "common/io/file.h"
#include "common/proto/proto_time.h"
#include "common/store/profile.h"

namespace muster::client {
namespace {

constexpr std::size_t kFileMost = 1 << 20;  // the controller's own bounds are below it

struct StoreOptions {
  std::string name, owner, ca_file, host_key_file, key_file;
  v1::StoreProfile profile;
  bool shared = false, all = false;
};

// The secret of a store whose key comes with it.
std::string secret_of(const std::string& store) { return "store." + store; }

Result<void> read_files(const StoreOptions& options, v1::StoreProfile& profile) {
  if (!options.ca_file.empty()) {
    auto ca = io::read_file(options.ca_file, kFileMost);
    if (!ca) return fail(std::move(ca.error()));
    profile.set_ca(*std::move(ca));
  }
  if (options.host_key_file.empty()) return {};
  auto line = io::read_file(options.host_key_file, kFileMost);
  if (!line) return fail(std::move(line.error()));
  profile.set_host_key(*std::move(line));
  return {};
}

// The key is a secret before the store names it: a store without its key would be of no use.
Result<void> set_key(const Context& context, const StoreOptions& options) {
  auto key = read_secret_value({.file = options.key_file,
                                .what = fmt::format("key or password of '{}' for store '{}'",
                                                    options.profile.user(), options.name)});
  if (!key) return fail(std::move(key.error()));
  v1::SetSecretRequest request;
  request.set_name(secret_of(options.name));
  request.set_value(*std::move(key));
  request.set_shared(options.shared);
  const auto answer = ask(context, &Secrets::SetSecret, request);
  if (!answer) return fail(Error(answer.error()));
  return {};
}

Result<int> set_store(const Context& context, const StoreOptions& options) {
  v1::SetStoreRequest request;
  request.set_name(options.name);
  request.set_shared(options.shared);
  v1::StoreProfile& profile = *request.mutable_profile();
  profile = options.profile;
  if (auto read = read_files(options, profile); !read) return fail(std::move(read.error()));
  if (!profile.user().empty() && profile.secret().empty()) {
    // A profile that is none must not change the key of the store that is there.
    profile.set_secret(secret_of(options.name));
    if (const auto sound = store::check_profile(profile); !sound)
      return fail(Error(sound.error()).in(fmt::format("setting store '{}'", options.name)));
    if (auto set = set_key(context, options); !set) return fail(std::move(set.error()));
  }
  const auto answer = ask(context, &Stores::SetStore, request);
  if (!answer) return fail(Error(answer.error()));
  fmt::print("{} set\n", render::printable(answer->store().name()));
  return kOk;
}

void print_stores(const Context& context, const v1::ListStoresResponse& answer) {
  if (answer.stores().empty()) {
    fmt::print(stderr, "there are no stores; 'muster store add NAME URL' makes one\n");
    return;
  }
  const WallTime now = system_clock().now().wall;
  render::Table table{.columns = {{"STORE", render::Align::Left, 12},
                                  {"URL", render::Align::Left, 16},
                                  {"OWNER", render::Align::Left, 12},
                                  {"SECRET", render::Align::Left, 12},
                                  {"SET", render::Align::Right},
                                  {"ENDPOINT"}},
                      .rows = {}};
  for (const v1::Store& store : answer.stores()) {
    const v1::StoreProfile& profile = store.profile();
    table.rows.push_back({store.name(), profile.url(), store.shared() ? "(shared)" : store.owner(),
                          profile.secret().empty() ? "-" : profile.secret(),
                          render::ago_text(store.set_at(), now),
                          profile.endpoint().empty() ? "-" : profile.endpoint()});
  }
  fmt::print("{}", render::to_text(table, context.out,
                                   render::is_terminal(1) ? render::terminal_width(1) : 0));
}

Result<int> list_stores(const Context& context, const std::string& output, bool all) {
  v1::ListStoresRequest request;
  request.set_all(all);
  const auto names = [](const v1::ListStoresResponse& answer) {
    std::string text;
    for (const v1::Store& store : answer.stores()) text += store.name() + "\n";
    return text;
  };
  return show_answer<v1::ListStoresResponse>(
      output, [&] { return ask(context, &Stores::ListStores, request); },
      {.names = names,
       .document =
           [](const auto& answer, render::Format format) {
             return render::document_list(answer.stores(), "Store", format);
           },
       .people = [&](const auto& answer, bool) { print_stores(context, answer); }});
}

// A bucket with many objects, or an end that is slow to say no, takes more than a usual call.
constexpr std::chrono::seconds kCheckTime(60);

Result<int> check_store(const Context& context, const v1::CheckStoreRequest& request,
                        const std::string& output) {
  int code = kOk;
  const auto shown = show_answer<v1::CheckStoreResponse>(
      output,
      [&]() -> Result<v1::CheckStoreResponse> {
        auto session = context.connect();
        if (!session) return fail(std::move(session.error()));
        auto answer = ask(*session, &Stores::CheckStore, request, nullptr, kCheckTime);
        if (answer && !answer->trouble().empty()) code = kJobFailed;
        return answer;
      },
      {.names = {},
       .document =
           [](const auto& answer, render::Format format) {
             return render::document(answer, "StoreCheck", format);
           },
       .people =
           [&](const auto& answer, bool) {
             const std::string by =
                 fmt::format("{}store '{}', seen from node '{}'", answer.shared() ? "shared " : "",
                             render::printable(answer.store()), render::printable(answer.node()));
             if (!answer.trouble().empty())
               return fmt::print("{}: {}: {}\n", by, render::printable(request.url()),
                                 render::printable(answer.trouble()));
             if (request.measure())
               return fmt::print("{}: {} object{}, {}\n", by, answer.objects(),
                                 answer.objects() == 1 ? "" : "s",
                                 render::bytes_text(answer.bytes()));
             fmt::print("{}: {}{} entries\n", by, answer.count(), answer.more() ? " or more" : "");
             for (const std::string& name : answer.names())
               fmt::print("  {}\n", render::printable(name));
             if (answer.more() || answer.count() > static_cast<std::uint64_t>(answer.names_size()))
               fmt::print("  ...\n");
           }});
  if (!shown) return shown;
  return code;
}

Result<int> remove_store(const Context& context, const StoreOptions& options) {
  v1::RemoveStoreRequest request;
  request.set_name(options.name);
  request.set_shared(options.shared);
  request.set_owner(options.owner);
  const auto answer = ask(context, &Stores::RemoveStore, request);
  if (!answer) return fail(Error(answer.error()));
  fmt::print("{} removed; its secret, if it has one, stays ('muster secret ls')\n",
             render::printable(options.name));
  return kOk;
}

// An option that becomes a field of the profile.
template <class Set>
void add_field(CLI::App& command, const std::string& option, const std::string& help,
               const char* type, Set set) {
  command.add_option_function<std::string>(option, std::move(set), help)->type_name(type);
}

void add_store_add(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand("add", "Make a store, or change it whole");
  auto options = std::make_shared<StoreOptions>();
  v1::StoreProfile* profile = &options->profile;
  command->add_option("name", options->name, "its name")->required()->type_name("NAME");
  command
      ->add_option_function<std::string>(
          "url", [profile](const std::string& value) { profile->set_url(value); },
          "what it is for, the begin of data's URLs: obs:// obs://BUCKET s3://BUCKET/DIR "
          "sftp://HOST webdav://HOST https://HOST dir://NAME")
      ->required()
      ->type_name("URL");
  add_field(
      *command, "--endpoint",
      "where it is: https://obs.cn-north-4.myhuaweicloud.com; of dir:// the path on the nodes",
      "URL", [profile](const std::string& value) { profile->set_endpoint(value); });
  add_field(*command, "--region", "as in cn-north-4", "NAME",
            [profile](const std::string& value) { profile->set_region(value); });
  command->add_flag_callback(
      "--path-style", [profile] { profile->set_path_style(true); },
      "the bucket is in the path, not in the host's name: MinIO, and most ends of one's own");
  add_field(*command, "--proxy", "http://HOST:PORT, for the nodes", "URL",
            [profile](const std::string& value) { profile->set_proxy(value); });
  command->add_option("--ca", options->ca_file, "the endpoint's own CA (PEM)")->type_name("FILE");
  add_field(*command, "--user",
            "access key ID, or the name of the user; its key is read from standard input", "ID",
            [profile](const std::string& value) { profile->set_user(value); });
  CLI::Option* key_file =
      command->add_option("--key-file", options->key_file, "read the key from this file")
          ->type_name("FILE")
          ->needs("--user");
  add_field(*command, "--secret", "the key is this secret, which is there already", "NAME",
            [profile](const std::string& value) { profile->set_secret(value); });
  key_file->excludes("--secret");
  command
      ->add_option("--host-key", options->host_key_file,
                   "of sftp: a file with what ssh-keyscan prints of the host")
      ->type_name("FILE");
  command->add_flag("--shared", options->shared, "for every user's jobs; only admins");
  command->footer(
      "The key becomes the secret store.NAME. Of obs and s3 its second line may be a session "
      "token. Give it anew at any time: 'muster secret set store.NAME'.\n"
      "example:  muster store add pangu obs:// --endpoint https://obs.cn-north-4.myhuaweicloud.com "
      "--user AKID < secret-key\n"
      "exit codes: 0 set  11 not allowed  12 another store is for this URL  13 controller "
      "unreachable  64 no profile of a store");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return set_store(chosen, *options); });
}

void add_store_check(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand(
      "check", "Let a node list what is at a URL, as a job of yours would reach it");
  auto request = std::make_shared<v1::CheckStoreRequest>();
  auto output = std::make_shared<std::string>("table");
  command
      ->add_option_function<std::string>(
          "url", [request](const std::string& value) { request->set_url(value); },
          "obs://BUCKET/DIR")
      ->required()
      ->type_name("URL");
  command
      ->add_option_function<std::string>(
          "--node", [request](const std::string& value) { request->set_node(value); },
          "this node; without it any that has rclone")
      ->type_name("NODE");
  command->add_flag_function(
      "--size", [request](std::int64_t) { request->set_measure(true); },
      "count everything below the URL, and its size");
  add_output_option(*command, *output, render::Names::No);
  command->footer(
      "exit codes: 0 it was listed  1 it was not, and the sentence says why  2 no node that could "
      "list it is there  10 no store is for this URL  13 controller unreachable");
  on_chosen(*command, context, exit, [request, output](const Context& chosen) {
    return check_store(chosen, *request, *output);
  });
}

void add_store_ls(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand("ls", "List your stores and the shared ones");
  auto options = std::make_shared<StoreOptions>();
  auto output = std::make_shared<std::string>("table");
  command->add_flag("--all", options->all, "of all users; only admins");
  add_output_option(*command, *output);
  on_chosen(*command, context, exit, [options, output](const Context& chosen) {
    return list_stores(chosen, *output, options->all);
  });
}

void add_store_rm(CLI::App& app, Context& context, int& exit) {
  CLI::App* command = app.add_subcommand("rm", "Remove a store: no further attempt uses it");
  auto options = std::make_shared<StoreOptions>();
  command->add_option("name", options->name, "its name")->required()->type_name("NAME");
  command->add_flag("--shared", options->shared, "a shared one; only admins");
  command->add_option("--owner", options->owner, "another user's; only admins")->type_name("USER");
  command->footer("exit codes: 0 removed  10 no such store  11 not allowed");
  on_chosen(*command, context, exit,
            [options](const Context& chosen) { return remove_store(chosen, *options); });
}

}  // namespace

void add_store(CLI::App& app, Context& context, int& exit) {
  CLI::App* command =
      app.add_subcommand("store", "Object storage and other places of data: add, ls, check, rm");
  command->require_subcommand(1);
  add_store_add(*command, context, exit);
  add_store_ls(*command, context, exit);
  add_store_check(*command, context, exit);
  add_store_rm(*command, context, exit);
}

}  // namespace muster::client

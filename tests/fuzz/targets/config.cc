// The daemons' --config files: YAML bytes -> words of options, and from there their values.
#include "common/config/checks.h"
#include "common/config/config_file.h"

#include <sstream>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace muster::fuzz {
namespace {

// A program with an option of each kind that the daemons have.
class Program {
 public:
  Program() {
    app_.add_option("--level", level_, "how much")->check(config::one_of({"info", "debug"}));
    app_.add_option("--count", count_, "how many")->capture_default_str();
    app_.add_option("--slots", slots_, "how many")->check(CLI::Range(0, 9));
    app_.add_option("--address", addresses_, "where; may be repeated")->type_name("ADDRESS");
    app_.add_option("--file", file_name_, "a path");
    app_.add_flag("--once", once_, "for one start")->configurable(false);
  }

  void run(std::string_view input) {
    std::istringstream stream{std::string(input)};
    std::vector<std::string> words;
    try {
      for (const CLI::ConfigItem& item : app_.get_config_formatter()->from_config(stream)) {
        require(app_.get_option_no_throw("--" + item.name) != nullptr, "a key is an option",
                item.name);
        require(!item.inputs.empty(), "an option has a value", item.name);
        for (const std::string& value : item.inputs)
          words.push_back("--" + item.name + "=" + value);
      }
    } catch (const CLI::FileError& error) {
      const std::string text = file_.explain(error);
      require(is_message(text), "the problems are sentences", text);
      return;
    }
    require(!once_, "what is for the command line alone stays unset");
    std::vector<const char*> argv{"d"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    try {
      app_.parse(static_cast<int>(argv.size()), argv.data());
    } catch (const CLI::ParseError& error) {
      const std::string text = file_.explain(error);
      require(is_message(text), "what is wrong with a value has its place", error.what());
      return;
    }
    require(slots_ >= 0 && slots_ <= 9, "a value is checked");
  }

 private:
  std::string level_, file_name_;
  int count_ = 1, slots_ = 0;
  bool once_ = false;
  std::vector<std::string> addresses_;
  CLI::App app_{"a daemon", "d"};
  config::ConfigFile file_{app_};
};

}  // namespace

void config(std::string_view input) { Program().run(input); }

}  // namespace muster::fuzz

#include "common/engine/model/resume_plan.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "common/engine/model/rows.h"

namespace muster::engine {
namespace {

// --- checkpoint.dir: an absolute one is the old job's, and attempt numbers repeat ----------------

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// An absolute directory for the chain or job `name`. Empty: the directory is below each job's own
// ${out}, by default or by the spec.
std::string own_checkpoint_dir(const v1::JobSpec& spec, const std::string& name) {
  std::string dir = spec.checkpoint().dir();
  if (!dir.starts_with('/')) return {};
  constexpr std::string_view kName = "${job.name}";
  if (dir.find(kName) != std::string::npos) {
    replace_all(dir, kName, name);
    return dir;
  }
  while (dir.ends_with('/')) dir.pop_back();
  return fmt::format("{}/{}", dir, name);
}

// Does not replace a literal "$${x}".
void fill_template(std::string& text, std::string_view name, std::string_view by) {
  for (std::size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at)) {
    if (text.compare(at, name.size(), name) == 0) {
      text.replace(at, name.size(), by);
      at += by.size();
    } else {
      at += text.compare(at, 2, "$$") == 0 ? 2 : 1;
    }
  }
}

const Engine* engine_before(const ResumeAsk& ask) { return find_engine(ask.before->engine()); }

// The checkpoint has a file a rank, and the engine's row can cut it again.
bool can_cut(const ResumeAsk& ask) {
  const Engine* engine = engine_before(ask);
  return engine != nullptr && engine->is_cut_by_rank != nullptr && engine->is_cut_by_rank(ask);
}

}  // namespace

Error resume_error(const ResumeAsk& ask, std::string_view doing, std::string message,
                   ErrorCode code) {
  return {code, fmt::format("{} job '{}': {}", doing, ask.before->name(), message)};
}

void start_from(v1::JobSpec& spec, std::string from, std::int64_t step) {
  v1::StartSpec& start = *spec.mutable_start();
  start.Clear();
  start.set_from(std::move(from));
  start.set_as(v1::START_AS_RESUME);
  start.set_step(step);
}

v1::JobSpec training_of(const ResumeAsk& ask) {
  v1::JobSpec spec = ask.after;
  spec.set_name(ask.name);
  spec.clear_schedule();
  if (!spec.output_dir().empty())
    spec.set_output_dir(
        fmt::format("{}/{}", spec.output_dir().substr(0, spec.output_dir().rfind('/')), ask.name));
  if (const std::string dir = own_checkpoint_dir(spec, ask.name); !dir.empty())
    spec.mutable_checkpoint()->set_dir(dir);
  start_from(spec, "job:" + ask.job_id, ask.checkpoint.step);
  return spec;
}

bool on_own_disks(const v1::JobSpec& spec) {
  return spec.checkpoint().storage() == v1::CHECKPOINT_STORAGE_LOCAL;
}

void leave_chain(v1::JobSpec& spec, const v1::ResolvedSpec& resolved) {
  // The input that a URL of it has become (common/spec/rules/start.cc).
  if (const std::string& from = spec.start().from(); from.contains("://"))
    for (int i = spec.inputs_size(); i-- > 0;)
      if (spec.inputs(i).from() == from && spec.inputs(i).name() == "start")
        spec.mutable_inputs()->DeleteSubrange(i, 1);
  spec.clear_start();
  spec.clear_schedule();
  for (v1::InputSpec& input : *spec.mutable_inputs())
    if (const auto path = resolved.inputs().find(input.name());
        path != resolved.inputs().end() && !input.from().contains("://"))  // a URL is its own place
      input.set_from(path->second);
  spec.clear_stage();
  struct Walk {
    const v1::ResolvedStage& stage;
    void message(google::protobuf::Message& message) const {
      using google::protobuf::FieldDescriptor;
      const auto& reflection = *message.GetReflection();
      std::vector<const FieldDescriptor*> fields;
      reflection.ListFields(message, &fields);
      for (const FieldDescriptor* field : fields) {
        const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
        for (int i = 0; i < count; ++i) {
          if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
            this->message(field->is_repeated()
                              ? *reflection.MutableRepeatedMessage(&message, field, i)
                              : *reflection.MutableMessage(&message, field));
          } else if (field->type() == FieldDescriptor::TYPE_STRING) {
            std::string text = field->is_repeated()
                                   ? reflection.GetRepeatedString(message, field, i)
                                   : reflection.GetString(message, field);
            if (text.find("${st") == std::string::npos) continue;
            fill_template(text, "${start.dir}", "");
            for (const v1::StageDir& dir : stage.dirs())
              fill_template(text, fmt::format("${{stages.{}.out}}", dir.stage()),
                            literal(dir.out()));
            if (field->is_repeated())
              reflection.SetRepeatedString(&message, field, i, text);
            else
              reflection.SetString(&message, field, text);
          }
        }
      }
    }
  };
  Walk{resolved.stage()}.message(spec);
}

Result<ResumeJobs> plan_resume(const ResumeAsk& ask) {
  if (!ask.after.resume().enabled())
    return fail(resume_error(ask, "resuming",
                             "resume is none, so that every attempt begins anew; give --set "
                             "resume=auto to go on from a checkpoint"));
  const Engine* engine = engine_before(ask);
  if (can_cut(ask) && (ask.cut_again || ranks_asked(*ask.before) != ranks_asked(ask.after)))
    return engine->cut_again(ask);
  if (ask.cut_again)
    return fail(resume_error(
        ask, "resuming",
        "--reshard is for checkpoints of MindFormers with a file a rank; leave it out"));
  if (engine != nullptr && engine->check_size != nullptr)
    if (auto sound = engine->check_size(ask); !sound) return fail(std::move(sound.error()));
  return ResumeJobs{.jobs = {training_of(ask)}, .fetches = {}};
}

Result<ResumeJobs> plan_whole(const ResumeAsk& ask, const std::string& file) {
  if (can_cut(ask)) return engine_before(ask)->make_whole(ask, file);
  return fail(resume_error(ask, "exporting a checkpoint of",
                           "it is not one of MindFormers' with a file a rank",
                           ErrorCode::Unsupported));
}

Result<bool> is_whole(const v1::JobSpec& spec, const SavedCheckpoint& checkpoint) {
  const Engine* engine = find_engine(spec.engine());
  if (engine == nullptr || engine->is_whole == nullptr)
    return fail(ErrorCode::InvalidArgument,
                fmt::format("what its files hold is the program's own matter; they are in '{}'",
                            checkpoint.path));
  return engine->is_whole(spec, checkpoint);
}

}  // namespace muster::engine

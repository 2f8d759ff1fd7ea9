// The directories of a job:
//
//   ${out} = spec.output_dir, else <resolved.outputs_root>/<job id>, else <cluster out>/<job id>
//     checkpoints/          or checkpoint.dir
//       attempt-N/          ${save.dir}: only attempt N writes there
//     resume/
//       attempt-N/          ${resume.dir}: links to the one step that attempt N resumes from
//       attempt-N.earlier/JOB/  links to what an earlier job has saved, for the --load of a node's
//                               script (worker/shim/earlier.h)
//     work/
//       attempt-N/
//         rank_R/           working directory of a rank whose engine needs one for each rank
//                           (mindformers)
//         scheduler/        working directory of MindSpore's scheduler
//         patched/
//           node-K/I/         copy of the I-th file that launch.patch or launch.vars changes; one
//                             directory for each node, as below
//     code/
//       node-K/NAME/        the K-th node's copy of code.at with code.patches applied; NAME is the
//                           last part of code.at; all attempts share the copy
//     logs/
//       attempt-N/          rank_R.log of every rank that a launcher inside a node's script was
//                           asked to start (launch.per: node)
//     ranktables/
//       attempt-N/
//         node-K/           hccl_<servers>s_<ranks>p.json; one directory for each node, so that on
//                           a shared file system no node replaces a file that another's ranks read
#include <fmt/format.h>

#include "common/engine/model/code_place.h"
#include "common/engine/model/engine.h"
#include "common/engine/model/template.h"

namespace muster::engine {
namespace {

class JobValues final : public TemplateValues {
 public:
  JobValues(const v1::JobSpec& spec, std::string_view out_dir) : spec_(spec), out_dir_(out_dir) {}
  [[nodiscard]] Result<std::string> value(std::string_view name) const override {
    if (name == "out") return std::string(out_dir_);
    if (name == "job.name") return spec_.name();
    return fail(ErrorCode::InvalidArgument,
                fmt::format("'${{{}}}' has no value here (${{out}} ${{job.name}})", name));
  }

 private:
  const v1::JobSpec& spec_;
  std::string_view out_dir_;
};

}  // namespace

std::string out_dir(const v1::JobSpec& spec, std::string_view job_id,
                    std::string_view cluster_out) {
  if (!spec.output_dir().empty()) return spec.output_dir();
  return fmt::format("{}/{}", cluster_out, job_id);
}

std::string out_dir(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved,
                    std::string_view job_id, std::string_view cluster_out) {
  return out_dir(spec, job_id,
                 resolved.outputs_root().empty() ? cluster_out : resolved.outputs_root());
}

Result<std::string> checkpoint_dir(const v1::JobSpec& spec, std::string_view out_dir) {
  const std::string& dir = spec.checkpoint().dir();
  if (dir.empty()) return fmt::format("{}/checkpoints", out_dir);
  auto parsed = Template::parse(dir);
  if (!parsed) return fail(std::move(parsed.error()));
  auto expanded = parsed->expand(JobValues(spec, out_dir), 4096);
  if (!expanded) return expanded;
  return expanded->starts_with('/') ? *expanded : fmt::format("{}/{}", out_dir, *expanded);
}

std::string save_dir(const v1::JobSpec& spec, std::string_view out_dir, std::uint32_t attempt) {
  // A spec that was never validated gets its own directory, and not one that is named "${...}".
  return fmt::format("{}/attempt-{}",
                     checkpoint_dir(spec, out_dir).value_or(fmt::format("{}/checkpoints", out_dir)),
                     attempt);
}

Result<std::string> creates_path(const v1::JobSpec& spec, std::string_view out_dir) {
  const std::string& creates = spec.stage().creates();
  if (creates.empty()) return std::string();
  auto parsed = Template::parse(creates);
  if (!parsed) return fail(std::move(parsed.error()));
  auto expanded = parsed->expand(JobValues(spec, out_dir), 4096);
  if (!expanded) return expanded;
  return expanded->starts_with('/') ? *expanded : fmt::format("{}/{}", out_dir, *expanded);
}

std::string resume_dir(const v1::JobSpec&, std::string_view out_dir, std::uint32_t attempt) {
  return fmt::format("{}/resume/attempt-{}", out_dir, attempt);
}

std::string code_dir(const v1::JobSpec& spec, std::string_view out_dir, std::size_t node) {
  if (spec.code().patches().empty()) return spec.code().at().empty() ? "/" : spec.code().at();
  return fmt::format("{}/code/node-{}/{}", out_dir, node, code_name(spec));
}

std::string rank_log_dir(std::string_view out_dir, std::uint32_t attempt) {
  return fmt::format("{}/logs/attempt-{}", out_dir, attempt);
}

std::string work_dir(std::string_view out_dir, std::uint32_t attempt) {
  return fmt::format("{}/work/attempt-{}", out_dir, attempt);
}

}  // namespace muster::engine

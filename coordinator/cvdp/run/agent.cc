#include "coordinator/cvdp/run/agent.h"

#include "common/base/command_line.h"
#include "common/base/files.h"
#include "common/base/limits.h"
#include "common/contract/bundle.h"
#include "common/contract/contract_digest.h"
#include "common/contract/document.h"
#include "common/contract/file_source.h"
#include "common/contract/method_parser.h"

namespace proctor::cli {

void add_agent_flags(Command command, AgentFlags& flags) {
  command.add_option("-g,--agent", flags.image, "the image of an agent that works on each problem");
  command.add_option("--agent-secret", flags.given.secrets,
                     "NAME of a variable of the workers that the agent's image is given, such as "
                     "OPENAI_USER_KEY; may be given again");
  command.add_flag("--agent-network", flags.given.network, "give the agent's image a network");
  command.add_option("--agent-method", flags.method_file,
                     "instead of an image: a YAML file with one method of a campaign");
}

Status check_agent(const AgentFlags& flags) {
  if (!flags.image.empty() && !flags.method_file.empty())
    return Error{Errc::kInvalid,
                 "an agent is an image or a method, not both: --agent or "
                 "--agent-method"};
  if (flags.image.empty() && (!flags.given.secrets.empty() || flags.given.network))
    return Error{Errc::kInvalid,
                 "--agent-secret and --agent-network are of an agent's image (--agent); a method "
                 "has its own environment"};
  return ok_status();
}

Result<Method> load_agent_method(const std::string& file) {
  const auto say = [&](Error e) { return in_context("--agent-method " + file, std::move(e)); };
  const Result<std::string> text = read_file(file, limits::kConfigFileBytes);
  if (!text.ok()) return say({Errc::kInvalid, text.error().detail});
  std::error_code ec;
  const fs::path absolute = fs::absolute(file, ec).lexically_normal();
  if (ec) return say(errno_error(file, ec.value()));
  const auto folder = FolderFiles::open(absolute.parent_path());
  if (!folder.ok()) return say(folder.error());
  Diagnostics out;
  const auto document = read_document(*text, format_of(file), file, out);
  if (!document) return as_error(out);
  Problems problems(file, out);
  Method method = read_method(document->root, "", **folder, problems);
  if (!out.empty()) return as_error(out);
  if (method.kind != Method::Kind::kCommand)
    return say({Errc::kInvalid,
                "not a method with a program of its own: name and command, as "
                "under methods of campaign.yaml"});
  return method;
}

std::string method_text(const Method& method) {
  const auto form = parse_json(canonical_form(method));
  PROCTOR_ASSERT(form.ok());
  return form->at("method").dump();
}

Status place_method_files(const Method& method, const fs::path& campaign) {
  for (const ReferencedFile& file : method.files) {
    const fs::path to = campaign / file.path;
    std::error_code ec;
    if (fs::exists(fs::symlink_status(to, ec)))
      return Error{Errc::kInvalid, "the agent's file " + file.path +
                                       " has the name of one of the campaign's own: call it "
                                       "otherwise"};
    PROCTOR_CHECK_OK(make_dirs(to.parent_path()));
    PROCTOR_CHECK_OK(write_file(to, file.bytes, Durability::kLazy, file.mode));
  }
  return ok_status();
}

Json environment_of(const AgentGiven& given) {
  Json out = Json::object();
  if (!given.secrets.empty()) out["secrets"] = given.secrets;
  if (given.network) out["network"] = true;
  return out;
}

}  // namespace proctor::cli

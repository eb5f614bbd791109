#include "worker/shell/offered_tools.h"

#include <utility>

#include "worker/network/way_out.h"

namespace proctor {
namespace {

constexpr const char* kInstructions =
    "Work on the repository in /workspace with these tools. Stages: read, write, test; each allows "
    "what the ones before did. Ask for the next with advance_stage. Paths are relative to the "
    "repository.";

std::string at(const char* name) {
  return std::string(kToolsAt) + "/" + name;
}

// As Claude Code, Cursor and others read it.
std::string client_file() {
  Json server = {{"type", "stdio"}, {"command", at("forward")}};
  server["args"] = Json::array({"--stdio", at("socket")});
  return Json{{"mcpServers", {{"proctor", std::move(server)}}}}.dump(2) + "\n";
}

}  // namespace

Result<std::unique_ptr<OfferedTools>> OfferedTools::open(const fs::path& dir, RunToolPlace place,
                                                         ToolSessionRules rules, RunToolHooks hooks,
                                                         std::chrono::milliseconds time,
                                                         const std::stop_token& run) {
  PROCTOR_CHECK_OK(put_forward_program(dir));
  PROCTOR_CHECK_OK(write_file(dir / "mcp.json", client_file(), Durability::kLazy, kOpenFile));
  // An agent that outlived us shows this very folder, with a socket that nobody answers any more.
  std::error_code ignored;
  fs::remove(dir / "socket", ignored);
  std::unique_ptr<OfferedTools> out(new OfferedTools(dir));
  PROCTOR_TRY(out->work_, RunTools::open(std::move(place), std::move(rules), std::move(hooks), time,
                                         out->stop_.get_token()));
  out->run_ = std::make_unique<std::stop_callback<std::function<void()>>>(
      run, [stop = &out->stop_] { stop->request_stop(); });
  PROCTOR_TRY(out->server_, ToolServer::start(dir, out->work_->session(), kInstructions));
  return out;
}

OfferedTools::~OfferedTools() {
  close();
}

void OfferedTools::show_in(SandboxSpec& spec) const {
  // Connecting needs no writable mount, and a client must not take the socket away.
  spec.mounts.push_back({dir_, kToolsAt, false});
  spec.env["PROCTOR_MCP"] = at("forward") + " --stdio " + at("socket");
  spec.env["PROCTOR_MCP_CONFIG"] = at("mcp.json");
}

void OfferedTools::close() {
  stop_.request_stop();
  server_.reset();
}

}  // namespace proctor

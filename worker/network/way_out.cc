#include "worker/network/way_out.h"

#include <string_view>
#include <utility>

namespace proctor {
// The bytes of the static program that is the inner end of a sandbox's way out
// (worker/network/forward), carried inside the worker: an image has none for sure.
std::string_view forward_program();

constexpr const char* kPort = "3128";

Status put_forward_program(const fs::path& dir) {
  return write_file(dir / "forward", forward_program(), Durability::kLazy, /*mode=*/0755);
}

void add_way(SandboxSpec& spec, const std::string& port, const std::string& shown_at) {
  const std::string pair = port + "=" + shown_at + "/socket";
  if (spec.launcher.empty())
    spec.launcher = {shown_at + "/forward", pair, "--"};
  else
    spec.launcher.insert(spec.launcher.end() - 1, pair);
}

Result<std::unique_ptr<WayOut>> WayOut::open(const fs::path& dir, FilterProxy::Options options,
                                             FilterProxy::OnRecord on_record) {
  PROCTOR_CHECK_OK(put_forward_program(dir));
  // A sandbox that outlived us shows this very folder, with a socket that nobody answers any more.
  std::error_code ignored;
  fs::remove(dir / "socket", ignored);
  PROCTOR_TRY(auto proxy, FilterProxy::start(dir, std::move(options), std::move(on_record)));
  return std::unique_ptr<WayOut>(new WayOut(dir, std::move(proxy)));
}

WayOut::WayOut(fs::path dir, std::unique_ptr<FilterProxy> proxy)
    : dir_(std::move(dir)), proxy_(std::move(proxy)) {}

WayOut::~WayOut() {
  proxy_.reset();
  (void)remove_tree(dir_).ok();
}

void WayOut::give_to(SandboxSpec& spec) const {
  spec.network = false;
  spec.mounts.push_back({dir_, kNetworkAt, false});
  add_way(spec, kPort, kNetworkAt);
  // curl reads http_proxy in lower case only, others in upper case only.
  for (const char* name : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"})
    spec.env[name] = kProxyUrl;
  for (const char* name : {"no_proxy", "NO_PROXY"}) spec.env[name] = "localhost,127.0.0.1,::1";
}
}  // namespace proctor

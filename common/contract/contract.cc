#include "common/contract/contract.h"

#include <algorithm>
#include <functional>

#include "common/base/json.h"
#include "common/contract/contract_digest.h"

namespace proctor {
namespace {
// As an entry must write it.
std::string spelling(const AllowedPlace& place) {
  const bool v6 = place.host.address && !place.host.address->is_v4();
  return (place.below ? "*." : "") + (v6 ? "[" + place.host.text + "]" : place.host.text) + ":" +
         std::to_string(place.port);
}
}  // namespace

Result<AllowedPlace> parse_allowed_place(std::string_view text) {
  const Error refused{Errc::kInvalid, "expected host:port, *.domain:port or address:port"};
  AllowedPlace place;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refused;
  std::string_view host = text.substr(0, colon);
  place.below = host.starts_with("*.");
  if (place.below) host.remove_prefix(2);
  const auto name = parse_net_host(host);
  const auto port = parse_port(text.substr(colon + 1));
  if (!name || !port || (place.below && name->address)) return refused;
  // "*.org" allows what anybody may register.
  if (place.below && name->text.find('.') == std::string::npos) return refused;
  place.host = *name;
  place.port = *port;
  if (spelling(place) != text) return refused;
  return place;
}

bool is_allowed_place(std::string_view text) {
  return parse_allowed_place(text).ok();
}

NetworkAccess joined(const NetworkAccess& a, const NetworkAccess& b) {
  if (a.open || b.open) return {true, {}};
  NetworkAccess out = a;
  for (const std::string& place : b.allow)
    if (std::ranges::find(out.allow, place) == out.allow.end()) out.allow.push_back(place);
  return out;
}

std::string describe(const NetworkAccess& access) {
  if (access.open) return "all";
  std::string out;
  for (const std::string& entry : access.allow) out += (out.empty() ? "" : ", ") + entry;
  return out.empty() ? "none" : out;
}

std::string ImageBuild::name_of(const std::string& file) const {
  const std::size_t folder = dockerfile.rfind('/');
  if (folder == std::string::npos) return file;
  PROCTOR_ASSERT(file.starts_with(dockerfile.substr(0, folder + 1)));
  return file.substr(folder + 1);
}

Digest inputs_of(const ImageBuild& build, const std::vector<ReferencedFile>& files) {
  const auto find = [&](const std::string& path) -> const ReferencedFile& {
    const auto it = std::ranges::find(files, path, &ReferencedFile::path);
    PROCTOR_ASSERT(it != files.end());
    return *it;
  };
  Json context = Json::object();
  for (const std::string& path : build.files) {
    const ReferencedFile& file = find(path);
    context[build.name_of(path)] = {{"mode", file.mode}, {"sha256", sha256(file.bytes).hex()}};
  }
  return sha256(canonical_text(
      {{"format", 1},
       {"dockerfile", sha256(find(build.dockerfile).bytes).hex()},
       {"files", std::move(context)},
       {"arguments", build.arguments.empty() ? Json::object() : Json(build.arguments)},
       {"network", build.network}}));
}

bool runs_workspace(const Service& service) {
  return !service.container || !service.container->mounts.empty();
}

std::vector<std::size_t> services_of(const std::vector<Service>& services, const Check& check) {
  const auto index_of = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(services, name, &Service::name) -
                                    services.begin());
  };
  std::vector<bool> wanted(services.size(), !check.services);
  // As deep as there are services: the parser bounds their number.
  const std::function<void(std::size_t)> want = [&](std::size_t i) {
    wanted[i] = true;
    for (const std::string& other : services[i].depends_on)
      if (const std::size_t o = index_of(other); !wanted[o]) want(o);
  };
  if (check.services)
    for (const std::string& name : *check.services) want(index_of(name));
  std::vector<std::size_t> out;
  std::vector<bool> placed(services.size(), false);
  const std::function<void(std::size_t)> place = [&](std::size_t i) {
    if (placed[i]) return;
    placed[i] = true;
    for (const std::string& other : services[i].depends_on) place(index_of(other));
    out.push_back(i);
  };
  for (std::size_t i = 0; i < services.size(); ++i)
    if (wanted[i]) place(i);
  return out;
}
}  // namespace proctor

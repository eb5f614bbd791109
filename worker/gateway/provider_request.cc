#include "worker/gateway/provider_request.h"

#include "common/base/version.h"
#include "worker/gateway/route.h"

namespace proctor {

std::string provider_head(const ProviderRequest& r) {
  std::string_view path = path_of(r.api);  // of Anthropic's it has the version, as a URL may
  if (path.starts_with("/v1/") && r.place.path.ends_with("/v1")) path.remove_prefix(3);
  std::string out = "POST " + r.place.path + std::string(path) + " HTTP/1.1\r\nhost: ";
  out += r.place.header + "\r\n";
  switch (r.key.empty() ? ModelAuth::kNone : r.auth) {
    case ModelAuth::kBearer:
      out += "authorization: Bearer " + r.key.reveal() + "\r\n";
      break;
    case ModelAuth::kXApiKey:
      out += "x-api-key: " + r.key.reveal() + "\r\n";
      break;
    case ModelAuth::kApiKey:
      out += "api-key: " + r.key.reveal() + "\r\n";
      break;
    case ModelAuth::kNone:
      break;
  }
  out += "content-type: application/json\r\naccept-encoding: identity\r\ncontent-length: ";
  out += std::to_string(r.bytes) + "\r\nuser-agent: proctor/" + std::string(kVersion);
  if (!r.user_agent.empty()) out += " " + r.user_agent;
  out += "\r\n";
  for (const char* name : {"accept", "anthropic-version", "anthropic-beta", "openai-beta"})
    if (const std::string* value = find_field(r.head.fields, name))
      out += std::string(name) + ": " + *value + "\r\n";
  return out + "\r\n";
}

}  // namespace proctor

#include "worker/sandbox/image_rules.h"

#include "worker/sandbox/mount_rules.h"

namespace proctor {

Status check_image_spec(const std::string& kind, const SandboxSpec& spec) {
  if (spec.image.empty()) return Error{Errc::kInvalid, kind + " sandbox: no image"};
  PROCTOR_CHECK_OK(check_mounts(spec.mounts));
  return check_environment(spec.env);
}

std::vector<std::string> init_words(const SandboxSpec& spec) {
  std::vector<std::string> own = {"/dev"};
  for (const PrivateFolder& folder : kPrivateFolders) own.emplace_back(folder.at);
  return write_words(spec, std::move(own));
}

std::vector<std::string> shell_arguments(const SandboxSpec& spec, const std::string& command) {
  if (spec.env.contains("HOME")) return {"-c", command};
  // The runtime sets HOME from the image's passwd where nobody does.
  return {"-c", "unset HOME; exec /bin/sh -c \"$1\"", "sh", command};
}

}  // namespace proctor

#include "common/contract/image_build_parser.h"

#include <algorithm>

#include "common/contract/dockerfile.h"

namespace proctor {
namespace {

constexpr std::chrono::milliseconds kLeast{1};

// Dockerfiles that are fine have bases; of others each fault is told where the file is named.
std::vector<std::string> bases_of(const Node& node, const std::string& where,
                                  const ReferencedFile& file, Problems& problems) {
  DockerfileFacts facts = look_at_dockerfile(file.bytes);
  for (const DockerfileFault& fault : facts.faults)
    problems.add(node.at, where,
                 file.path + ", line " + std::to_string(fault.line) + ": " + fault.found,
                 fault.expected);
  return std::move(facts.bases);
}

}  // namespace

std::optional<ImageBuild> read_image_build(const Node& node, const std::string& path,
                                           FileCollector& files, Problems& problems) {
  const std::size_t before = problems.count();
  const Fields f(node, path, kImageBuildKeys, problems);
  ImageBuild out;
  std::vector<ReferencedFile> all;
  if (const Node* dockerfile = f.find("dockerfile")) {
    const std::string where = f.path("dockerfile");
    out.dockerfile = files.add(*dockerfile, where);
    if (const ReferencedFile* file = files.find(out.dockerfile)) {
      out.bases = bases_of(*dockerfile, where, *file, problems);
      all.push_back(*file);
    }
  } else {
    f.missing("dockerfile", "a Dockerfile in this file's folder");
  }
  const std::string folder = out.dockerfile.substr(0, out.dockerfile.rfind('/') + 1);
  f.each("files", [&](const Node& item, const std::string& where) {
    const std::string file = files.add(item, where);
    if (file.empty()) return;
    if (!file.starts_with(folder)) {
      problems.wrong(item, where, "a file in the folder of the Dockerfile or below it");
    } else if (const std::string name = file.substr(folder.size());
               name == kBuildDockerfile || name == kBuildIgnores) {
      problems.wrong(item, where, "another file: files lists all that is there, and no more");
    } else if (std::ranges::find(out.files, file) != out.files.end()) {
      problems.wrong(item, where, "each file once");
    } else {
      out.files.push_back(file);
      if (file != out.dockerfile) all.push_back(*files.find(file));
    }
  });
  out.arguments = f.table("arguments", kVariableRule, kVariableValueRule);
  out.network = f.flag("network", false);
  out.timeout = f.duration("timeout", out.timeout, kLeast);
  if (problems.count() != before) return std::nullopt;
  out.inputs = inputs_of(out, all);
  return out;
}

void check_image_build(const Fields& contract, const Contract& c) {
  if (!c.environment.build) return;
  Problems& problems = contract.problems();
  if (c.policy.isolation == Isolation::kUserspace)
    problems.add(contract.at("policy"), "policy.isolation",
                 "userspace, and an image that is built from a Dockerfile by a Docker Engine",
                 "kernel, or the image by its digest: proctor images build NAME FOLDER --import "
                 "makes it and prints that");
  const ImageBuild& build = *c.environment.build;
  for (const std::string& file : build.files) {
    const bool judges = std::ranges::find(c.acceptance_files, file, &AcceptanceFile::from) !=
                            c.acceptance_files.end() ||
                        file == c.reference_patch;
    if (judges)
      problems.add(contract.at("environment"), "environment.image.files", "\"" + file + "\"",
                   "no file of the acceptance: the agent works in this image");
  }
}

}  // namespace proctor

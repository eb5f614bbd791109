#include "tests/integration/sandbox/docker_fixture.h"

#include <unistd.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "worker/sandbox/docker_http.h"

namespace proctor::testing {
namespace {

constexpr const char* kPrograms[] = {"cat",   "chmod", "env",     "grep", "head", "id",    "ls",
                                     "mkdir", "mount", "setsid",  "sed",  "sh",   "sleep", "sort",
                                     "tail",  "touch", "unshare", "wc",   "yes"};

// usr/bin/NAME with the libraries it wants, as files of a root below `root`.
Status copy_program(const fs::path& root, const std::string& name, std::set<std::string>& copied) {
  std::error_code ec;
  const fs::path program = fs::canonical(fs::path("/usr/bin") / name, ec);
  if (ec) return Error{Errc::kNotFound, "no /usr/bin/" + name};
  fs::copy_file(program, root / "usr/bin" / name, ec);
  PROCTOR_TRY(
      const std::string libraries,
      run_for_output({.argv = {"ldd", program.string()}, .cwd = {}, .env = {}, .stdin_bytes = {}}));
  std::istringstream words(libraries);
  for (std::string word; words >> word;) {
    if (!word.starts_with("/") || !copied.insert(word).second) continue;
    const fs::path to = root / fs::path(word).relative_path();
    fs::create_directories(to.parent_path(), ec);
    fs::copy_file(word, to, ec);
  }
  return ok_status();
}

}  // namespace

Result<std::string> make_test_image() {
  PROCTOR_TRY(const TempDir dir, TempDir::create("proctor-test-image"));
  const fs::path root = dir.path() / "root";
  for (const char* name : {"usr/bin", "usr/lib", "usr/lib64", "etc", "tmp", "proc", "dev"}) {
    PROCTOR_CHECK_OK(make_dirs(root / name));
  }
  std::error_code ec;
  for (const char* name : {"bin", "lib", "lib64"}) {
    fs::create_directory_symlink(std::string("usr/") + name, root / name, ec);
  }
  std::set<std::string> copied;
  for (const char* name : kPrograms) PROCTOR_CHECK_OK(copy_program(root, name, copied));
  PROCTOR_CHECK_OK(write_file(root / "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"));
  const fs::path tar = dir.path() / "root.tar";
  PROCTOR_CHECK_OK(run_for_output({.argv = {"tar", "-C", root.string(), "-cf", tar.string(), "."},
                                   .cwd = {},
                                   .env = {},
                                   .stdin_bytes = {}}));
  PROCTOR_TRY(const std::string bytes, read_file(tar, std::size_t{256} << 20));
  PROCTOR_TRY(
      const std::string reply,
      docker_call("POST",
                  "/images/create?fromSrc=-&changes=" + url_encode("LABEL proctor.owner=test") +
                      "&changes=" + url_encode("ENV FROM_IMAGE=1 PATH=/image/bin"),
                  bytes));
  const std::size_t at = reply.rfind("sha256:");
  if (at == std::string::npos) return Error{Errc::kCorrupt, "no image id in " + reply};
  return reply.substr(at, 7 + 64);
}

namespace {

struct ImageOwner {
  Result<std::string> id = make_test_image();
  ~ImageOwner() {
    if (id.ok()) (void)docker_call("DELETE", "/images/" + *id + "?force=1").ok();
  }
};

}  // namespace

std::string docker_socket() {
  const char* given = ::getenv("PROCTOR_DOCKER_SOCKET");  // NOLINT(concurrency-mt-unsafe)
  return given != nullptr && *given != '\0' ? given : "/var/run/docker.sock";
}

Result<std::string> docker_call(const std::string& method, const std::string& target,
                                const std::string& body) {
  const auto deadline = DockerConnection::Clock::now() + std::chrono::seconds(60);
  PROCTOR_TRY(DockerConnection c, DockerConnection::open(docker_socket(), deadline));
  PROCTOR_TRY(HttpReply reply, c.call(method, "/v1.41" + target, body, deadline));
  if (299 < reply.status) {
    return Error{Errc::kUnavailable, std::to_string(reply.status) + ": " + reply.body};
  }
  return std::move(reply.body);
}

Result<std::string> test_image() {
  static const ImageOwner owner;
  return owner.id;
}

}  // namespace proctor::testing

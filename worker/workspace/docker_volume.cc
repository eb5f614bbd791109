#include "worker/workspace/docker_volume.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/json.h"
#include "common/base/owned.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::size_t kAnswerBytes = std::size_t{16} << 20;
constexpr time_t kTimeoutSeconds = 30;

struct Answer {
  int status = 0;
  std::string body;
};

Result<UniqueFd> dial(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("docker socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (sizeof address.sun_path <= path.size()) {
    return Error{Errc::kInvalid, "docker socket: path too long"};
  }
  std::copy(path.begin(), path.end(), static_cast<char*>(address.sun_path));
  const timeval limit{kTimeoutSeconds, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Error{Errc::kUnavailable, "docker engine at " + path + ": " + std::strerror(errno)};
  }
  return fd;
}

Error no_answer(std::string_view why) {
  return Error{Errc::kUnavailable, "docker engine: " + std::string(why)};
}

// HTTP/1.0: the answer ends with the connection and is never chunked.
Result<Answer> ask(const std::string& socket, const std::string& method, const std::string& target,
                   const std::string& body) {
  PROCTOR_TRY(const UniqueFd fd, dial(socket));
  const std::string request = method + " " + target +
                              " HTTP/1.0\r\nHost: docker\r\nContent-Type: application/json\r\n"
                              "Content-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + body;
  for (std::string_view rest = request; !rest.empty();) {
    const ssize_t n = ::send(fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return no_answer(std::strerror(errno));
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  std::string text;
  std::array<char, 16384> buffer{};
  while (true) {
    const ssize_t n = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return no_answer(std::strerror(errno));
    if (n == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (kAnswerBytes < text.size()) return no_answer("answer too large");
  }
  const std::size_t head = text.find("\r\n\r\n");
  if (!text.starts_with("HTTP/1.") || head == std::string::npos) return no_answer("not HTTP");
  Answer out;
  for (std::size_t i = 9; i < 12; ++i) {
    if (text[i] < '0' || '9' < text[i]) return no_answer("not HTTP");
    out.status = out.status * 10 + (text[i] - '0');
  }
  out.body = text.substr(head + 4);
  return out;
}

Error refused(const std::string& what, const Answer& answer) {
  const Errc code = answer.status / 100 == 4 ? Errc::kInvalid : Errc::kUnavailable;
  return Error{code, what + ": docker answers " + std::to_string(answer.status) + ": " +
                         printable(answer.body, 300)};
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                       c == '-' || c == '.' || c == '_';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    }
  }
  return out;
}

}  // namespace

Status DockerVolumes::create(const std::string& name, const fs::path& device,
                             const DockerLabels& labels) const {
  const Json body = {{"Name", name},
                     {"Driver", "local"},
                     {"DriverOpts", {{"type", "none"}, {"o", "bind"}, {"device", device.string()}}},
                     {"Labels", labels}};
  const std::string what = "create volume " + name;
  auto answer = ask(socket_, "POST", "/v1.40/volumes/create", body.dump());
  if (!answer.ok()) return in_context(what, answer.error());
  if (answer->status / 100 != 2) return refused(what, *answer);
  return ok_status();
}

Status DockerVolumes::remove(const std::string& name) const {
  const std::string what = "remove volume " + name;
  auto answer = ask(socket_, "DELETE", "/v1.40/volumes/" + percent_encoded(name), "");
  if (!answer.ok()) return in_context(what, answer.error());
  if (answer->status / 100 != 2 && answer->status != 404) return refused(what, *answer);
  return ok_status();
}

Result<std::map<std::string, DockerLabels>> DockerVolumes::list(const DockerLabels& labels) const {
  Json wanted = Json::array();
  for (const auto& [k, v] : labels) wanted.push_back(k + "=" + v);
  const Json filter = {{"label", wanted}};
  PROCTOR_TRY(const Answer answer,
              ask(socket_, "GET", "/v1.40/volumes?filters=" + percent_encoded(filter.dump()), ""));
  if (answer.status != 200) return refused("list volumes", answer);
  PROCTOR_TRY(const Json json, parse_json(answer.body, {kAnswerBytes, 16}));
  std::map<std::string, DockerLabels> out;
  const auto volumes = json.find("Volumes");
  if (!json.is_object() || volumes == json.end() || !volumes->is_array()) return out;
  for (const Json& v : *volumes) {
    const auto name = v.find("Name");
    if (!v.is_object() || name == v.end() || !name->is_string()) continue;
    DockerLabels& own = out[name->get<std::string>()];
    const auto of_volume = v.find("Labels");
    if (of_volume == v.end() || !of_volume->is_object()) continue;
    for (const auto& [k, value] : of_volume->items()) {
      if (value.is_string()) own[k] = value.get<std::string>();
    }
  }
  return out;
}

}  // namespace proctor

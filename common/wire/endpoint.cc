#include "common/wire/endpoint.h"

#include <arpa/inet.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor::wire {
namespace {

Error invalid(const std::string& endpoint, std::string_view why) {
  return Error{Errc::kInvalid, "endpoint " + printable(endpoint) + ": " + std::string(why)};
}

// Only literals: what a name resolves to is decided by somebody else.
bool is_loopback_literal(const std::string& host) {
  if (host == "[::1]") return true;
  in_addr v4 = {};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

Status check_tcp(const std::string& endpoint, std::string_view rest, bool has_curve,
                 bool insecure_loopback) {
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return invalid(endpoint, "expected tcp://HOST:PORT");
  const std::string host(rest.substr(0, colon));
  const std::string_view port = rest.substr(colon + 1);
  if (!whole_number<std::uint16_t>(port) && port != "*")
    return invalid(endpoint, "the port is not a number to 65535");
  if (host.find_first_of(";/ ") != std::string::npos) return invalid(endpoint, "not a host");
  if (has_curve) return ok_status();
  if (!insecure_loopback)
    return invalid(
        endpoint,
        "TCP needs CURVE keys (proctor keygen); without them only 127.0.0.1 may be used, "
        "with --insecure-loopback");
  if (!is_loopback_literal(host))
    return invalid(endpoint, "--insecure-loopback allows 127.x.y.z and [::1] only, not " +
                                 printable(host, 60));
  return ok_status();
}

Status check_ipc(const std::string& endpoint, std::string_view path) {
  if (path.empty() || path == "*") return invalid(endpoint, "needs the path of a socket");
  // Abstract sockets have no folder that could keep others out.
  if (path.starts_with('@')) return invalid(endpoint, "abstract sockets are open to every user");
  if (sizeof(sockaddr_un::sun_path) <= path.size())
    return invalid(endpoint, "the path has " + std::to_string(path.size()) +
                                 " bytes, a socket's may have 107");
  return ok_status();
}

Status check_ipc_folder(const std::string& endpoint, std::string_view path) {
  const fs::path parent = fs::path(path).parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  struct stat st = {};
  if (::stat(folder.c_str(), &st) != 0)
    return errno_error("endpoint " + printable(endpoint), errno);
  if (!S_ISDIR(st.st_mode)) return invalid(endpoint, "its folder is not one");
  if (st.st_uid != ::geteuid() || (st.st_mode & 077) != 0)
    return invalid(endpoint, "its folder must be yours and closed to others (chmod 700)");
  return ok_status();
}

enum class Side { kListen, kConnect };

Status check(const std::string& endpoint, bool has_curve, bool insecure_loopback, Side side) {
  constexpr std::string_view kTcp = "tcp://";
  constexpr std::string_view kIpc = "ipc://";
  constexpr std::string_view kInproc = "inproc://";
  const std::string_view text = endpoint;
  if (text.find('\0') != std::string_view::npos) return invalid(endpoint, "has a NUL byte");
  if (text.starts_with(kTcp))
    return check_tcp(endpoint, text.substr(kTcp.size()), has_curve, insecure_loopback);
  if (text.starts_with(kIpc)) {
    const std::string_view path = text.substr(kIpc.size());
    PROCTOR_CHECK_OK(check_ipc(endpoint, path));
    return side == Side::kListen ? check_ipc_folder(endpoint, path) : ok_status();
  }
  if (text.starts_with(kInproc) && text.size() != kInproc.size()) return ok_status();
  return invalid(endpoint, "expected tcp://HOST:PORT or ipc://PATH");
}

}  // namespace

Status check_listen_endpoint(const std::string& endpoint, bool has_curve, bool insecure_loopback) {
  return check(endpoint, has_curve, insecure_loopback, Side::kListen);
}

Status check_connect_endpoint(const std::string& endpoint, bool has_curve, bool insecure_loopback) {
  return check(endpoint, has_curve, insecure_loopback, Side::kConnect);
}

}  // namespace proctor::wire

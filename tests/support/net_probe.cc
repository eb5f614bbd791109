// What a command in a sandbox can reach, one line for each question.  Linked statically, so that it
// runs in any image.  Each pair of arguments is a question:
//   get URL                  by the proxy in $http_proxy: the status and the last line of the
//   answer tunnel HOST:PORT         CONNECT by the proxy in $https_proxy, and an echo through it
//   tcp ADDRESS:PORT         a direct connection
//   udp ADDRESS:PORT         a datagram
//   raw TEXT                 TEXT to the proxy, with \r and \n written so: its status
//   serve PORT=TEXT          listens there and answers every connection with TEXT; never ends
//   say NAME:PORT            what is heard there; the name by /etc/hosts
//   call NUMBER,ARGUMENT...  the system call: "done", or why not
//   flood NUMBER,TIMES       the same many times, with zeros: of the last one
//   bind ADDRESS:PORT        likewise, for a socket
//   message ADDRESS:PORT     likewise, sendmsg with that address
//   messages ADDRESS:PORT    likewise, sendmmsg, where it is the second one's
//   rewrite PATH             likewise, openat2 to write
//   children -               does this process find a child it did not start?
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace {

constexpr int kWaitMs = 5'000;

int split(const std::string& place, std::string& host) {
  const std::size_t colon = place.rfind(':');
  host = place.substr(0, colon);
  return std::atoi(place.c_str() + colon + 1);
}

// The descriptor, or minus the errno.
int open_to(const std::string& place, int type) {
  std::string host;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<unsigned short>(split(place, host)));
  if (::inet_pton(AF_INET, host.c_str(), &to.sin_addr) != 1) return -EINVAL;
  const int fd = ::socket(AF_INET, type | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  int error = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd ready{fd, POLLOUT, 0};
    error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (::poll(&ready, 1, kWaitMs) == 1) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  return error == 0 ? fd : -error;
}

// What comes until the end, or until `enough` bytes are there.
std::string hear(int fd, std::size_t enough) {
  std::string out;
  char bytes[4096];
  pollfd ready{fd, POLLIN, 0};
  while (out.size() < enough && ::poll(&ready, 1, kWaitMs) == 1) {
    const ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n <= 0) break;
    out.append(bytes, static_cast<std::size_t>(n));
  }
  return out;
}

std::string status_of(const std::string& answer) {
  return answer.size() < 12 ? "no answer" : answer.substr(9, 3);
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

// A connection to the proxy of a variable.
int proxy_of(const char* variable) {
  const char* url = std::getenv(variable);
  if (url == nullptr) return -ENOENT;
  return open_to(std::string(url).substr(std::strlen("http://")), SOCK_STREAM);
}

std::string said_by_proxy(const char* variable, const std::string& request, bool whole) {
  const int fd = proxy_of(variable);
  if (fd == -ENOENT) return "no proxy";
  if (fd < 0) return std::strerror(-fd);
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) return std::strerror(errno);
  const std::string answer = hear(fd, whole ? ~std::size_t{0} : 12);
  ::close(fd);
  return whole ? status_of(answer) + " " + last_line(answer) : status_of(answer);
}

std::string tunnel(const std::string& place) {
  const int fd = proxy_of("https_proxy");
  if (fd == -ENOENT) return "no proxy";
  if (fd < 0) return std::strerror(-fd);
  const std::string request = "CONNECT " + place + " HTTP/1.1\r\nHost: " + place + "\r\n\r\n";
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) return std::strerror(errno);
  const std::string expected = "HTTP/1.1 200 Connection established\r\n\r\n";
  const std::string answer = hear(fd, expected.size());
  std::string out = status_of(answer);
  if (out == "200") {
    const std::string word = "there and back";
    ::send(fd, word.data(), word.size(), MSG_NOSIGNAL);
    ::shutdown(fd, SHUT_WR);
    out += " " + hear(fd, ~std::size_t{0});
  } else {
    out += " " + last_line(answer + hear(fd, ~std::size_t{0}));
  }
  ::close(fd);
  return out;
}

std::string direct(const std::string& place, int type) {
  const int fd = open_to(place, type);
  if (fd < 0) return std::strerror(-fd);
  const bool sent = ::send(fd, "x", 1, MSG_NOSIGNAL) == 1;
  const std::string out = sent ? "reached" : std::strerror(errno);
  ::close(fd);
  return out;
}

// The first address that /etc/hosts has for a name.
std::string address_of(const std::string& name) {
  std::ifstream hosts("/etc/hosts");
  for (std::string line; std::getline(hosts, line);) {
    std::istringstream words(line);
    std::string address, word;
    words >> address;
    while (words >> word)
      if (word == name) return address;
  }
  return "";
}

std::string say(const std::string& place) {
  std::string name;
  const int port = split(place, name);
  const std::string address = address_of(name);
  if (address.empty()) return "no such name";
  const int fd = open_to(address + ":" + std::to_string(port), SOCK_STREAM);
  if (fd < 0) return std::strerror(-fd);
  const std::string out = hear(fd, ~std::size_t{0});
  ::close(fd);
  return out;
}

std::string serve(const std::string& about) {
  const std::size_t equals = about.find('=');
  const std::string text = about.substr(equals + 1);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<unsigned short>(std::atoi(about.c_str())));
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(listener, 16) != 0)
    return std::strerror(errno);
  for (;;) {
    const int fd = ::accept(listener, nullptr, nullptr);
    if (fd < 0) return std::strerror(errno);
    ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    ::close(fd);
  }
}

std::string done(bool works) {
  return works ? "done" : std::strerror(errno);
}

std::string call(const std::string& about, bool flood) {
  long words[7] = {};
  std::istringstream numbers(about);
  std::string word;
  for (int i = 0; i < 7 && std::getline(numbers, word, ','); ++i) words[i] = std::stol(word);
  if (!flood)
    return done(0 <=
                ::syscall(words[0], words[1], words[2], words[3], words[4], words[5], words[6]));
  long last = 0;
  for (long i = 0; i < words[1]; ++i) last = ::syscall(words[0], 0, 0, 0, 0, 0, 0);
  return done(0 <= last);
}

std::string bind_to(const std::string& place) {
  std::string host;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<unsigned short>(split(place, host)));
  ::inet_pton(AF_INET, host.c_str(), &at.sin_addr);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  return done(::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
}

std::string send_to(const std::string& place, bool second) {
  std::string host;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<unsigned short>(split(place, host)));
  ::inet_pton(AF_INET, host.c_str(), &at.sin_addr);
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  char byte = 'x';
  iovec data{&byte, 1};
  mmsghdr messages[2]{};
  for (mmsghdr& one : messages) {
    one.msg_hdr.msg_iov = &data;
    one.msg_hdr.msg_iovlen = 1;
  }
  messages[second ? 1 : 0].msg_hdr.msg_name = &at;
  messages[second ? 1 : 0].msg_hdr.msg_namelen = sizeof at;
  return done(0 < (second ? ::sendmmsg(fd, messages, 2, 0)
                          : static_cast<int>(::sendmsg(fd, &messages[0].msg_hdr, 0))));
}

std::string rewrite(const std::string& path) {
  const unsigned long long how[] = {O_WRONLY, 0, 0};  // struct open_how
  return done(0 <= ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), how, sizeof how));
}

std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      ++i;
      out += text[i] == 'r' ? '\r' : text[i] == 'n' ? '\n' : text[i];
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string answer(const std::string& question, const std::string& about) {
  if (question == "get")
    return said_by_proxy("http_proxy", "GET " + about + " HTTP/1.1\r\n\r\n", true);
  if (question == "tunnel") return tunnel(about);
  if (question == "tcp") return direct(about, SOCK_STREAM);
  if (question == "udp") return direct(about, SOCK_DGRAM);
  if (question == "raw") return said_by_proxy("http_proxy", unescaped(about), false);
  if (question == "serve") return serve(about);
  if (question == "say") return say(about);
  if (question == "call" || question == "flood") return call(about, question == "flood");
  if (question == "bind") return bind_to(about);
  if (question == "message" || question == "messages")
    return send_to(about, question == "messages");
  if (question == "rewrite") return rewrite(about);
  if (question == "children")
    return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD ? "none" : "one";
  return "what?";
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    std::printf("%s %s: %s\n", argv[i], argv[i + 1], answer(argv[i], argv[i + 1]).c_str());
    std::fflush(stdout);
  }
  return 0;
}

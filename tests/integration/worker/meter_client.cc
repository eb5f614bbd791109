// A small agent for tests: reserves and charges at its meter until it is denied, then stays or
// goes.  Linked statically, so that it runs in any image.
//   meter_client stay|go [RUN]      RUN: the name it gives as its run
//   meter_client hold               charges three calls, holds two more, and stays
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

int connect_meter() {
  const char* path = std::getenv("PROCTOR_METER");
  if (path == nullptr) return -1;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  std::strncpy(a.sun_path, path, sizeof a.sun_path - 1);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0 ? fd : -1;
}

std::string line_from(int fd) {
  std::string out;
  char c = 0;
  while (::read(fd, &c, 1) == 1 && c != '\n') out += c;
  return out;
}

std::string ask(int fd, const std::string& line) {
  const std::string whole = line + "\n";
  if (::write(fd, whole.data(), whole.size()) < 0) return "";
  std::string answer;
  do {
    answer = line_from(fd);
    std::puts(answer.c_str());
  } while (answer.find("\"event\"") != std::string::npos);
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  const int fd = connect_meter();
  if (fd < 0) {
    std::puts("no meter");
    return 7;
  }
  const bool hold = 1 < argc && std::string(argv[1]) == "hold";
  const bool stay = hold || (1 < argc && std::string(argv[1]) == "stay");
  const std::string run = 2 < argc ? ",\"run\":\"" + std::string(argv[2]) + "\"" : "";
  ask(fd, "NaN");
  ask(fd, "{\"op\":\"status\",\"run\":\"another/run/r1\"}");
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = "\"id\":\"c" + std::to_string(i) + "\"" + run;
    const std::string granted =
        ask(fd, "{\"op\":\"reserve\"," + id +
                    ",\"action\":\"llm_request\",\"model\":\"m\",\"input_tokens\":50,"
                    "\"output_tokens\":50}");
    if (granted.find("granted") == std::string::npos) break;
    constexpr int kCharged = 3, kHeld = 5;
    if (hold && i + 1 == kHeld) break;
    if (hold && kCharged <= i) continue;
    ask(fd, "{\"op\":\"charge\"," + id + ",\"input_tokens\":40,\"output_tokens\":50}");
  }
  std::fflush(stdout);
  while (stay) {  // it has been told, and does not go
    const std::string news = line_from(fd);
    if (news.empty()) ::pause();
    std::puts(news.c_str());
    std::fflush(stdout);
  }
  return 0;
}

#pragma once
// A provider of models on this machine's loopback, answered by a script: whole answers, streams
// piece by piece, and everything that goes wrong.  It keeps a log of its own, against which a
// ledger can be held.  Each connection is served on a thread of its own, request after request.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/json.h"

namespace proctor::testing {

struct ProviderSays {
  int status = 200;
  std::string headers{};  // further ones, each with its "\r\n"
  std::string content_type = "application/json";
  std::string body{};                 // with a Content-Length
  std::vector<std::string> pieces{};  // instead: chunks
  // What happens instead of an answer, or behind it.
  enum class Then {
    kGoOn,        // the next request of this connection
    kClose,       // nothing more, the framing may be left open
    kHang,        // behind what was said: silence, until release() or the client leaves
    kHangFirst,   // silence before the answer, until release()
    kCloseFirst,  // not a word
  } then = Then::kGoOn;
};

// What each API sends for a text.
ProviderSays chat_answer(const std::string& text, std::uint64_t input, std::uint64_t output);
ProviderSays messages_answer(const std::string& text, std::uint64_t input, std::uint64_t output);
ProviderSays responses_answer(const std::string& text, std::uint64_t input, std::uint64_t output);
// ... as a stream: events, one piece each.
ProviderSays chat_stream(const std::string& text, std::uint64_t input, std::uint64_t output);
ProviderSays messages_stream(const std::string& text, std::uint64_t input, std::uint64_t output);
ProviderSays responses_stream(const std::string& text, std::uint64_t input, std::uint64_t output);

class ProviderServer {
 public:
  struct Heard {
    std::string path, head;
    std::string raw;
    Json body;
  };
  // `call` counts requests from 0.
  using Script = std::function<ProviderSays(const Heard& request, std::size_t call)>;
  explicit ProviderServer(Script script);  // listens when it returns
  ProviderServer(const ProviderServer&) = delete;
  ProviderServer& operator=(const ProviderServer&) = delete;
  ~ProviderServer();  // ends every connection

  std::string at() const;   // "http://127.0.0.1:PORT"
  std::string url() const;  // with /v1
  std::vector<Heard> heard() const;
  void release();  // everything that hangs, now and later
  // Pieces that clients have taken so far, of all streams.
  std::size_t pieces() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace proctor::testing

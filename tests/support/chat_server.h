#pragma once
// A provider of models on this machine's loopback: OpenAI's chat completions, answered by a script.
// Any number of connections; each request is answered on a thread of its own.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/json.h"

namespace proctor::testing {

struct ChatAnswer {
  int status = 200;
  std::string body{};
  std::string headers{};  // further ones, each with its "\r\n"
  std::string content_type = "application/json";
  std::size_t said_length = 0;  // Content-Length, where it is not the body's
  bool hang = false;            // say nothing until the client or the server goes
  bool close = false;           // close without a word
};

// What a provider sends for a text; without tokens it says nothing of usage.
ChatAnswer chat_says(const std::string& text, std::uint64_t input_tokens = 0,
                     std::uint64_t output_tokens = 0);

class ChatServer {
 public:
  struct Heard {
    std::string head;  // request line and headers
    Json body;
  };
  // `call` counts requests from 0.
  using Script = std::function<ChatAnswer(const Json& body, std::size_t call)>;
  explicit ChatServer(Script script);  // listens when it returns
  ChatServer(const ChatServer&) = delete;
  ChatServer& operator=(const ChatServer&) = delete;
  ~ChatServer();  // ends every connection

  std::string url() const;  // "http://127.0.0.1:PORT/v1"
  std::vector<Heard> heard() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace proctor::testing

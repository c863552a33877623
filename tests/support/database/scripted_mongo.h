#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace firn {

// A member of a MongoDB replica set that keeps counters in memory and answers as the test says:
// write concern errors, a step-down, lost answers, refused logins. It speaks the wire protocol of
// MongoDB, on its own loopback port. Verbs are thread-safe.
class ScriptedMongo {
 public:
  ScriptedMongo();
  ~ScriptedMongo();
  ScriptedMongo(const ScriptedMongo&) = delete;
  ScriptedMongo& operator=(const ScriptedMongo&) = delete;

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // The set's members, as every member reports them. Without them it is a standalone server.
  void Join(std::vector<std::string> members);
  void BePrimary(bool primary);

  // The reaction to the next command of this name; several apply in their order.
  struct Reply {
    bool execute = true;     // before it is answered
    std::string json{};      // in place of the answer; empty: the usual one
    bool close = false;      // closes the connection in place of an answer
    std::string and_json{};  // fields added to the usual answer
  };
  void Script(const std::string& command, Reply reply);

  // The commands so far, as JSON, without greetings and pings.
  std::vector<std::string> commands();
  int64_t max(const std::string& tag);
  void SetMax(const std::string& tag, int64_t max);

 private:
  void Accept();
  void Serve(int socket);
  // Returns the answer as BSON; nullopt closes the connection.
  std::optional<std::string> Answer(const std::string& document);
  std::string Greeting();

  std::mutex mutex_;
  std::vector<std::string> members_;
  bool primary_ = true;
  std::multimap<std::string, Reply> script_;
  std::vector<std::string> commands_;
  std::map<std::string, int64_t> counters_;
  std::map<std::string, std::string> clusters_;  // the mark of each
  int listener_;
  int port_;
  bool stopped_ = false;
  std::list<int> sockets_;
  std::list<std::thread> threads_;
};

}  // namespace firn

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// A protocol for the load generator: the bytes of one request, and the end of each answer.
// Immutable, thread-safe.
class Dialect {
 public:
  struct Answer {
    size_t length = 0;     // 0: incomplete
    bool refused = false;  // a valid refusal
    bool broken = false;   // invalid: the connection cannot be used any more
    int64_t id = 0;        // unless refused or broken; the first of several
  };

  virtual ~Dialect() = default;

  // The first bytes of a connection, before its first request; empty: none.
  const std::string& hello() const { return hello_; }

  // Parses the answer to hello() in `bytes`, which contain nothing else.
  virtual Answer ReadHello(std::string_view) const { return {.broken = true}; }

  // All requests of a run are equal.
  const std::string& request() const { return request_; }

  // Parses the first answer in `bytes`.
  virtual Answer Read(std::string_view bytes) const = 0;

 protected:
  explicit Dialect(std::string request, std::string hello = {})
      : hello_(std::move(hello)), request_(std::move(request)) {}

 private:
  const std::string hello_;
  const std::string request_;
};

// Dialects by name: "thrift" (framed binary getId(subject)), "list" and "runs" (getIds and getRuns
// of `ids` ids), "resp" (INCR subject), "http" (GET subject, which is the path), "echo" (expects
// the bytes of the thrift request back), and those of database_dialect.h. Refuses unknown names.
Result<std::unique_ptr<Dialect>> MakeDialect(std::string_view name, std::string_view subject,
                                             int32_t ids = 1);

}  // namespace firn

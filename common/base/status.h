#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace firn {

// The code of a status. It names the caller's remedy for a failure, not the cause.
enum class Code {
  kOk,
  kInvalid,      // fix the request or the configuration; repeating it will not help
  kNotFound,     // it does not exist; create it, or use another one
  kConflict,     // changed concurrently; read again, then decide
  kUnavailable,  // nothing was done; try again later, or elsewhere
  kUnknown,      // it may have been done; read the result before a retry
  kExhausted,    // there is no more of it, and waiting does not help
  kCorrupt,      // the data are not trustworthy; an operator must check them
  kDenied,       // not permitted; fix credentials or file modes
  kInternal,     // a defect of this program
};

std::string_view CodeName(Code code);

// The outcome of an operation: success, or a code and a message.
// Thread-compatible, cheap to move. An ok status has no message.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // Returns the failure with "context: " before its message. Does not change an ok status.
  Status WithContext(std::string_view context) &&;
  Status WithContext(std::string_view context) const&;

  // "ok", or "<code name>: <message>".
  std::string ToString() const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

std::ostream& operator<<(std::ostream& out, const Status& status);

inline Status Invalid(std::string message) { return {Code::kInvalid, std::move(message)}; }
inline Status NotFound(std::string message) { return {Code::kNotFound, std::move(message)}; }
inline Status Conflict(std::string message) { return {Code::kConflict, std::move(message)}; }
inline Status Unavailable(std::string message) { return {Code::kUnavailable, std::move(message)}; }
inline Status Unknown(std::string message) { return {Code::kUnknown, std::move(message)}; }
inline Status Exhausted(std::string message) { return {Code::kExhausted, std::move(message)}; }
inline Status Corrupt(std::string message) { return {Code::kCorrupt, std::move(message)}; }
inline Status Denied(std::string message) { return {Code::kDenied, std::move(message)}; }
inline Status Internal(std::string message) { return {Code::kInternal, std::move(message)}; }

// Aborts the process with a message. Invariants are checked in release builds, too: a server that
// does not know its own state must not issue ids.
[[noreturn]] void Die(std::string_view why);

// A value, or the status of the failure. Never contains an ok status without a value.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit: a value is a result, and so is a failure.
  Result(T value)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(value)) {}
  Result(Status status)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<0>, std::move(status)) {
    if (std::get<0>(state_).ok()) Die("a Result was made from an ok Status without a value");
  }

  bool ok() const { return state_.index() == 1; }
  Code code() const { return ok() ? Code::kOk : std::get<0>(state_).code(); }
  Status status() const { return ok() ? Status() : std::get<0>(state_); }

  // Returns the value; aborts if there is none.
  T& value() & { return Checked(); }
  const T& value() const& { return const_cast<Result*>(this)->Checked(); }
  T&& value() && { return std::move(Checked()); }
  T value_or(T other) const& { return ok() ? std::get<1>(state_) : std::move(other); }

  T& operator*() & { return Checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->Checked(); }
  T&& operator*() && { return std::move(Checked()); }
  T* operator->() { return &Checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->Checked(); }

 private:
  T& Checked() {
    if (!ok()) Die(std::get<0>(state_).ToString());
    return std::get<1>(state_);
  }

  std::variant<Status, T> state_;
};

}  // namespace firn

// FIRN_TRY(expr): returns the failure of a Status expression to the caller.
#define FIRN_TRY(expr)                                                              \
  do {                                                                              \
    if (::firn::Status firn_status = (expr); !firn_status.ok()) return firn_status; \
  } while (false)

// FIRN_ASSIGN(auto x, expr): assigns the value of a Result expression, or returns its failure.
#define FIRN_ASSIGN(lhs, expr) FIRN_ASSIGN_IMPL(FIRN_CONCAT(firn_result_, __LINE__), lhs, expr)
#define FIRN_ASSIGN_IMPL(result, lhs, expr) \
  auto result = (expr);                     \
  if (!result.ok()) return result.status(); \
  lhs = std::move(result).value()
#define FIRN_CONCAT(a, b) FIRN_CONCAT_IMPL(a, b)
#define FIRN_CONCAT_IMPL(a, b) a##b

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "server/lease/lease_desk.h"

namespace firn::front {

// Prefix of the names of users who have logged in through the Redis protocol.
inline constexpr std::string_view kLoginPrefix = "redis:";
// The right to lease machine ids, listed like a tag; `@lease:20` limits the number of leases.
inline constexpr std::string_view kLeaseRight = "@lease";
// The right to create tags by their first use, listed like a tag; `*` does not contain it.
inline constexpr std::string_view kCreateRight = "@create";

// Decides which client may take ids of which tags, by its names:
//
//     # NAME and TAG,TAG,... or * for all; a name without spaces, tags without commas
//     shop.example    order,order item
//     spiffe://x/etl  *
//     redis:alice     order
//     local.example   *,@lease:20,@create
//
// A client has the names of its certificate (the DNS names and URIs of its subjectAltName, or its
// common name), and `redis:USER` if it has logged in through the Redis protocol. Each name grants
// the rights in its line; a name without a line grants none. A name of a certificate that begins
// with `redis:` is ignored. A right that begins with `@lease` and has neither form above is
// invalid, so only `*` grants a tag with such a name.
//
// Rights are checked at every call, so removing a line also affects connections that are
// open. Thread-safe.
class TagRights {
  // The rights of one line.
  struct Line {
    std::set<std::string, std::less<>> tags{};  // "*": all tags
    std::optional<size_t> leases_max{};         // the number behind kLeaseRight

    bool Grants(std::string_view tag) const;
  };
  using Table = std::map<std::string, Line, std::less<>>;

 public:
  using Names = std::vector<std::string>;

  // One thread's access: it takes the lock only when the file has changed or a call is refused. The
  // rights must outlive it.
  class Reader {
   public:
    explicit Reader(TagRights& rights) : rights_(&rights) {}

    // Whether a client may take ids of `tag` that has these names on its certificate and has logged
    // in as `user`, if that is not empty. A refusal is counted under `user`, or else the first
    // name.
    bool Permit(const Names& names, std::string_view user, std::string_view tag);

    // Whether one of the names has the right to create tags. Counts no refusal.
    bool PermitCreation(const Names& names, std::string_view user);

    // Permit for leases. If several names have the right, the one with the highest limit counts,
    // and of equal ones the first. Nullopt: no name has it.
    std::optional<LeaseClient> PermitLeases(const Names& names, std::string_view user);

   private:
    template <typename Grants>
    bool AnyLine(const Names& names, std::string_view user, Grants grants);
    void Refresh();
    // Null: the name has no line, or must not have one.
    const Line* LineOf(std::string_view name) const;
    const Line* LineOfCertificate(std::string_view name) const;
    void CountRefused(const Names& names, std::string_view user);

    TagRights* rights_;
    uint64_t edition_ = 0;
    std::shared_ptr<const Table> table_;
  };

  explicit TagRights(std::string file) : file_(std::move(file)) {}

  // Reads the file if it has changed. kInvalid names the invalid line. Every failure leaves the
  // earlier rights in force, and is reported once for each state of the file.
  Status Load();

  // Like Load, even if the file has not changed, so that its fault is reported again.
  Status Reload();

  // How often each name was refused. Names beyond kNamesCounted count as "others".
  static constexpr size_t kNamesCounted = 1000;
  std::map<std::string, uint64_t> refused() const;

 private:
  static Result<Table> Parse(std::string_view text);
  static Status ParseRight(const std::string& right, Line& line);

  void CountRefused(std::string who);

  const std::string file_;
  std::atomic<uint64_t> edition_ = 1;  // of table_: set under the mutex, after it
  mutable std::mutex mutex_;           // guards the members below
  std::string stamp_;                  // of the file, at its last reading
  std::shared_ptr<const Table> table_ = std::make_shared<const Table>();
  std::map<std::string, uint64_t> refused_;
};

}  // namespace firn::front

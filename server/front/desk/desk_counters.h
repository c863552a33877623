#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/front/net/counters.h"
#include "server/issue/refusal.h"
#include "server/issue/request.h"
#include "server/issue/tag_table.h"

namespace firn::front {

// Counts of one IO thread. Written by that thread, read by any.
class DeskCounters {
 public:
  static constexpr size_t kTagsMax = 1000;  // tags beyond it are counted together under ""

  DeskCounters() = default;
  DeskCounters(const DeskCounters&) = delete;
  DeskCounters& operator=(const DeskCounters&) = delete;

  void CountIssued(const Tag& tag, uint64_t ids, uint64_t calls = 1) {
    calls_.Add(calls);
    if (&tag != last_tag_) Find(tag);
    last_issued_->Add(ids);
  }
  void CountRefused(Reason reason, uint64_t calls = 1) {
    calls_.Add(calls);
    refused_[static_cast<size_t>(reason)].Add(calls);
  }

  // Calls for ids.
  struct Calls {
    uint64_t calls = 0;  // issued or refused
    std::array<uint64_t, kReasons> refused{};

    void Add(const Calls& more);
  };
  struct OfProtocol : Calls {
    bool served = false;       // the public port serves it
    uint64_t connections = 0;  // open ones
  };
  struct Sums : Calls {  // over all protocols
    PerProtocol<OfProtocol> protocols;
    std::map<std::string, uint64_t> issued;  // ids by tag
  };
  // Adds the counts to the sums, under this protocol. Any thread.
  void AddTo(Sums& sums, ProtocolKind protocol) const;

 private:
  void Find(const Tag& tag);

  Count calls_;
  std::array<Count, kReasons> refused_;
  const Tag* last_tag_ = nullptr;
  Count* last_issued_ = nullptr;
  mutable std::mutex mutex_;  // held when the writer changes the map, and when others read it
  std::map<const Tag*, std::unique_ptr<Count>> issued_;
};

}  // namespace firn::front

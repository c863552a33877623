#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/slot.h"
#include "registry/state/state_folder.h"

namespace firn {

// What the id clock showed at a reading of CLOCK_BOOTTIME. The reading means something only within
// one boot and one time namespace: each namespace counts from a zero of its own.
struct ClockPair {
  WallMs id_time;
  BootMs boot;
  uint64_t time_namespace = 0;  // the inode of /proc/self/ns/time; 0: not known

  // Whether it tells the time at `now` of the boot clock, read in time namespace `here`.
  bool Tells(BootMs now, uint64_t here) const {
    return here != 0 && here == time_namespace && now >= boot && id_time != WallMs();
  }
  WallMs TimeAt(BootMs now) const { return id_time + (now - boot); }

  friend bool operator==(const ClockPair&, const ClockPair&) = default;
};

// The permission to go on inside a claim whose process died: every stamp of `slot` in
// [limit, bound) is free, because the dead process alone held the claim and used none of them.
struct Grant {
  Nonce nonce;
  Nonce word{};          // of the record as it was last acknowledged; zero: none
  Nonce pending_word{};  // of a write that was sent and perhaps applied; zero: none
  Slot slot;
  MachineId machine;         // the same as a number
  WallMs bound;              // R, as the registry acknowledged it
  WallMs limit;              // L: stamps below it may have been used
  int64_t version = 0;       // V of the slot's record, at least; 32 bits, which wrap
  int64_t created_zxid = 0;  // Z: which creation of that record
  int64_t meta_version = 0;  // M, under which the claim was made; 32 bits, which wrap
  std::string uuid;          // of the cluster
  ClockPair clocks{};        // the last one

  friend bool operator==(const Grant&, const Grant&) = default;
};

// The grant file: two records of 1024 bytes, written in turn and in place. No sector of a disk
// holds parts of both.
//
//     0                                                                         1023
//     +---------------------------------------------------------------------------+
//     | firn-grant 2 <counter> <nonce> <word> <pending word> <rack> <worker>      |
//     | <machine> <bound> <limit> <version> <zxid> <meta version> <uuid>          |
//     | <id clock> <boot clock> <time namespace> <boot id>                        |
//     | <device> <inode> <birth> <the same three of the lock file>                |
//     | <check> blanks, newline                                                   |
//     +---------------------------------------------------------------------------+
//     | the same, of the other turn                                               |
//     +---------------------------------------------------------------------------+
//
// The higher counter counts. A write is complete before anything that it permits is used, so a
// record torn by the death of the machine never stood for used stamps: the other one still holds.
// A nonce of zero: no permission (void). Owned by the control thread.
class GrantFile {
 public:
  static constexpr size_t kRecordBytes = StateFolder::kGrantBytes / 2;

  // What Read found.
  struct Found {
    Grant grant;
    GrantIdentity identity;  // as written: whose permission it is
    bool damaged = false;    // the other record is neither blank nor good
  };

  // `folder` must outlive the object.
  explicit GrantFile(StateFolder& folder) : folder_(folder) {}

  // The newest record. kNotFound: new file, or void. kCorrupt: neither record is good. Read once,
  // before the first write: it also finds out which record is the older one.
  Result<Found> Read();

  // Overwrites the older record. After a failure the same record is written again next time.
  Status Write(const Grant& grant, StateFolder::Durability durability);

  // Overwrites both, so that not even damage brings a permission back.
  Status Void(StateFolder::Durability durability);

  Status Remove() { return folder_.RemoveGrant(); }

  GrantIdentity identity() const { return folder_.grant_identity(); }

 private:
  StateFolder& folder_;
  uint64_t counter_ = 0;  // of the newest record
  size_t next_ = 0;       // 0 or 1: which record comes next
};

// One record's bytes and back. kNotFound: all blanks. Pure functions.
struct GrantRecord {
  uint64_t counter = 0;
  Grant grant;
  GrantIdentity identity;

  friend bool operator==(const GrantRecord&, const GrantRecord&) = default;
};
std::string FormatGrantRecord(const GrantRecord& record);
Result<GrantRecord> ParseGrantRecord(std::string_view bytes);

}  // namespace firn

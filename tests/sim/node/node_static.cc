// Faults of the disk of a host whose machine id is static.

#include "tests/sim/node/node_host.h"

namespace firn {

void NodeHost::CopyFrom(const NodeHost& other, bool same_inode, bool same_machine) {
  if (same_inode) disk().identity = other.disks_.front().identity;
  disk().PutInPlace(other.disks_.front(), same_inode);
  disk().identity.boot_id = same_machine ? other.disks_.front().identity.boot_id : "boot-" + name_;
  if (same_machine) {
    clock_ = other.clock_;
    uneven_ = other.uneven_;
  }
  has_issued_ = other.has_issued_;
  is_copy_ = disk().Permits().has_value();
}

void NodeHost::PutBackup(size_t writes_ago, bool same_inode) {
  disk().BringBack(writes_ago);
  disk().PutInPlace(disk(), same_inode);
  adopts_ = false;
  is_copy_ = disk().Permits().has_value();
}

void NodeHost::BringBack(size_t writes_ago) {
  went_back_ = true;
  disk().BringBack(writes_ago);
}

void NodeHost::Adopt() {
  is_copy_ = false;
  adopts_ = true;
}

void NodeHost::Retire() {
  Kill();
  Trace("is given up");
  retired_ = true;
}

}  // namespace firn

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/file_writer.h"
#include "registry/claim/claim_options.h"
#include "registry/state/kept_bounds.h"
#include "server/lease/lease_bounds.h"

namespace firn {

// Runs a task on the control thread, soon and in order; from any thread.
using PostToLeases = std::function<void(std::function<void()> task)>;

// <stem>.leases in the state folder. Written on a thread of its own, since a disk may stall. Once
// the object has ended, nothing is posted.
class LeaseFile final : public LeaseMemory {
 public:
  // `stem`: the folder and the first part of the file's name.
  LeaseFile(const std::string& stem, PostToLeases post);
  ~LeaseFile() override;

  // What the file has: nothing if it does not exist.
  static Result<KeptBounds> ReadFrom(const std::string& stem);
  // Puts what the file has into the options of a start. If it cannot be read, the server could not
  // notice that the registry has lost a bound: it logs why, and claims nothing. An empty stem has
  // nothing.
  static void LoadInto(const std::string& stem, ClaimOptions& claim);

  void Keep(std::string text, Kept done) override;

 private:
  static std::string PathOf(const std::string& stem) { return stem + ".leases"; }

  // Of the write under way; shared with the writer's thread, which may outlive this.
  struct Shared;

  const std::string path_;
  const std::shared_ptr<Shared> shared_;
  FileWriter writer_;
};

}  // namespace firn

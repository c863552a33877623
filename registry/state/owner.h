#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "registry/state/state_folder.h"

namespace firn {

// The name of a server in slot records and in file names. A value.
class OwnerName {
 public:
  // `application` has 1 to 100 letters, digits, '-', '_' and '.'; `ip` is an IPv4 or IPv6 address
  // in its usual text form, "127.0.0.1" or "::1". kInvalid otherwise.
  static Result<OwnerName> Make(std::string_view application, uint16_t port, std::string_view ip);

  // Returns the same server with files named by `name`, which has 1 to 100 letters, digits, '-' and
  // '_'; kInvalid otherwise. For a server whose address changes.
  Result<OwnerName> WithFilesOf(std::string_view name) const;

  // "firn.7609.2130706433": application, port, address as a number.
  const std::string& text() const { return text_; }
  // "firn.7609.2130706433.9e107d9d372bb682": the name of the user of this state folder on this
  // host, for slot records. The address alone does not distinguish programs: 127.0.0.1, 0.0.0.0 and
  // addresses behind NAT are on every host. The name stays the same as long as the folder's lock
  // file exists; a copy of the folder has another name.
  std::string TextIn(const FileIdentity& lock_file, std::string_view host) const;
  // "firn:7609:2130706433", or "firn:<name>": the prefix of the files in a state folder.
  const std::string& file_stem() const { return file_stem_; }

  friend bool operator==(const OwnerName&, const OwnerName&) = default;

 private:
  OwnerName(std::string text, std::string file_stem)
      : text_(std::move(text)), file_stem_(std::move(file_stem)) {}

  std::string text_;
  std::string file_stem_;
};

// The name of an owner as people read it: "firn 127.0.0.1:7609" for
// "firn.7609.2130706433.9e107d9d372bb682", and "firn 127.0.0.1:7609 for shop-1" if a slash and the
// name of a lease follow. Returns any other text unchanged.
std::string FormatOwner(std::string_view owner);

}  // namespace firn

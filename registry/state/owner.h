#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "registry/state/state_folder.h"

namespace firn {

// Who a server is, in the form that stands in slot records and in file names. A value.
class OwnerName {
 public:
  // `application`: 1 to 100 letters, digits, '-', '_' and '.'; `ip`: an IPv4 or IPv6 address in its
  // usual text form, "127.0.0.1" or "::1". Refused otherwise.
  static Result<OwnerName> Make(std::string_view application, uint16_t port, std::string_view ip);

  // "firn.7609.2130706433": application, port, address as a number.
  const std::string& text() const { return text_; }
  // "firn.7609.2130706433.9e107d9d372bb682": the name of whoever has this state folder on this
  // host, as it stands in slot records. The address alone does not tell programs apart: 127.0.0.1,
  // 0.0.0.0 and the addresses behind a translation are on every host. It stays as long as the
  // folder's lock file, and a copy of the folder has another one.
  std::string TextIn(const FileIdentity& lock_file, std::string_view host) const;
  // "firn:7609:2130706433": what the files of a state folder begin with.
  const std::string& file_stem() const { return file_stem_; }

  friend bool operator==(const OwnerName&, const OwnerName&) = default;

 private:
  OwnerName(std::string text, std::string file_stem)
      : text_(std::move(text)), file_stem_(std::move(file_stem)) {}

  std::string text_;
  std::string file_stem_;
};

}  // namespace firn

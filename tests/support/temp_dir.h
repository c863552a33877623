#pragma once

#include <filesystem>
#include <string>

namespace firn {

// Below it lies what dies with the boot, on every Linux.
inline constexpr char kMemoryDir[] = "/dev/shm";
// And below it what outlives the boot; a TempDir elsewhere may be either.
inline constexpr char kDiskDir[] = "/var/tmp";

// A directory of a test's own, deleted with all it holds.
class TempDir {
 public:
  explicit TempDir(const std::filesystem::path& below = std::filesystem::temp_directory_path());
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ / name; }

  // Leaves the directory for whoever has to find out what went wrong, and says where it is.
  void Keep();

 private:
  std::filesystem::path path_;
  bool keep_ = false;
};

}  // namespace firn

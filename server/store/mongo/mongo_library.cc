#include "server/store/mongo/mongo_library.h"

#include <string>

#include <dlfcn.h>

namespace firn {
namespace {

constexpr const char* kRemedy = "; the package libmongoc-1.0-0 contains it";

// Resolves functions, and records the first missing one.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

// The library stays loaded until the program ends.
Result<MongoLibrary> LoadOnce() {
  void* const handle = dlopen(MongoLibrary::kFile, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return NotFound(std::string(dlerror()) + kRemedy);
  MongoLibrary library;
  Symbols symbols(handle);
  symbols.Find("mongoc_init", library.init);
  symbols.Find("mongoc_log_set_handler", library.log_set_handler);
  symbols.Find("mongoc_uri_new", library.uri_new);
  symbols.Find("mongoc_uri_destroy", library.uri_destroy);
  symbols.Find("mongoc_uri_set_option_as_int32", library.uri_set_option_as_int32);
  symbols.Find("mongoc_uri_set_option_as_bool", library.uri_set_option_as_bool);
  symbols.Find("mongoc_uri_set_option_as_utf8", library.uri_set_option_as_utf8);
  symbols.Find("mongoc_uri_set_username", library.uri_set_username);
  symbols.Find("mongoc_uri_set_password", library.uri_set_password);
  symbols.Find("mongoc_uri_set_auth_source", library.uri_set_auth_source);
  symbols.Find("mongoc_ssl_opt_get_default", library.ssl_opt_get_default);
  symbols.Find("mongoc_client_new_from_uri", library.client_new_from_uri);
  symbols.Find("mongoc_client_destroy", library.client_destroy);
  symbols.Find("mongoc_client_set_error_api", library.client_set_error_api);
  symbols.Find("mongoc_client_set_ssl_opts", library.client_set_ssl_opts);
  symbols.Find("mongoc_client_command_simple", library.client_command_simple);
  if (!symbols.missing().empty()) {
    return NotFound(std::string(MongoLibrary::kFile) + " has no " + symbols.missing() + kRemedy);
  }
  library.init();
  library.log_set_handler(nullptr, nullptr);  // the errors contain the same messages
  return library;
}

}  // namespace

Result<const MongoLibrary*> MongoLibrary::Load() {
  static const Result<MongoLibrary> loaded = LoadOnce();
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

}  // namespace firn

#pragma once

#include <mongoc/mongoc.h>

#include "common/base/status.h"

namespace firn {

// The functions of libmongoc that a store uses. The library is loaded when the first store of kind
// `mongo` connects: it loads 40 MB of other libraries, which most servers do not need.
struct MongoLibrary {
  static constexpr const char* kFile = "libmongoc-1.0.so.0";

  // Loads and initializes the library once. kNotFound names the package to install.
  static Result<const MongoLibrary*> Load();

  decltype(&mongoc_init) init = nullptr;
  decltype(&mongoc_log_set_handler) log_set_handler = nullptr;
  decltype(&mongoc_uri_new) uri_new = nullptr;
  decltype(&mongoc_uri_destroy) uri_destroy = nullptr;
  decltype(&mongoc_uri_set_option_as_int32) uri_set_option_as_int32 = nullptr;
  decltype(&mongoc_uri_set_option_as_bool) uri_set_option_as_bool = nullptr;
  decltype(&mongoc_uri_set_option_as_utf8) uri_set_option_as_utf8 = nullptr;
  decltype(&mongoc_uri_set_username) uri_set_username = nullptr;
  decltype(&mongoc_uri_set_password) uri_set_password = nullptr;
  decltype(&mongoc_uri_set_auth_source) uri_set_auth_source = nullptr;
  decltype(&mongoc_ssl_opt_get_default) ssl_opt_get_default = nullptr;
  decltype(&mongoc_client_new_from_uri) client_new_from_uri = nullptr;
  decltype(&mongoc_client_destroy) client_destroy = nullptr;
  decltype(&mongoc_client_set_error_api) client_set_error_api = nullptr;
  decltype(&mongoc_client_set_ssl_opts) client_set_ssl_opts = nullptr;
  decltype(&mongoc_client_command_simple) client_command_simple = nullptr;
};

}  // namespace firn

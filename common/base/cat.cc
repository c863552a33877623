#include "common/base/cat.h"

namespace firn {

std::string CatPieces(std::initializer_list<std::string_view> pieces) {
  size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  std::string all;
  all.reserve(bytes);
  for (const std::string_view piece : pieces) all += piece;
  return all;
}

}  // namespace firn

#include "server/front/desk/vesta_ids.h"

namespace firn::front {

Result<int64_t> MakeVestaId(const ComposeRequest& fields, const Backend& backend, Method method) {
  IdFields own;
  const Layout& layout = backend.view.layout();
  if (layout.Find(FieldKind::kMethod) != nullptr) own.method = MethodField(method);
  const auto machine = backend.view.machine();
  if (!machine && !fields.machine) return Invalid("machine is missing, and this server has none");
  own.machine = machine.value_or(MachineId());
  return Compose(fields, layout, backend.view.rack_split(), own);
}

}  // namespace firn::front

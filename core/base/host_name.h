// core/base/host_name.h - the name of this node: what agents register under and clients ask for.
//
// Source   uname(2), nodename: what gethostname(2) gives too.
#ifndef CORE_BASE_HOST_NAME_H_
#define CORE_BASE_HOST_NAME_H_

#include <sys/utsname.h>

#include <string>

namespace perfd {

inline std::string HostName() {
  utsname name{};
  return ::uname(&name) == 0 ? name.nodename : "localhost";
}

}  // namespace perfd

#endif  // CORE_BASE_HOST_NAME_H_

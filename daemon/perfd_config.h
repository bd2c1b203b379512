// daemon/perfd_config.h - the keys of perfd's configuration file, bound to its flags.
#ifndef DAEMON_PERFD_CONFIG_H_
#define DAEMON_PERFD_CONFIG_H_

#include "core/spec/config_table.h"
#include "daemon/perfd_flags.h"

namespace perfd::daemon {

// Valid as long as `flags` is.
ConfigTable PerfdConfig(PerfdFlags& flags);

}  // namespace perfd::daemon

#endif  // DAEMON_PERFD_CONFIG_H_

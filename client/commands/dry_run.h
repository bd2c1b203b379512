// client/commands/dry_run.h - perfctl submit --dry-run: what a profile would alter, without altering anything.
//
// Shape    submits the spec as a dry run, shows the progress of the look on `err`, prints table or JSON on `out`.
// Errors   as exit codes: kUnsafeTarget when every loop is refused, kNotFound when there is no hot loop, kBudget when no loop
//          would get a shadow; else those of the profile. An interrupt cancels it: nobody would ask for the rest.
#ifndef CLIENT_COMMANDS_DRY_RUN_H_
#define CLIENT_COMMANDS_DRY_RUN_H_

#include "absl/time/time.h"
#include "client/commands/command.h"
#include "core/model/profile_spec.h"
#include "core/model/report.h"

namespace perfd::client {

ExitCode DryRun(Terminal& terminal, ProfileSpec spec, absl::Duration timeout);

// Of a dry run that was not FAILED.
ExitCode DryRunExitCodeOf(const Report& report);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_DRY_RUN_H_

/* deploy/slurm/spank_perfd.c - SPANK plugin: --perfd[=preset], --no-perfd for sbatch, srun.
 *
 * It hands the user's wish to Prolog and Epilog as SPANK_PERFD_PROFILE=preset or
 * SPANK_PERFD_NO_PROFILE=1 and does nothing else: no file, no network, no Slurm command. Every
 * callback returns success, whatever happens: a plugin that fails after the options were read
 * drains nodes and holds jobs.
 *
 * Not --profile[=...]: Slurm has an option of that name (acct_gather_profile) and drops a plugin's,
 * with an error line on each command (docs/adr/0018-spank-option-names.md).
 *
 * Source: spank(8) "SPANK OPTIONS", "SPANK PLUGIN OPERATIONS"; slurm/spank.h of 22.05.
 */
#include <slurm/spank.h>
#include <stddef.h>
#include <stdlib.h>

#include "deploy/slurm/user_choice.h"

SPANK_PLUGIN(perfd, 1)

enum { kAsk, kRefuse };
// As in getopt_long(3), to which Slurm hands the number.
enum { kNoArgument = 0, kOptionalArgument = 2 };

// SPANK gives the callback of an option no place of its own to write to. The commands that load the
// plugin read their options in one thread.
static struct user_choice choice;

static int on_option(int value, const char* argument, int remote) {
  if (remote) return ESPANK_SUCCESS;  // on the compute node everything is decided
  if (value == kAsk)
    choice_ask(&choice, argument);
  else
    choice_refuse(&choice);
  return ESPANK_SUCCESS;
}

static struct spank_option options[] = {
    {"perfd", "[preset]", "profile this job while it runs; preset: one of the site's",
     kOptionalArgument, kAsk, on_option},
    {"no-perfd", NULL, "do not profile this job", kNoArgument, kRefuse, on_option},
    {"no-profile", NULL, "the same as --no-perfd", kNoArgument, kRefuse, on_option},
};

// Names under which Slurm tells the steps of a job what its submission was given.
static const char* const inherited_options[] = {"SLURM_SPANK__SLURM_SPANK_OPTION_perfd_perfd",
                                                "SLURM_SPANK__SLURM_SPANK_OPTION_perfd_no_perfd",
                                                "SLURM_SPANK__SLURM_SPANK_OPTION_perfd_no_profile"};

static int is_inherited(void) {
  for (size_t i = 0; i < sizeof inherited_options / sizeof inherited_options[0]; ++i)
    if (getenv(inherited_options[i]) != NULL) return 1;
  return 0;
}

static void pass_on(spank_t spank, const char* name, const char* value) {
  const spank_err_t result = spank_job_control_setenv(spank, name, value, 1);
  if (result != ESPANK_SUCCESS)
    slurm_spank_log("perfd: could not pass %s on to the job: %s", name, spank_strerror(result));
}

static void pass_preference_on(spank_t spank) {
  switch (choice_preference(&choice)) {
    case kPreferProfile:
      pass_on(spank, "PERFD_PROFILE", choice.preset);
      break;
    case kPreferNone:
      pass_on(spank, "PERFD_NO_PROFILE", "1");
      break;
    case kNoPreference:
      break;
  }
}

// What is said with a step comes too late, and what was said with its job is said again: Prolog gets
// the wish of a job of salloc from its first step, unless PrologFlags has Alloc.
static int of_a_step(spank_t spank) {
  if (is_inherited()) {
    pass_preference_on(spank);
  } else {
    slurm_spank_log(
        "perfd: --perfd and --no-perfd have no effect on a step: whether a job is profiled was "
        "decided when it began; give them to sbatch or salloc");
  }
  return ESPANK_SUCCESS;
}

int slurm_spank_init(spank_t spank, int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  const spank_context_t context = spank_context();
  // Remote too: slurmstepd warns about options that it is told of and does not know.
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
    return ESPANK_SUCCESS;
  for (size_t i = 0; i < sizeof options / sizeof options[0]; ++i)
    spank_option_register(spank, &options[i]);
  return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  const spank_context_t context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR) return ESPANK_SUCCESS;
  if (!choice.asked && !choice.refused) return ESPANK_SUCCESS;
  if (context == S_CTX_LOCAL && getenv("SLURM_JOB_ID") != NULL) return of_a_step(spank);
  const char* const remark = choice_remark(&choice);
  if (remark != NULL) slurm_spank_log("perfd: %s", remark);
  pass_preference_on(spank);
  return ESPANK_SUCCESS;
}

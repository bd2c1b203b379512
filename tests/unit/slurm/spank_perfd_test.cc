// The plugin in a Slurm of the test's own: what it registers, passes on and says, and that it never
// returns anything but success.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

extern "C" {
#include <slurm/spank.h>
}

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr spank_err_t kSuccess = static_cast<spank_err_t>(ESPANK_SUCCESS);

struct FakeSlurm {
  spank_context_t context = S_CTX_ALLOCATOR;
  spank_err_t registering = kSuccess;
  spank_err_t setting = kSuccess;
  std::vector<spank_option> options = {};
  std::map<std::string, std::string> control = {};
  std::vector<std::string> said = {};
};

FakeSlurm* slurm = nullptr;  // of the test that runs

}  // namespace

extern "C" {

spank_context_t spank_context(void) {
  return slurm->context;
}

spank_err_t spank_option_register(spank_t, spank_option* option) {
  slurm->options.push_back(*option);
  return slurm->registering;
}

spank_err_t spank_job_control_setenv(spank_t, const char* name, const char* value, int) {
  if (slurm->setting == kSuccess) slurm->control[name] = value;
  return slurm->setting;
}

const char* spank_strerror(spank_err_t) {
  return "an error of Slurm";
}

void slurm_spank_log(const char* format, ...) {
  char line[1000];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  slurm->said.emplace_back(line);
}

extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;

}  // extern "C"

namespace {

// The plugin keeps the choice for the life of its process: each case has a process of its own.
class SpankPerfdTest : public testing::Test {
 protected:
  SpankPerfdTest() { slurm = &slurm_; }
  ~SpankPerfdTest() override {
    slurm = nullptr;
    for (const char* name : {"SLURM_JOB_ID", kInherited}) ::unsetenv(name);
  }

  void Start(spank_context_t context) {
    slurm_.context = context;
    ASSERT_EQ(slurm_spank_init(nullptr, 0, nullptr), ESPANK_SUCCESS);
  }

  void Give(const std::string& name, const char* argument, int remote = 0) {
    for (const spank_option& option : slurm_.options)
      if (option.name == name) {
        ASSERT_EQ(option.cb(option.val, argument, remote), ESPANK_SUCCESS);
        return;
      }
    FAIL() << "no option " << name;
  }

  void Finish() { ASSERT_EQ(slurm_spank_init_post_opt(nullptr, 0, nullptr), ESPANK_SUCCESS); }

  static constexpr char kInherited[] = "SLURM_SPANK__SLURM_SPANK_OPTION_perfd_perfd";
  FakeSlurm slurm_;
};

#define IN_A_PROCESS_OF_ITS_OWN(...)     \
  EXPECT_EXIT(                           \
      {                                  \
        __VA_ARGS__;                     \
        std::exit(HasFailure() ? 1 : 0); \
      },                                 \
      testing::ExitedWithCode(0), "")

TEST_F(SpankPerfdTest, SaysWhatItIs) {
  EXPECT_STREQ(plugin_name, "perfd");
  EXPECT_STREQ(plugin_type, "spank");
  EXPECT_EQ(plugin_version, static_cast<unsigned>(SLURM_VERSION_NUMBER));
}

TEST_F(SpankPerfdTest, HasItsOptionsWhereOptionsAreRead) {
  for (const spank_context_t context : {S_CTX_LOCAL, S_CTX_ALLOCATOR, S_CTX_REMOTE}) {
    slurm_.options.clear();
    Start(context);
    ASSERT_EQ(slurm_.options.size(), 3u) << context;
    EXPECT_STREQ(slurm_.options[0].name, "perfd");
    EXPECT_EQ(slurm_.options[0].has_arg, 2);  // optional
    EXPECT_STREQ(slurm_.options[1].name, "no-perfd");
    EXPECT_STREQ(slurm_.options[2].name, "no-profile");
    EXPECT_EQ(slurm_.options[2].has_arg, 0);
    for (const spank_option& option : slurm_.options) EXPECT_NE(option.usage, nullptr);
  }
  for (const spank_context_t context : {S_CTX_SLURMD, S_CTX_JOB_SCRIPT, S_CTX_ERROR}) {
    slurm_.options.clear();
    Start(context);
    EXPECT_THAT(slurm_.options, IsEmpty()) << context;
  }
}

TEST_F(SpankPerfdTest, WithoutAnOptionTheJobIsAsItWas) {
  Start(S_CTX_ALLOCATOR);
  Finish();
  EXPECT_THAT(slurm_.control, IsEmpty());
  EXPECT_THAT(slurm_.said, IsEmpty());
}

TEST_F(SpankPerfdTest, PassesThePresetOn) {
  IN_A_PROCESS_OF_ITS_OWN({
    Start(S_CTX_ALLOCATOR);
    Give("perfd", "deep");
    Finish();
    EXPECT_THAT(slurm_.control, ElementsAre(Pair("PERFD_PROFILE", "deep")));
    EXPECT_THAT(slurm_.said, IsEmpty());
  });
}

TEST_F(SpankPerfdTest, SrunThatMakesItsOwnAllocationPassesItOn) {
  IN_A_PROCESS_OF_ITS_OWN({
    Start(S_CTX_LOCAL);
    Give("perfd", nullptr);
    Finish();
    EXPECT_THAT(slurm_.control, ElementsAre(Pair("PERFD_PROFILE", "default")));
  });
}

TEST_F(SpankPerfdTest, PassesARefusalOnUnderBothNames) {
  for (const char* name : {"no-perfd", "no-profile"})
    IN_A_PROCESS_OF_ITS_OWN({
      Start(S_CTX_ALLOCATOR);
      Give(name, nullptr);
      Finish();
      EXPECT_THAT(slurm_.control, ElementsAre(Pair("PERFD_NO_PROFILE", "1")));
      EXPECT_THAT(slurm_.said, IsEmpty());
    });
}

TEST_F(SpankPerfdTest, BothAtOnceRefuseAndAreSaid) {
  IN_A_PROCESS_OF_ITS_OWN({
    Start(S_CTX_ALLOCATOR);
    Give("no-perfd", nullptr);
    Give("perfd", "deep");
    Finish();
    EXPECT_THAT(slurm_.control, ElementsAre(Pair("PERFD_NO_PROFILE", "1")));
    EXPECT_THAT(slurm_.said, ElementsAre(HasSubstr("both given")));
  });
}

TEST_F(SpankPerfdTest, ABadNameIsSaidAndNotPassedOn) {
  IN_A_PROCESS_OF_ITS_OWN({
    Start(S_CTX_ALLOCATOR);
    Give("perfd", "two words");
    Finish();
    EXPECT_THAT(slurm_.control, IsEmpty());
    EXPECT_THAT(slurm_.said, ElementsAre(HasSubstr("ignored")));
  });
}

TEST_F(SpankPerfdTest, AStepIsToldThatItIsTooLate) {
  IN_A_PROCESS_OF_ITS_OWN({
    ::setenv("SLURM_JOB_ID", "4711", 1);
    Start(S_CTX_LOCAL);
    Give("perfd", nullptr);
    Finish();
    EXPECT_THAT(slurm_.control, IsEmpty());
    EXPECT_THAT(slurm_.said, ElementsAre(HasSubstr("no effect on a step")));
  });
}

// Slurm gives the steps of a job what its submission was given; of salloc's jobs Prolog hears it from
// the first step only.
TEST_F(SpankPerfdTest, AStepPassesOnWhatItInheritedAndSaysNothing) {
  IN_A_PROCESS_OF_ITS_OWN({
    ::setenv("SLURM_JOB_ID", "4711", 1);
    ::setenv(kInherited, "(null)", 1);
    Start(S_CTX_LOCAL);
    Give("perfd", "(null)");
    Finish();
    EXPECT_THAT(slurm_.control, ElementsAre(Pair("PERFD_PROFILE", "default")));
    EXPECT_THAT(slurm_.said, IsEmpty());
  });
}

TEST_F(SpankPerfdTest, OnTheComputeNodeItOnlyKnowsTheOptions) {
  IN_A_PROCESS_OF_ITS_OWN({
    Start(S_CTX_REMOTE);
    Give("perfd", "deep", 1);
    Finish();
    EXPECT_THAT(slurm_.control, IsEmpty());
    EXPECT_THAT(slurm_.said, IsEmpty());
  });
}

TEST_F(SpankPerfdTest, FailuresOfSlurmAreNotFailuresOfTheJob) {
  IN_A_PROCESS_OF_ITS_OWN({
    slurm_.registering = ESPANK_BAD_ARG;
    slurm_.setting = ESPANK_NOT_LOCAL;
    Start(S_CTX_ALLOCATOR);
    Give("perfd", "deep");
    Finish();
    EXPECT_THAT(slurm_.said, ElementsAre(HasSubstr("could not pass PERFD_PROFILE on")));
  });
}

}  // namespace

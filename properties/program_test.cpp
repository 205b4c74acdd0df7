// The program as its users meet it: commands, help, exit statuses, bad input, sharding, reports.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "holdfast/sim/files.hpp"
#include "holdfast/sim/invariants.hpp"
#include "strange_plugin.hpp"
#include "temporary_directory.hpp"

extern char** environ;

namespace holdfast::sim {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Ended {
  int status = -1;  // 128 + signal when it was killed
  std::string out;
  std::string err;
};

using Variables = std::map<std::string, std::string>;

// A workplace with the program in it: it runs here, and nothing of the environment that decides sharding reaches it.
class Program : public ::testing::Test {
 protected:
  // `keys` is a file in the workplace that is read as standard input; empty = that of the test.
  Ended run(const std::vector<std::string>& arguments, const Variables& variables = {}, const std::string& keys = {}) {
    return run_program(HOLDFAST_PROGRAM, arguments, variables, keys);
  }
  Ended run_program(const std::string& program, const std::vector<std::string>& arguments,
                    const Variables& variables = {}, const std::string& keys = {}) {
    const std::string out = directory_.path("stdout.txt");
    const std::string err = directory_.path("stderr.txt");
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const std::vector<std::string> environment = environment_with(variables);
    const pid_t pid = fork();
    if (pid == 0) become(words, environment, keys, out, err);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    Ended ended;
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended.out = text_of("stdout.txt");
    ended.err = text_of("stderr.txt");
    std::remove(out.c_str());
    std::remove(err.c_str());
    return ended;
  }

  std::string text_of(const std::string& name) {
    auto text = read_input_file(directory_.path(name), 64ULL << 20);
    EXPECT_TRUE(text) << to_string(text.error());
    return text.value_or("");
  }
  json report_of(const std::string& out) { return json::parse(text_of(out + "/report.json")); }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_output_file(directory_.path(name), text));
  }
  [[nodiscard]] std::vector<std::string> entries(const std::string& inside = ".") const {
    return directory_.entries(inside);
  }

 private:
  static std::vector<std::string> environment_with(const Variables& variables) {
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text(*entry);
      const bool decides = text.starts_with("SLURM_") || text.starts_with("JOB_COMPLETION") ||
                           text.starts_with("TEST_") || text.starts_with("GTEST_") || text.starts_with("NO_COLOR=");
      if (!decides) environment.push_back(text);
    }
    for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
    return environment;
  }

  [[noreturn]] void become(std::vector<std::string> words, std::vector<std::string> environment,
                           const std::string& keys, const std::string& out, const std::string& err) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (std::string& entry : environment) envp.push_back(entry.data());
    envp.push_back(nullptr);
    if (!keys.empty()) dup2(open(directory_.path(keys).c_str(), O_RDONLY), STDIN_FILENO);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    if (chdir(directory_.path().c_str()) == 0) execve(argv[0], argv.data(), envp.data());
    _exit(126);
  }

  TemporaryDirectory directory_;
};

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

// ---- Help and versions.

TEST_F(Program, HelpsWhenAskedAndWhenNobodySaysAnything) {
  const Ended asked = run({"--help"});
  EXPECT_EQ(asked.status, 0);
  EXPECT_THAT(asked.out, AllOf(HasSubstr("usage: holdfast"), HasSubstr("exit status"), HasSubstr("examples")));
  const Ended silent = run({});
  EXPECT_EQ(silent.status, 2);
  EXPECT_THAT(silent.out, IsEmpty());
  EXPECT_THAT(silent.err, HasSubstr("usage: holdfast"));
}

TEST_F(Program, EveryCommandHasHelpWithExamplesWithinAHundredColumns) {
  for (const char* command :
       {"run", "explore", "sweep", "replay", "shrink", "workload", "report", "bench", "list", "completion"}) {
    const Ended help = run({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_THAT(help.out, AllOf(HasSubstr(std::string("usage: holdfast ") + command), HasSubstr("examples:")));
    EXPECT_LE(longest_line(help.out), 100U) << command;
    EXPECT_EQ(run({"help", command}).out, help.out);
  }
}

TEST_F(Program, TellsItsVersion) {
  const Ended ended = run({"--version"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, ::testing::MatchesRegex("holdfast [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(Program, ListsWhatThereIsWithinAHundredColumns) {
  const std::map<std::string, std::string> members{{"invariants", "sync-before-commit"},
                                                   {"faults", "local_fast_put_commit"},
                                                   {"scenarios", "abcd"},
                                                   {"marks", "full hit"},
                                                   {"profiles", "default"}};
  for (const auto& [what, member] : members) {
    const Ended ended = run({"list", what});
    EXPECT_EQ(ended.status, 0) << what;
    EXPECT_THAT(ended.out, HasSubstr(member));
    EXPECT_LE(longest_line(ended.out), 100U) << what;
  }
}

// ---- Bad usage: status 2, what and where and the remedy, nothing written.

struct BadUsage {
  std::vector<std::string> arguments;
  std::string message;
};

class ProgramBadUsage : public Program, public ::testing::WithParamInterface<BadUsage> {};

TEST_P(ProgramBadUsage, IsRefusedWithARemedyAndNothingIsWritten) {
  const Ended ended = run(GetParam().arguments);
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr(GetParam().message));
  EXPECT_THAT(ended.err, HasSubstr("Try 'holdfast "));
  EXPECT_THAT(ended.out, IsEmpty());
  EXPECT_THAT(entries(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Each, ProgramBadUsage,
    ::testing::Values(
        BadUsage{{"rum"}, "no command 'rum'; did you mean 'run'?"}, BadUsage{{"--verison"}, "no command"},
        BadUsage{{"run", "--seed", "1-2"}, "no option '--seed'; did you mean '--seeds'"},
        BadUsage{{"run", "--out", "out", "--seeds", "9-3"}, "say 3-9"},
        BadUsage{{"run", "--out", "out", "--seeds", "0"}, "seeds count from 1"},
        BadUsage{{"run", "--seeds"}, "--seeds"}, BadUsage{{"run", "--seeds", "1", "--seeds", "2"}, "said twice"},
        BadUsage{{"run", "stray"}, "takes no operand"}, BadUsage{{"run", "--quiet=yes"}, "quiet"},
        BadUsage{{"run", "--out", "out", "--jobs", "0"}, "from 1 to"},
        BadUsage{{"run", "--out", "out", "--time-budget", "10"}, "with its unit"},
        BadUsage{{"run", "--out", "out", "--recheck", "2"}, "a share"},
        BadUsage{{"run", "--out", "out", "--shard", "3/2"}, "from 1 to N"},
        BadUsage{{"run", "--out", "out", "--profile", "defualt"}, "no profile 'defualt'; did you mean 'default'"},
        BadUsage{{"run", "--out", "out", "--scenario", "abdc"}, "no scenario 'abdc'; did you mean 'abcd'"},
        BadUsage{{"run", "--scenario", "abcd", "--seeds", "1-2"}, "does not apply"},
        BadUsage{{"run", "--out", "out", "--backend", "faek"}, "no backend 'faek'; did you mean 'fake'"},
        BadUsage{{"run", "--backend", "plugin:missing.so"}, "missing.so"},
        BadUsage{{"run", "--out", "out", "--disable", "one-terminl"}, "did you mean 'one-terminal'"},
        BadUsage{{"run", "--out", "out", "--stop-at", "one-terminl"}, "did you mean 'one-terminal'"},
        BadUsage{{"run", "--out", "out", "--stop-at", "any", "--keep-going"}, "--keep-going exclude each other"},
        BadUsage{{"run", "--seeds", "1", "--out", "/dev/null/x"}, "--out"},
        BadUsage{{"bench", "smi"}, "no group 'smi'; did you mean 'sim'"},
        BadUsage{{"bench", "--min-time", "1"}, "with its unit"}, BadUsage{{"bench", "--repetitions", "0"}, "from 1 to"},
        BadUsage{{"replay"}, "wants a trace FILE, or --seed N"}, BadUsage{{"replay", "a", "b"}, "takes one FILE"},
        BadUsage{{"replay", "missing.json"}, "missing.json"}, BadUsage{{"replay", "/"}, "no regular file"},
        BadUsage{{"replay", "x.json", "--seed", "1"}, "not both"},
        BadUsage{{"replay", "--seed", "17x"}, "a whole number"},
        BadUsage{{"replay", "--seed", "1", "--write", "/dev/null/x"}, "--write"},
        BadUsage{{"sweep", "cold_wrte", "--out", "out"}, "no scenario 'cold_wrte'; did you mean 'cold_write'"},
        BadUsage{{"sweep", "rolled", "rolled"}, "said twice"},
        BadUsage{{"sweep", "rolled", "--depth", "3"}, "from 1 to 2"},
        BadUsage{{"sweep", "cold_write", "--out", "out", "--cases", "1-999999"}, "cases that there are"},
        BadUsage{{"shrink"}, "wants a trace FILE, or --seed N"}, BadUsage{{"shrink", "missing.json"}, "missing.json"},
        BadUsage{{"shrink", "--seed", "1", "--invariant", "one-terminl"}, "did you mean 'one-terminal'"},
        BadUsage{{"run", "--no-shrink", "--shrink-budget", "1s"}, "exclude each other"},
        BadUsage{{"workload"}, "wants a FILE"}, BadUsage{{"workload", "missing.jsonl"}, "missing.jsonl"},
        BadUsage{{"workload", "missing.jsonl", "--format", "x"}, "there is mooncake"},
        BadUsage{{"workload", "missing.jsonl", "--capacity", "10GB"}, "10GiB"}, BadUsage{{"list"}, "list what?"},
        BadUsage{{"list", "mark"}, "did you mean 'marks'"}));

// ---- Bad input.

TEST_F(Program, AMalformedTraceIsRefusedWithItsPlace) {
  const std::string good = [&] {
    run({"replay", "--seed", "1", "--write", "good.json"});
    return text_of("good.json");
  }();
  const std::string nested(200'000, '[');
  std::string future = good;
  future.replace(future.find("holdfast-trace/1"), 16, "holdfast-trace/9");
  const std::map<std::string, std::string> files{{"empty", ""},
                                                 {"truncated", good.substr(0, good.size() / 2)},
                                                 {"garbage", "\x01\xFF{]"},
                                                 {"nested", nested},
                                                 {"future", future},
                                                 {"other", "{\"schema\": 3}"},
                                                 {"trailing", good + "{}"}};
  for (const auto& [name, text] : files) {
    write("bad.json", text);
    const std::vector<std::string> before = entries();
    const Ended ended = run({"replay", "bad.json"});
    EXPECT_EQ(ended.status, 2) << name;
    EXPECT_THAT(ended.err, HasSubstr("bad.json")) << name;
    EXPECT_EQ(entries(), before) << name;
  }
}

TEST_F(Program, AMalformedWorkloadIsRefusedWithItsLine) {
  const std::string good = "{\"timestamp\": 0, \"input_length\": 512, \"output_length\": 5, \"hash_ids\": [0]}\n";
  for (const char* bad :
       {"{", "{}", "[1]", "{\"timestamp\": -1, \"input_length\": 1, \"output_length\": 5, \"hash_ids\": [0]}",
        "{\"timestamp\": 0, \"input_length\": 5120, \"output_length\": 5, \"hash_ids\": [0]}"}) {
    write("bad.jsonl", good + bad + "\n");
    const Ended ended = run({"workload", "bad.jsonl", "--out", "out"});
    EXPECT_EQ(ended.status, 2) << bad;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("bad.jsonl"), HasSubstr("line 2"))) << bad;
    EXPECT_THAT(entries(), ElementsAre("bad.jsonl")) << bad;
  }
}

// ---- Runs.

TEST_F(Program, ACampaignThatHoldsExitsWithZeroAndReports) {
  const Ended ended = run({"run", "--seeds", "1-20", "--out", "out"});
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("fake owner"), HasSubstr("fake device"), HasSubstr("HELD")));
  EXPECT_LE(longest_line(ended.out), 100U);
  const json report = report_of("out");
  EXPECT_EQ(report.at("schema"), "holdfast-report/1");
  EXPECT_EQ(report.at("seeds"), (json{{"first", 1}, {"last", 20}, {"run", 20}}));
  EXPECT_EQ(report.at("verdict"), "held");
  EXPECT_GT(report.at("runtime_calls"), 0);
  for (const char* file : {"junit.xml", "report.html"})
    EXPECT_THAT(text_of(std::string("out/") + file), Not(IsEmpty()));
}

// The page without what is measured in real time.
std::string but_for_real_times(std::string html) {
  for (const char* measured :
       {"<dt>Time</dt><dd>[^<]*", "<td class=\"n wall\">[^<]*", "<caption>Slowest[\\s\\S]*?</table>"}) {
    html = std::regex_replace(html, std::regex(measured), "");
  }
  return html;
}

TEST_F(Program, TheNumberOfJobsDoesNotShowInTheReport) {
  std::vector<json> reports;
  std::vector<std::string> pages;
  for (const char* jobs : {"1", "2"}) {
    EXPECT_EQ(run({"run", "--seeds", "1-60", "--jobs", jobs, "--out", "out"}).status, 0);
    reports.push_back(report_of("out"));
    reports.back().erase("wall_s");
    reports.back().at("cases").erase("slowest");
    for (json& longest : reports.back().at("cases").at("longest")) longest.erase("wall_s");
    pages.push_back(but_for_real_times(text_of("out/report.html")));
  }
  EXPECT_EQ(reports[0], reports[1]);
  EXPECT_EQ(pages[0], pages[1]);
}

TEST_F(Program, ShardsCoverEachSeedOnce) {
  const std::vector<std::pair<std::string, std::string>> systems{{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"},
                                                                 {"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"},
                                                                 {"TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS"},
                                                                 {"GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS"}};
  for (const auto& [index_name, count_name] : systems) {
    std::uint64_t next = 1;
    for (int index = 0; index < 3; ++index) {
      const Ended ended = run({"run", "--seeds", "1-10", "--jobs", "1", "--out", index_name},
                              {{index_name, std::to_string(index)}, {count_name, "3"}});
      ASSERT_EQ(ended.status, 0) << ended.err;
      const json report = report_of(index_name + "/shard-" + std::to_string(index + 1) + "-of-3");
      EXPECT_EQ(report.at("seeds").at("first"), next);
      next = report.at("seeds").at("last").get<std::uint64_t>() + 1;
      EXPECT_EQ(report.at("shard"),
                (json{{"index", index + 1}, {"count", 3}, {"seeds_of_all", {{"first", 1}, {"last", 10}}}}));
    }
    EXPECT_EQ(next, 11U) << index_name;
  }
}

TEST_F(Program, ShardsMergeIntoTheReportOfTheWholeRun) {
  for (const char* shard : {"1/3", "2/3"})
    EXPECT_EQ(run({"run", "--seeds", "1-60", "--shard", shard, "--out", "out"}).status, 0);
  const Ended early = run({"report", "out", "--out", "all"});
  EXPECT_EQ(early.status, 2);
  EXPECT_THAT(early.err, HasSubstr("shard 3 of 3 is missing"));
  EXPECT_THAT(entries(), ElementsAre("out"));
  EXPECT_EQ(run({"run", "--seeds", "1-60", "--shard", "3/3", "--out", "out"}).status, 0);
  const Ended merged = run({"report", "out", "--out", "all"});
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("HELD: no promise was broken"));
  EXPECT_EQ(run({"run", "--seeds", "1-60", "--out", "whole"}).status, 0);
  std::vector<json> reports{report_of("all"), report_of("whole")};
  for (json& report : reports) {
    report.erase("wall_s");
    report.at("cases").erase("slowest");
    for (json& longest : report.at("cases").at("longest")) longest.erase("wall_s");
  }
  EXPECT_EQ(reports[0], reports[1]);
  EXPECT_THAT(text_of("all/report.html"), HasSubstr("HELD: no promise was broken"));

  const Ended compared = run({"report", "whole", "--against", "all"});
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("event logs: the same"));
}

TEST_F(Program, AnOptionOverridesTheShardOfTheEnvironment) {
  const Ended ended = run({"run", "--seeds", "1-4", "--shard", "2/2", "--out", "out"},
                          {{"TEST_SHARD_INDEX", "0"}, {"TEST_TOTAL_SHARDS", "4"}});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(report_of("out/shard-2-of-2").at("seeds").at("first"), 3);
}

TEST_F(Program, AShardWithoutSeedsIsSkipped) {
  const Ended ended = run({"run", "--seeds", "1-2", "--shard", "3/3"});
  EXPECT_EQ(ended.status, 77);
  EXPECT_THAT(ended.out, HasSubstr("SKIPPED"));
}

TEST_F(Program, ABackendThatThisMachineLacksIsSkippedWithTheReason) {
  const Ended skipped = run({"run", "--backend", "cuda", "--out", "out"});
  EXPECT_EQ(skipped.status, 77);
  EXPECT_THAT(skipped.out, HasSubstr("SKIPPED: "));
  const Ended required = run({"run", "--backend", "cuda", "--require-device", "--out", "out"});
  EXPECT_EQ(required.status, 3);
  EXPECT_THAT(entries(), IsEmpty());
}

TEST_F(Program, APluginIsNamedWithPathVersionAndDigestAndRunsAsTheFakeDoes) {
  const std::string backend = std::string("plugin:") + HOLDFAST_EMBEDDED_OWNER;
  const Ended ended =
      run({"run", "--seeds", "1-40", "--recheck", "1/4", "--quiet", "--backend", backend, "--out", "out"});
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("fluxon  embedded owner 0."));
  EXPECT_THAT(ended.out, HasSubstr(std::string(HOLDFAST_EMBEDDED_OWNER) +
                                   "\n        sha256:" + sha256_of_file(HOLDFAST_EMBEDDED_OWNER).value()));
  const auto log_hash = [](const std::string& text) { return text.substr(text.find("log hash"), 31); };
  EXPECT_EQ(log_hash(ended.out), log_hash(run({"run", "--seeds", "1-40", "--quiet"}).out));
  EXPECT_THAT(text_of("out/report.json"), HasSubstr(backend));
}

TEST_F(Program, APluginThatIsNoneIsBadInput) {
  write("plugin.so", "abc");
  const Ended ended = run({"run", "--backend", "plugin:plugin.so"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("plug-in plugin.so: it cannot be loaded"));
}

TEST_F(Program, ACrashOrAHangInAPluginIsAVerdictThatTheSameBackendReproduces) {
  for (const std::string how : {"crash", "hang"}) {
    const StrangePlugin strange(how);
    const Ended ended = run({"run", "--seeds", "1-2", "--jobs", "1", "--quiet", "--no-shrink", "--hang-limit", "1s",
                             "--stop-at", "any", "--backend", StrangePlugin::backend(), "--out", "out"});
    EXPECT_EQ(ended.status, 1) << ended.out << ended.err;
    EXPECT_THAT(ended.out, HasSubstr(how + ": seed 1"));
    EXPECT_THAT(ended.out, HasSubstr("holdfast replay out/failures/1.trace.json --backend plugin:"));
    const Ended again =
        run({"replay", "out/failures/1.trace.json", "--hang-limit", "1s", "--backend", StrangePlugin::backend()});
    EXPECT_EQ(again.status, 1) << again.out << again.err;
  }
  const StrangePlugin strange("crash_when_loaded");
  const Ended ended = run({"run", "--backend", StrangePlugin::backend()});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.out, HasSubstr("CRASHED: while it was loaded"));
}

TEST_F(Program, WhatAPluginDoesNotLetBeLookedIntoIsSaidToBeNotDecidable) {
  const StrangePlugin strange("opaque");
  const Ended ended = run({"run", "--seeds", "1-10", "--quiet", "--backend", StrangePlugin::backend(), "--out", "out"});
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("capacity-bound: not decidable"));
  EXPECT_THAT(text_of("out/report.json"), HasSubstr("\"decidable\": false"));
  EXPECT_THAT(text_of("out/junit.xml"), HasSubstr("not decidable"));
  EXPECT_THAT(text_of("out/report.html"), HasSubstr("not decidable"));
}

TEST_F(Program, TheAbcdGateShowsItsTable) {
  const Ended ended = run({"run", "--scenario", "abcd", "--out", "out"});
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("37 equal A's"), HasSubstr("37 equal D's")));
  EXPECT_EQ(report_of("out").at("gate_failure"), nullptr);
}

TEST_F(Program, ASweepOfOneScenarioShowsItsTableAndOnlyInformsOfCells) {
  const Ended ended = run({"sweep", "one_size_write", "--out", "out"});
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("one_size_write "), HasSubstr("\n commit_wait "), HasSubstr(" held\n")));
  const json report = report_of("out");
  EXPECT_EQ(report.at("command"), "holdfast sweep one_size_write");
  EXPECT_EQ(report.at("sweep").at("cases"), report.at("seeds").at("run"));
  EXPECT_EQ(report.at("sweep").at("complete"), false);
  EXPECT_GT(report.at("cells").at("not_reached").size(), 0U);
  EXPECT_EQ(report.at("gate_failure"), nullptr);
}

TEST_F(Program, ACaseOfASweepRunsByItself) {
  const Ended ended = run({"sweep", "cold_write", "--depth", "2", "--cases", "9000-9000"});
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("1 run of 9000"));
}

TEST_F(Program, RequiredMarksThatAreMissingFailByName) {
  const Ended ended = run({"run", "--seeds", "1", "--require-marks"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.out, HasSubstr("mark never reached: "));
}

TEST_F(Program, ASwitchedOffInvariantIsSaidLoudlyAndNotChecked) {
  const Ended ended = run({"run", "--seeds", "1-5", "--disable", "one-terminal", "--out", "out"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("one-terminal is SWITCHED OFF"), HasSubstr("one-terminal was SWITCHED OFF")));
  const json report = report_of("out");
  EXPECT_EQ(report.at("invariants").at("one-terminal").at("checked"), 0);
  EXPECT_EQ(report.at("invariants").at("one-terminal").at("disabled"), true);
  EXPECT_THAT(report.at("command").get<std::string>(), HasSubstr("--disable one-terminal"));
}

// Requests of one block each, `seconds` apart, no two alike.
std::string requests_apart(int count, int seconds) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "{\"timestamp\": " + std::to_string(i * seconds * 1000) +
            ", \"input_length\": 512, \"output_length\": 5, \"hash_ids\": [" + std::to_string(i) + "]}\n";
  }
  return text;
}

TEST_F(Program, AHangIsAViolationWithItsTraceAndCommand) {
  write("w.jsonl", requests_apart(20'000, 1));  // far more than 20 ms of work
  const Ended ended = run({"workload", "w.jsonl", "--hang-limit", "20ms", "--out", "out"});
  EXPECT_EQ(ended.status, 1) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("holdfast replay out/failures/1.trace.json"));
  const json violation = report_of("out").at("violations").at(0);
  EXPECT_EQ(violation.at("invariant"), "hang");
  EXPECT_EQ(violation.at("trace"), "failures/1.trace.json");
  EXPECT_THAT(text_of("out/failures/1.trace.json"), HasSubstr("holdfast-trace/1"));
  const Ended again = run({"replay", "out/failures/1.trace.json", "--hang-limit", "20ms"});
  EXPECT_EQ(again.status, 1) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("no end within 0.02 s of real time"));
}

TEST_F(Program, AFailureLeavesItsTraceWithoutAnOutputDirectory) {
  write("w.jsonl", requests_apart(20'000, 1));  // far more than 20 ms of work
  const Ended ended = run({"workload", "w.jsonl", "--hang-limit", "20ms"});
  EXPECT_EQ(ended.status, 1) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("holdfast replay holdfast-failures/failures/1.trace.json"));
  EXPECT_THAT(text_of("holdfast-failures/failures/1.trace.json"), HasSubstr("holdfast-trace/1"));
  EXPECT_EQ(run({"run", "--seeds", "1"}).status, 0);
  EXPECT_THAT(text_of("holdfast-failures/failures/1.trace.json"), HasSubstr("holdfast-trace/1"));
}

TEST_F(Program, AFailureIsToldWhereItsTraceCannotBeWritten) {
  write("w.jsonl", requests_apart(20'000, 1));
  write("holdfast-failures", "in the way");
  const Ended ended = run({"workload", "w.jsonl", "--hang-limit", "20ms"});
  EXPECT_EQ(ended.status, 1) << ended.out << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("no traces are written: "));
  EXPECT_THAT(ended.out, HasSubstr("hang"));
}

TEST_F(Program, AFreshProcessIsNothingToStartByHand) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"1"}, {"1", "no-such-check"}, {"x"}}) {
    std::vector<std::string> arguments{"fresh-process"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.err, HasSubstr("use 'holdfast run'"));
  }
}

TEST_F(Program, OldTracesDoNotOutliveARunIntoTheSameDirectory) {
  EXPECT_EQ(run({"run", "--seeds", "1", "--out", "out"}).status, 0);
  write("out/failures/17.trace.json", "of an earlier run");
  write("out/failures/17.min.trace.json", "of the same");
  write("out/failures/17.timeline.json", "of the same");
  write("out/failures/mine.trace.json", "not ours");
  EXPECT_EQ(run({"run", "--seeds", "1", "--out", "out"}).status, 0);
  EXPECT_THAT(entries("out/failures"), ElementsAre("mine.trace.json"));
}

TEST_F(Program, AFullStandardOutputIsTheHarnessesFailure) {
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
    execl(HOLDFAST_PROGRAM, HOLDFAST_PROGRAM, "list", "marks", nullptr);
    _exit(126);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST_F(Program, ATimeBudgetAloneRunsSeedsUntilItIsSpent) {
  const Ended ended = run({"run", "--time-budget", "300ms", "--out", "out"});
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  const json report = report_of("out");
  EXPECT_THAT(report.at("stopped").get<std::string>(), HasSubstr("time budget"));
  EXPECT_GT(report.at("seeds").at("run"), 0);
}

// ---- Replays.

TEST_F(Program, AReplayGivesTheSameLogInEveryProcessAndFromItsFile) {
  const Ended first = run({"replay", "--seed", "17", "--log", "--write", "17.trace.json"});
  EXPECT_EQ(first.status, 0) << first.err;
  const Ended second = run({"replay", "17.trace.json", "--log", "--perturb", "5"});
  EXPECT_EQ(second.status, 0) << second.err;
  const auto log_of = [](const std::string& out) {
    const std::size_t begin = out.find("trace: ");
    return out.substr(begin, out.find("invariant", begin) - begin);
  };
  EXPECT_EQ(log_of(first.out), log_of(second.out));
  EXPECT_GT(log_of(first.out).size(), 1000U);
  const auto hash_of = [](const std::string& out) { return out.substr(out.find("log hash"), 32); };
  EXPECT_EQ(hash_of(first.out), hash_of(second.out));
}

TEST_F(Program, AReplayLeavesATimelineWhereOneIsWanted) {
  const Ended ended = run({"replay", "--seed", "17", "--timeline", "17.timeline.json"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("timeline written to 17.timeline.json"));
  const json events = json::parse(text_of("17.timeline.json")).at("traceEvents");
  const auto named = [&](const std::string& name) {
    return std::ranges::count_if(events, [&](const json& event) { return event.at("name") == name; });
  };
  EXPECT_GT(named("stream_synchronize"), 0);
  EXPECT_EQ(named("put plan 1"), 1);
  EXPECT_EQ(run({"replay", "--seed", "17", "--timeline", "no/such/directory.json"}).status, 2);
}

TEST_F(Program, AReplayIsGoneThroughForwardAndBackOneKeyEach) {
  write("keys", "nnpGq");
  const Ended ended = run({"replay", "--seed", "17", "--step"}, {}, "keys");
  EXPECT_EQ(ended.status, 0) << ended.err;
  std::vector<std::string> shown;  // the number of the moment
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("> ")) shown.push_back(line.substr(2, 6));
  }
  ASSERT_EQ(shown.size(), 5U) << ended.out;
  EXPECT_EQ(shown[0], "     1");
  EXPECT_EQ(shown[1], "     2");
  EXPECT_EQ(shown[2], "     3");
  EXPECT_EQ(shown[3], "     2");
  EXPECT_GT(std::stoi(shown[4]), 100);
  EXPECT_THAT(ended.out, HasSubstr("live at 2 of"));
  EXPECT_LE(longest_line(ended.out), 100U);
}

TEST_F(Program, AShellCompletesCommandsOptionsAndNames) {
  const Ended script = run({"completion"});
  EXPECT_EQ(script.status, 0);
  write("script", script.out + R"(
ask() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _holdfast
  echo "${COMPREPLY[*]}"
}
ask holdfast re
ask holdfast replay --ti
ask holdfast run --profile def
ask holdfast run --disable exact
ask holdfast list sc
ask holdfast replay scr
ask holdfast run --out scr
)");
  Ended asked = run_program("/bin/bash", {"--norc", "script"});
  EXPECT_EQ(asked.status, 0) << asked.err;
  EXPECT_EQ(asked.out, "replay report\n--timeline\ndefault\nexact-bytes\nscenarios\nscript\nscript\n");
}

TEST_F(Program, OfATraceThatHoldsNothingIsShrunkNorWritten) {
  EXPECT_EQ(run({"replay", "--seed", "17", "--write", "17.trace.json"}).status, 0);
  const std::vector<std::string> before = entries();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"17.trace.json"}, {"--seed", "17"}, {"--seed", "17", "--out", "small.json"}}) {
    std::vector<std::string> arguments{"shrink"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("HELD: no promise was broken; there is nothing to shrink"));
    EXPECT_EQ(entries(), before);
  }
}

TEST_F(Program, AReplayShowsItsSteps) {
  EXPECT_THAT(run({"replay", "--seed", "17", "--steps"}).out, HasSubstr("open"));
  EXPECT_THAT(run({"replay", "--seed", "17"}).out, Not(HasSubstr("1 open")));
}

// ---- Workloads.

TEST_F(Program, AWorkloadCountsRequestsBlocksAndHits) {
  // Three requests share a first block; the second and the third share two more.
  write("w.jsonl",
        "{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 5, \"hash_ids\": [0, 1]}\n"
        "{\"timestamp\": 10, \"input_length\": 1536, \"output_length\": 5, \"hash_ids\": [0, 2, 3]}\n"
        "{\"timestamp\": 20, \"input_length\": 2048, \"output_length\": 5, \"hash_ids\": [0, 2, 3, 4]}\n");
  const Ended ended = run({"workload", "w.jsonl", "--format", "mooncake", "--out", "out"});
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("9, 4 of them hit (rate 0.444)"));
  const json workload = report_of("out").at("workload");
  EXPECT_EQ(workload.at("requests"), 3);
  EXPECT_EQ(workload.at("blocks"), 9);
  EXPECT_EQ(workload.at("hit_blocks"), 4);
}

TEST_F(Program, AWorkloadWithinACapacityEvicts) {
  write("w.jsonl", requests_apart(40, 1));
  const Ended ended = run({"workload", "w.jsonl", "--capacity", "25%", "--out", "out"});
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_EQ(report_of("out").at("chunks").at("evicted"), 30);
}

TEST_F(Program, ABenchOfOneMeasurementHasItsFigures) {
  const Ended ended = run({"bench", "sim", "--min-time", "1ms", "--repetitions", "1", "--quiet"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, ContainsRegex("values of 4 KiB a batch +[0-9.]+ [mun]?s  [0-9,]+ calls/s"));
  EXPECT_THAT(ended.err, IsEmpty());
}

TEST_F(Program, ABenchOfTheStoreTellsTheCoresOwnWork) {
  const Ended ended = run({"bench", "store", "shrink", "workload", "--min-time", "1ms", "--repetitions", "1"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, ContainsRegex("by the core +[0-9.]+ [mun]?s  [0-9.,]+ ns a value"));
  EXPECT_THAT(ended.out, ContainsRegex("the core's own work is [0-9]+ ns"));
  EXPECT_THAT(ended.out, ContainsRegex("to its smallest +[0-9.]+ m?s  [0-9.]+ steps left"));
  EXPECT_THAT(ended.out, ContainsRegex("1,000 requests .* [0-9,]+ blocks/s"));
}

TEST_F(Program, ABenchPrintsAFigureForEachCaseAndTheirRatios) {
  const Ended ended = run({"bench", "sim", "--min-time", "1ms", "--repetitions", "2"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("median of 2"));
  EXPECT_THAT(ended.out, ContainsRegex("values of 256 B a batch +[0-9.]+ [mun]?s  [0-9,]+ calls/s"));
  EXPECT_THAT(ended.out, ContainsRegex("making its trace is [0-9.]+% and its log [0-9.]+%"));
  EXPECT_THAT(ended.out, Not(HasSubstr("forest"))) << "of another group";
  EXPECT_THAT(ended.err, HasSubstr("measured: seeds of the default profile"));
}

// ---- Explorations.

TEST_F(Program, ExploreTellsHowFarItCame) {
  const Ended all = run({"explore", "close_beside_put", "--preemptions", "1", "--quiet"});
  EXPECT_EQ(all.status, 0) << all.out << all.err;
  EXPECT_THAT(all.out, HasSubstr("up to 1 preemptions"));
  const Ended some = run({"explore", "restart_beside_put", "--time-budget", "1ms", "--quiet"});
  EXPECT_EQ(some.status, 0) << some.out << some.err;
  EXPECT_THAT(some.out, HasSubstr("not all"));
}

TEST_F(Program, ExploreRefusesAnOptionOfAnotherStrategy) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> kept{
      {{"--depth", "3"}, "--depth: means nothing to the strategy dfs; it is of pct"},
      {{"--seed", "3"}, "--seed: means nothing to the strategy dfs; it is of random and pct"},
      {{"--strategy", "pct", "--preemptions", "3"}, "--preemptions: means nothing to the strategy pct; it is of dfs"},
      {{"--strategy", "random", "--depth", "3"}, "--depth: means nothing to the strategy random"},
  };
  for (const auto& [options, words] : kept) {
    std::vector<std::string> command{"explore", "close_beside_put"};
    command.insert(command.end(), options.begin(), options.end());
    const Ended ended = run(command);
    EXPECT_EQ(ended.status, 2) << words;
    EXPECT_THAT(ended.err, HasSubstr(words));
    EXPECT_THAT(ended.out, IsEmpty());
  }
}

TEST_F(Program, ExploreRefusesATraceWithTooManyStepsSideBySide) {
  std::string steps = R"({"id": 1, "kind": "pump"})";
  for (int id = 2; id <= 300; ++id) steps += R"(, {"id": )" + std::to_string(id) + R"(, "kind": "pump"})";
  write("wide.json",
        R"({"schema": "holdfast-trace/1", "segment_bytes": 1048576, "grant_bytes": 262144, "geometries": [)"
        R"({"n_layers": 2, "frames_per_chunk": 2, "frame_tokens": 1, "ring_frames": 5, "sink_frames": 1,)"
        R"( "full_length": false, "kv_token_bytes": [64, 96]}], "steps": [)" +
            steps + R"(], "faults": [], "choices": []})");
  EXPECT_EQ(run({"replay", "wide.json"}).status, 0);
  const Ended ended = run({"explore", "wide.json"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("wide.json"), HasSubstr("$.steps[256]: runs beside 256 others")));
}

}  // namespace
}  // namespace holdfast::sim

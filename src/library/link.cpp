// The C compiler's driver knows where the linker, the C library and libm are; nothing is compiled by it.
// SPDX-License-Identifier: Apache-2.0
#include "library/link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include <cosmati/error.h>

#include "support/read_file.h"

extern char** environ;

namespace cosmati::library {
namespace {

// The exit status of a command whose messages go to a file, or below 0 where there is no such command.
int run(const std::vector<std::string>& words, const std::string& messages) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return -1;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

void link_shared(const std::string& object, const std::string& made) {
  const std::string messages = made + ".messages";
  for (const char* driver : {"cc", "gcc", "clang"}) {
    const int status = run({driver, "-shared", "-nostartfiles", "-Wl,-z,defs", "-o", made, object, "-lm"}, messages);
    if (status < 0 || status == 127) continue;
    std::error_code ignored;
    const std::string said = std::filesystem::exists(messages, ignored) ? support::read_file(messages) : "";
    std::filesystem::remove(messages, ignored);
    if (status == 0) return;
    throw InternalError(fmt::format("linking a package with {} failed with exit code {}: {}", driver, status, said));
  }
  throw Error(ErrorCode::backend_absent, {}, "a package is linked by the system's linker, and there is neither cc, gcc nor clang",
              "install a C compiler");
}

}  // namespace cosmati::library

// SPDX-License-Identifier: Apache-2.0
// Programs that a test starts, talks to and asks: gpuwatch-probe, and what it
// looks into. Ended with the object; nothing here judges.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"

namespace gpuwatch::test {

using nlohmann::json;

struct Pipe {
  base::Fd read, write;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read = base::Fd(ends[0]);
    write = base::Fd(ends[1]);
  }
};

// A program with its input and output; ended with the object.
class Program {
 public:
  Program(const std::vector<std::string>& words, const std::vector<std::string>& environment, uid_t user = 0) {
    Pipe in, out;
    std::vector<char*> argv, envp;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& word : environment) envp.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in.read.get(), 0);
      ::dup2(out.write.get(), 1);
      ::dup2(out.write.get(), 2);
      if (user != 0 && (::setgid(user) != 0 || ::setuid(user) != 0)) ::_exit(98);
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(99);
    }
    in_ = std::move(in.write);
    out_ = std::move(out.read);
  }
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

  std::string line() {
    std::string text;
    for (char byte; ::read(out_.get(), &byte, 1) == 1 && byte != '\n';) text += byte;
    return text;
  }
  std::string say(const std::string& command) {
    const std::string text = command + "\n";
    if (::write(in_.get(), text.data(), text.size()) < 0) return {};
    return line();
  }
  std::string rest() {
    std::string text;
    char bytes[4096];
    for (ssize_t got; (got = ::read(out_.get(), bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<std::size_t>(got));
    return text;
  }
  void close_input() { in_.reset(); }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  base::Fd in_, out_;
};

// A copy of this process that does `work`, then nothing until it is ended; not
// ready where that was false. What the work refers to stays in its memory.
class Forked {
 public:
  explicit Forked(const std::function<bool()>& work) {
    Pipe done;
    pid_ = ::fork();
    if (pid_ == 0) {
      if (!work()) ::_exit(98);
      (void)!::write(done.write.get(), "r", 1);
      for (;;) ::pause();
    }
    done.write.reset();
    char byte = 0;
    ready_ = ::read(done.read.get(), &byte, 1) == 1;
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;
  ~Forked() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }
  bool ready() const { return ready_; }

 private:
  pid_t pid_ = 0;
  bool ready_ = false;
};

struct Answer {
  int status = 0;
  std::string text;
  std::vector<json> lines;

  const json* line(const std::string& type) const {
    for (const json& one : lines)
      if (one.value("type", "") == type) return &one;
    return nullptr;
  }
  std::vector<json> kernels(const std::string& verdict) const {
    std::vector<json> out;
    for (const json& one : lines)
      if (one.value("type", "") == "kernel" && one.value("verdict", "") == verdict) out.push_back(one);
    return out;
  }
};

// What a probe printed, and its exit code.
inline Answer answer_of(const std::vector<std::string>& words, const std::vector<std::string>& environment = {},
                        uid_t user = 0) {
  Program probe(words, environment, user);
  probe.close_input();
  Answer answer;
  answer.text = probe.rest();
  answer.status = probe.wait();
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);)
    if (const json object = json::parse(line, nullptr, false); object.is_object()) answer.lines.push_back(object);
  return answer;
}

// Fields of /proc/N/status of the one child that a process has; empty: none yet.
inline std::map<std::string, std::string> child_of(pid_t parent) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "status");
    std::map<std::string, std::string> fields;
    for (std::string line; std::getline(file, line);)
      if (const auto colon = line.find(":\t"); colon != std::string::npos)
        fields[line.substr(0, colon)] = line.substr(colon + 2);
    if (fields["PPid"] == std::to_string(parent)) out = fields;
  }
  return out;
}

}  // namespace gpuwatch::test

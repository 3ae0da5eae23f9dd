// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <csignal>
#include <initializer_list>

namespace gpuwatch::cli {

namespace {

volatile std::sig_atomic_t stop_flag = 0;
volatile std::sig_atomic_t dump_flag = 0;

void on_signal(int number) {
  if (number == SIGUSR1)
    dump_flag = 1;
  else
    stop_flag = number;
}

}  // namespace

void install_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // no SA_RESTART: waiting calls must return
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) ::sigaction(number, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool stop_wanted() {
  return stop_flag != 0;
}
int stop_signal() {
  return stop_flag;
}

bool take_dump_wanted() {
  const bool wanted = dump_flag != 0;
  dump_flag = 0;
  return wanted;
}

}  // namespace gpuwatch::cli

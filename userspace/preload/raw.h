// SPDX-License-Identifier: Apache-2.0
// System calls without libc: they neither touch errno nor pass through wrapped
// functions, and work in a signal handler and in the child of vfork().
#pragma once

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

static inline long gw_sys6(long n, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long ret;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(ret)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return ret;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "the recorder knows x86-64 and arm64 only"
#endif
}

#define GW_SYS_0(n) gw_sys6(n, 0, 0, 0, 0, 0, 0)
#define GW_SYS_1(n, a) gw_sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define GW_SYS_2(n, a, b) gw_sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define GW_SYS_3(n, a, b, c) gw_sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define GW_SYS_4(n, a, b, c, d) gw_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define GW_SYS_6(n, a, b, c, d, e, f) gw_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline uint64_t gw_now_ns(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);  // vDSO
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

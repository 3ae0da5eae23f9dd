// SPDX-License-Identifier: Apache-2.0
#include "probe/canary_lanes.h"

#include "kernels/canary.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gpuwatch::probe {

namespace {

#if defined(__x86_64__)

#define GW_LANES __attribute__((target("avx2,fma"), always_inline)) inline

// Lanes of one register, and registers whose steps fill each other's waits.
constexpr std::uint32_t kWide = 4;
constexpr std::uint32_t kGroups = 4;

// The low 64 bits of a product.
GW_LANES __m256i multiply(__m256i a, __m256i b) {
  const __m256i crossed =
      _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), b), _mm256_mul_epu32(a, _mm256_srli_epi64(b, 32)));
  return _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64(crossed, 32));
}

// The low halves of four lanes.
GW_LANES __m128i low_halves(__m256i lanes) {
  return _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(lanes, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}

struct Group {
  __m256i x;
  __m128 f;
  __m256d d;
};

GW_LANES void step(Group& group) {
  group.x = _mm256_xor_si256(group.x, _mm256_srli_epi64(group.x, 12));
  group.x = _mm256_xor_si256(group.x, _mm256_slli_epi64(group.x, 25));
  group.x = _mm256_xor_si256(group.x, _mm256_srli_epi64(group.x, 27));
  group.x = multiply(group.x, _mm256_set1_epi64x(0x2545f4914f6cdd1d));
  // Both are below 2^31: signed or not is the same.
  const __m128 a =
      _mm_mul_ps(_mm_cvtepi32_ps(low_halves(_mm256_srli_epi64(group.x, 52))), _mm_set1_ps(0.000244140625f));
  const __m256d b = _mm256_mul_pd(_mm256_cvtepi32_pd(low_halves(_mm256_srli_epi64(group.x, 44))),
                                  _mm256_set1_pd(0.00000095367431640625));
  group.f = _mm_fmadd_ps(group.f, _mm_set1_ps(0.75f), a);
  group.d = _mm256_sqrt_pd(_mm256_fmadd_pd(group.d, _mm256_set1_pd(0.75), b));
  group.f = _mm_div_ps(_mm_set1_ps(1.0f), _mm_add_ps(group.f, _mm_set1_ps(1.0f)));
}

__attribute__((target("avx2,fma"))) void sixteen(std::uint64_t seed, std::uint32_t first, std::uint64_t* out) {
  Group groups[kGroups];
  alignas(32) std::uint64_t x[kWide];
  alignas(32) double d[kWide];
  alignas(16) float f[kWide];
  for (std::uint32_t i = 0; i < kGroups; ++i) {
    for (std::uint32_t lane = 0; lane < kWide; ++lane) {
      const std::uint32_t thread = first + i * kWide + lane;
      x[lane] = seed + 0x9e3779b97f4a7c15ull * (thread + 1);
      f[lane] = 1.0f + static_cast<float>(thread % 977) * 0.0009765625f;
      d[lane] = 1.0 + static_cast<double>(thread % 991) * 0.0009765625;
    }
    groups[i] = {_mm256_load_si256(reinterpret_cast<const __m256i*>(x)), _mm_load_ps(f), _mm256_load_pd(d)};
  }
  for (std::uint32_t i = 0; i < kernels::kCanarySteps; ++i)
    for (Group& group : groups) step(group);
  for (std::uint32_t i = 0; i < kGroups; ++i) {
    const __m256i bits = _mm256_slli_epi64(_mm256_cvtepu32_epi64(_mm_castps_si128(groups[i].f)), 17);
    const __m256i mixed = _mm256_xor_si256(_mm256_xor_si256(groups[i].x, _mm256_castpd_si256(groups[i].d)), bits);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i * kWide), mixed);
  }
}

bool has_lanes() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}

#endif

}  // namespace

void canary_works(std::uint64_t seed, std::uint32_t first, std::span<std::uint64_t> out) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (has_lanes())
    for (; done + kWide * kGroups <= out.size(); done += kWide * kGroups)
      sixteen(seed, first + static_cast<std::uint32_t>(done), out.data() + done);
#endif
  for (; done < out.size(); ++done) out[done] = kernels::canary_work(seed, first + static_cast<std::uint32_t>(done));
}

}  // namespace gpuwatch::probe

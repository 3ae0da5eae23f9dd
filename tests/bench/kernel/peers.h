/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - other ways to record the same call, measured in the same boot: a
 * module that uses fprobe and BPF programs. gpuwatch.ko must not be loaded.
 */
#ifndef GW_BENCH_PEERS_H
#define GW_BENCH_PEERS_H

#include "measure.h"

/* `call` costs `bare` instructions when nobody watches. What a kernel can't do
 * is reported as skipped, with the reason. */
void peer_fprobe(struct bench_call *call, double bare);
void peer_bpf(struct bench_call *call, double bare);

#endif

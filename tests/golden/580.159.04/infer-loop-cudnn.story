# What the default view shows
02:05:32.958 -                       python3/2694            gpu0  GPU opened: NVIDIA H200
02:05:33.181 -                       python3/2694            gpu0  host memory +56.0 MiB, now 56.0 MiB
02:05:33.238 -                       python3/2694            gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:05:33.252 -                       python3/2694            gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:05:33.258 -                       python3/2694            gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:05:33.261 -                       python3/2694            gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:05:33.268 -                       python3/2694            gpu0  GPU memory +20.0 MiB, now 564.0 MiB
02:05:33.275 -                       python3/2694            gpu0  GPU memory +20.0 MiB, now 604.0 MiB
02:05:33.281 -                       python3/2694            gpu0  GPU memory +20.0 MiB, now 644.0 MiB
02:05:33.288 -                       python3/2694            gpu0  GPU memory +20.0 MiB, now 684.0 MiB
02:05:33.295 -                       python3/2694            gpu0  GPU memory +20.0 MiB, now 724.0 MiB
02:05:33.302 -                       python3/2694            gpu0  GPU memory +20.0 MiB, now 764.0 MiB
02:05:33.309 -                       python3/2694            gpu0  GPU memory +24.0 MiB, now 808.0 MiB
02:05:33.323 -                       python3/2694            gpu0  GPU memory -414.0 MiB, now 408.0 MiB
02:05:33.323 -                       python3/2694            gpu0  GPU memory +504.0 MiB, now 912.0 MiB
02:05:33.341 -                       python3/2694            gpu0  GPU memory +64.0 MiB, now 980.0 MiB
02:05:33.341 -                       python3/2694            gpu0  GPU memory +32.0 MiB, now 1012.0 MiB
02:05:34.776 -                       python3/2694            gpu0  GPU memory +2.0 MiB, now 1.0 GiB
02:06:38.764 -                       python3/2694            gpu0  GPU memory +34.0 MiB, now 1.0 GiB
02:07:03.566 -                       python3/2694            gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:07:03.566 -                       python3/2694            gpu0  GPU memory -1.0 GiB (71 objects), now 0 B, peak 1.0 GiB
02:07:03.566 -                       python3/2694            gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
02:07:03.566 -                       python3/2694            gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
3 client.closed
3 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
98 memory.allocated
3 memory.freed
115 memory.mapped
7 memory.pinned
1 memory.unmapped
1 memory.unpinned
18 sync.created

# Processes
pid 2694: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 2694: gpu memory: peak 1163919360 bytes, in the end 0
pid 2694: host memory: peak 73396224 bytes, in the end 0
pid 2694: pinned memory: peak 21237760 bytes, in the end 0

# Objects left in the end
0
